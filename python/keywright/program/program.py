"""A program: instructions on ciphertexts, their plaintexts, and the layouts of input and output."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Unchanging
from keywright.errors.choices import require_integer
from keywright.errors.engine import EncodeError
from keywright.program.operands.operands import Operands

from .arrays import Vector, as_numbers, require_samples
from .fit_report import FitReport
from .instructions import Instruction, Layer, Scales, ValueRange
from .interface import ProgramInput, ProgramOutput
from .key_switches import KeySwitch, RequiredKey, list_key_switches, required_keys


@dataclass(frozen=True, eq=False)
class Program(
    Unchanging,
    elsewhere="write it with keywright.compiler.save, and read it with keywright.compiler.load",
):
    """An encrypted network, which `keywright.runtime` runs and `keywright.compiler.save` writes to a file.

    Attributes:
        input, output: the tensors that it takes and gives.
        instructions: in order of execution.
        operands: plaintext operands of instructions.
        layers: in order of execution, the layers and their instructions.
        ranges: calibrated ranges of polynomials.
        fit_report: how the program in the clear differs from the model; None without calibration data.
        created: when it was compiled, in milliseconds since 1970; 0 if that is unknown. It tells which of two
            programs is older, and is not part of the program's identity. With SOURCE_DATE_EPOCH set, it is
            that time, and equal models compile to equal bytes.
    """

    input: ProgramInput
    output: ProgramOutput
    instructions: tuple[Instruction, ...]
    operands: Operands
    layers: tuple[Layer, ...] = ()
    ranges: tuple[ValueRange, ...] = ()
    fit_report: FitReport | None = None
    created: int = 0

    @property
    def slots(self) -> int:
        """Slots per ciphertext in the largest ring, the modulus of rotation steps; see `ring_slots` for
        others."""
        return self.input.layout.slots

    @property
    def batch(self) -> int:
        """Number of samples that the program takes at a time."""
        return self.input.layout.batch

    @property
    def seconds(self) -> float:
        """Predicted time of a batch, one thread."""
        return sum(layer.seconds for layer in self.layers)

    @cached_property
    def key_switches(self) -> tuple[KeySwitch, ...]:
        """Every key switch, in order of execution."""
        return list_key_switches(
            self.instructions, self.operands.transforms, self.operands.polynomials, self.rings
        )

    @cached_property
    def bootstrap_pairs(self) -> dict[int, int]:
        """Places of the instructions that bootstrap two ciphertexts at once: of the second, by that of the
        first. They are neighbours with one bootstrap, which takes pairs, and with operands of one scale; what
        thin clients send has none (`entered`)."""
        pairs: dict[int, int] = {}
        options = {index for index, option in enumerate(self.operands.bootstraps) if option.pairs}
        if not options:
            return pairs
        scales = Scales()
        for step in self.instructions:
            scales.follow(step)
        for place, (first, second) in enumerate(pairwise(self.instructions)):
            alike = first.opcode == second.opcode == "bootstrap" and first.argument == second.argument
            free = place - 1 not in pairs and first.result not in second.operands
            if alike and free and first.argument in options and first.operands and second.operands:
                one, other = (scales.of[step.operands[0]] for step in (first, second))
                pairs |= {place: place + 1} if one == other else {}
        return pairs

    @cached_property
    def rings(self) -> dict[int, int]:
        """For each ciphertext, log2 of the degree of its ring, or 0 for the largest."""
        table: dict[int, int] = {}
        for step in self.instructions:
            match step.opcode:
                case "input":
                    table[step.result] = self.input.log_n
                case "switch_ring":
                    table[step.result] = step.argument
                case "bootstrap":
                    table[step.result] = 0
                case _:
                    table[step.result] = table.get(step.operands[0], 0) if step.operands else 0
        return table

    def entered(self, bootstrap: int) -> "Program":
        """Return the program with a bootstrap instead of each input: it has the key switches of a run for
        thin clients.

        A thin client's ciphertext goes through ModRaise, CoeffsToSlots and EvalMod, the last three stages of
        a bootstrap. The first stage, SlotsToCoeffs, stands for the one that produces an answer. A classifier
        has at most as many answers as inputs. Counting a stage too often never asks for an extra key.

        Args:
            bootstrap: index of the bootstrapping through which clients enter.
        """
        steps = tuple(
            replace(step, opcode="bootstrap", argument=bootstrap) if step.opcode == "input" else step
            for step in self.instructions
        )
        return replace(self, instructions=steps)

    def ring_slots(self, log_n: int) -> int:
        """Return the slots of the ciphertexts of a ring; see `rings`."""
        return min(self.slots, 1 << (log_n - 1)) if log_n else self.slots

    @cached_property
    def required_keys(self) -> tuple[RequiredKey, ...]:
        """Each key with the highest level at which it is used: relinearization first, then rotations by
        step."""
        return required_keys(self.key_switches)

    @cached_property
    def depth(self) -> int:
        """Levels consumed on the longest path from the input to the result."""
        depth: dict[int, int] = {}
        level: dict[int, int] = {}
        for step in self.instructions:
            spent = 0
            if step.opcode not in ("input", "drop_level", "switch_ring", "bootstrap"):
                spent = level[step.operands[0]] - step.level
            depth[step.result] = max((depth[operand] for operand in step.operands), default=0) + spent
            level[step.result] = step.level
        return max(depth[output] for output in self.output.ciphertexts)

    def features(self, samples: Any) -> tuple[Vector, bool]:
        """Return what the first steps give for samples, (count, *input_shape), and whether a single sample
        was given, without a batch axis. Without first steps, samples are features, in an array or in a table
        whose columns the program knows by name.

        Args:
            samples: see `FirstSteps.features`.

        Raises:
            EncodeError: samples of another shape or kind, or values that are not finite.
        """
        values, single = self.input.steps.read(samples, self.input.shape)
        self.batches(values)
        return values, single

    def batches(self, samples: ArrayLike) -> list[Vector]:
        """Split samples, (count, *input_shape), into parts that the program takes; all but the last are full.

        Raises:
            EncodeError: there are no samples, or they have another shape or values that are not
                finite.
        """
        values = as_numbers(samples)
        require_samples(values, self.input.shape)
        self._require_finite(values)
        return [values[first : first + self.batch] for first in range(0, len(values), self.batch)]

    def pack(self, samples: ArrayLike) -> Vector:
        """Pack a sample, or up to ``batch`` samples, into slot vectors of shape (ciphertexts, slots), to be
        encrypted at the level of `input`, with the slots of the input's ring.

        If there are fewer samples than ``batch``, they are repeated. Unused slots must hold values in the
        program's range: a value outside the range of a polynomial corrupts every slot.

        Args:
            samples: of shape ``input.shape``, or (count, *input_shape).

        Raises:
            EncodeError: another shape, more samples than ``batch``, or values that are not finite.
        """
        values = as_numbers(samples)
        if values.shape == self.input.shape:
            values = values[None]
        if values.shape[1:] != self.input.shape or not 1 <= len(values) <= self.batch:
            raise EncodeError(
                f"a sample has shape {self.input.shape}, and the program takes up to {self.batch} at a "
                f"time, (count, *shape); got {values.shape}",
                code="samples",
            )
        self._require_finite(values)
        flat = self.input.entering(values)
        packed = self.input.layout.pack(flat[np.arange(self.batch) % len(flat)])
        return packed[:, : self.ring_slots(self.input.log_n)]

    def unpack(self, slots: ArrayLike, count: int | None = None) -> Vector:
        """Return the result in decrypted slot vectors of shape (ciphertexts, slots).

        Args:
            count: number of packed samples: the result has shape (count, *output_shape). None: one sample, of
                shape ``output.shape``.

        Raises:
            EncodeError: another shape, or a count that is not from 1 to ``batch``.
        """
        held = self.ring_slots(self.rings[self.output.ciphertexts[0]])
        expected = (self.output.layout.ciphertexts, held)
        if np.shape(slots) != expected:
            raise EncodeError(
                f"the decrypted result has shape {expected}, got {np.shape(slots)}", code="samples"
            )
        if count is not None:
            self.require_count(count)
        values = self.output.leaving(self.output.layout.unpack(np.asarray(slots, np.float64)))
        tensors = values.reshape(self.batch, *self.output.shape)
        return tensors[0] if count is None else tensors[:count]

    def require_count(self, count: int) -> None:
        """Refuse a number of samples that do not share ciphertexts.

        Raises:
            EncodeError: it is not from 1 to ``batch``.
        """
        if not 1 <= require_integer("count", count) <= self.batch:
            raise EncodeError(
                f"count {count} is out of range; the program takes 1 to {self.batch} samples at a time",
                code="samples",
            )

    def answers(self, outputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's own outputs by name, such as labels and probabilities, from decrypted results.
        This is the client's part of the model. The dictionary is empty for a model without such a part: its
        decrypted results are the model's output.

        Args:
            outputs: (count, *output_shape).

        Raises:
            EncodeError: the shape is wrong, or they are no real numbers.
            FormatError: a step of the client's part cannot be run.
        """
        return self.output.answers(outputs, self.output.shape)

    def _require_finite(self, values: Vector) -> None:
        if fault := self.input.without_numbers(values):
            raise EncodeError(fault, code="samples")
