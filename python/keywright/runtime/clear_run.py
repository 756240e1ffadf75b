"""Runs whole programs without encryption."""

import numpy as np
from numpy.typing import ArrayLike

from keywright.errors.engine import EncodeError
from keywright.program.arrays import Vector, as_numbers
from keywright.program.program import Program

from .clear_backend import ClearBackend
from .executor import execute


def run_clear(program: Program, samples: ArrayLike) -> Vector:
    """Return the program's output, evaluated without encryption by `ClearBackend`.

    Args:
        samples: one, of shape ``program.input.shape``, or several, (count, *input_shape).

    Returns:
        An array of shape ``program.output.shape``, or (count, *output_shape).

    Raises:
        EncodeError: another shape, no samples, values that are not finite, or results that are not.
        OutOfRangeError: the sample drives a value above 1 into a bootstrap.
    """
    values = as_numbers(samples)
    if values.shape == program.input.shape:
        return run_batch(program, values[None]).reshape(program.output.shape)
    return np.concatenate([run_batch(program, batch) for batch in program.batches(values)])


def run_batch(program: Program, samples: Vector) -> Vector:
    """Return the outputs of up to a batch of samples, (count, *input_shape)."""
    backend = ClearBackend(program.slots, program.operands.bootstraps)
    inputs = [backend.encrypt(row, program.input.level, program.input.log_n) for row in program.pack(samples)]
    with np.errstate(over="ignore", invalid="ignore"):
        results = np.asarray([ct.values for ct in execute(program, backend, inputs)])
    if not np.isfinite(results).all():
        raise EncodeError(
            "the samples drive the program to infinity: they, or numbers of the program, are too large",
            code="samples",
        )
    return program.unpack(results, len(samples))
