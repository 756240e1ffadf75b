"""Checks that samples stay inside the calibrated ranges of a program, before they are encrypted."""

import math

import numpy as np
from numpy.typing import ArrayLike

from keywright._core import Parameters
from keywright.errors.network import OutOfRangeError
from keywright.program.arrays import as_numbers
from keywright.program.instructions import OUTSIDE, Instruction
from keywright.program.program import Program

from .clear_backend import ClearBackend, ClearCiphertext
from .executor import execute

MOST_BITS = 1000.0
"""Results with more bits than floating point has have no bound."""


def largest_result(parameters: Parameters, level: int) -> float:
    """Return the largest value that a ciphertext of a level holds: half of its primes over the scale."""
    bits = sum(map(math.log2, parameters.q[: level + 1])) - parameters.log_scale - 1
    return float(2.0 ** min(bits, MOST_BITS))


def guard(program: Program, samples: ArrayLike, largest_output: float | None = None) -> None:
    """Run samples through a program in the clear and refuse those that leave a range.

    The server cannot detect this: a value outside the range of a polynomial gives a wrong result that looks
    like any other. A client that has the program checks its samples before it encrypts them.

    Args:
        samples: one, of shape ``program.input.shape``, or (count, *input_shape).
        largest_output: maximum value of a result ciphertext, see `largest_result`; unbounded by default.

    Raises:
        OutOfRangeError: names the first layer with such a value, the value furthest outside, and the range.
        EncodeError: another shape, no samples, or values that are not finite.
    """
    values = as_numbers(samples)
    values = values[None] if values.shape == program.input.shape else values
    batches = program.batches(values)
    program.input.steps.require(values)
    if _unwatched(program):
        program.input.require_range(values)
    for batch in batches:
        checks = _RangeChecks(program)
        backend = ClearBackend(program.slots, program.operands.bootstraps)
        ring = program.input.log_n
        inputs = [backend.encrypt(row, program.input.level, ring) for row in program.pack(batch)]
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = execute(program, backend, inputs, checks.check)
        for number, output in enumerate(outputs):
            slot = int(np.nan_to_num(np.abs(output.values), nan=np.inf).argmax())
            value = float(output.values[slot])
            if largest_output is not None and not abs(value) <= largest_output:
                element = program.output.layout.element(number, slot)
                value, low, high = (
                    program.output.entry(each, element) for each in (value, -largest_output, largest_output)
                )
                raise OutOfRangeError("the output", value, low, high, approximated=checks.approximated)


def _unwatched(program: Program) -> bool:
    """Whether a function was replaced without a range inside the program, as a stored statistic is, which
    nothing computes: the features then stay in the range of the calibration data."""
    fitted = () if program.fit_report is None else program.fit_report.activations
    return any(not any(each.name.startswith(one.label) for each in program.ranges) for one in fitted)


class _RangeChecks:
    """Compares the operands of instructions with their ranges."""

    def __init__(self, program: Program) -> None:
        self.approximated = False
        self.ranges = {range_.result: range_ for range_ in program.ranges}

    def check(self, step: Instruction, operands: list[ClearCiphertext]) -> None:
        """Called before every instruction."""
        before = self.approximated
        self.approximated |= step.opcode == "polynomial"
        range_ = self.ranges.get(step.result)
        if range_ is None:
            return
        middle, half = (range_.low + range_.high) / 2, (range_.high - range_.low) / 2
        values = operands[0].values
        if range_.slots:
            values = values[list(range_.slots)]
        distances = np.abs(values - middle)
        worst = int(np.nan_to_num(distances, nan=np.inf).argmax())
        if not distances[worst] <= half * (1 + 2 * OUTSIDE):
            share = (values[worst] - range_.low) / (range_.high - range_.low)
            value = range_.model_low + share * (range_.model_high - range_.model_low)
            raise OutOfRangeError(
                range_.name,
                float(value),
                range_.model_low,
                range_.model_high,
                approximated=before,
                total=range_.total,
            )
