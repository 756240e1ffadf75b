"""Predicts the error of an encrypted run's results, before any key is made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright._core import ErrorModel, EvaluationKeys
from keywright.errors.choices import require_integer
from keywright.errors.engine import EncodeError, ParameterError
from keywright.plan.keys.execution import PlanExecution
from keywright.program.arrays import Vector
from keywright.program.program import Program
from keywright.runtime.executor import execute
from keywright.runtime.scales import as_ciphertext

from .backend import SimulatedBackend, Value
from .noise import NoiseSource

REPETITIONS = 4
"""Default number of runs with errors per sample."""

FACTOR = 4
"""By which errors may exceed predicted ones: predictions are within 2 bits."""

SEED = 22
"""Default seed: predictions are reproducible."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """Simulated runs of a program with the errors of encrypted runs.

    The errors are the differences between an encrypted run and the program in the clear. They exclude the
    difference between the program and the model from which it was compiled.

    Attributes:
        outputs: of the program without errors, (samples, *output_shape).
        noisy: (repetitions, samples, *output_shape), each repetition with another secret key.
    """

    outputs: Vector
    noisy: Vector

    @property
    def errors(self) -> Vector:
        """Absolute errors of all outputs, (repetitions, samples, outputs)."""
        repetitions, samples = self.noisy.shape[:2]
        return np.abs(self.noisy - self.outputs).reshape(repetitions, samples, -1)

    @property
    def mean_error(self) -> float:
        """Mean error of an output."""
        return float(self.errors.mean())

    @property
    def worst_error(self) -> float:
        """Largest error of any output of any sample: the median over repetitions."""
        return float(np.median(self.errors.max(axis=(1, 2))))

    @property
    def sample_errors(self) -> Vector:
        """For each sample, the largest error of any output: the median over repetitions."""
        return np.asarray(np.median(self.errors.max(axis=2), axis=0))

    @property
    def decided(self) -> NDArray[np.bool_]:
        """For each sample, whether its two best outputs differ by more than both can be off together, so that
        an encrypted run does not change its label. False for a program of one output."""
        scores = np.sort(self.outputs.reshape(len(self.outputs), -1), axis=1)
        if scores.shape[1] < 2:
            return np.zeros(len(scores), bool)
        return np.asarray(scores[:, -1] - scores[:, -2] > 2 * FACTOR * self.worst_error)

    def __str__(self) -> str:
        count = len(self.outputs)
        samples = "1 sample" if count == 1 else f"{count} samples"
        return (
            f"predicted error of encryption: mean {self.mean_error:.2g}, largest {self.worst_error:.2g} "
            f"over {samples}, compared with the unencrypted program"
        )


def simulate(
    program: Program,
    plan: PlanExecution,
    samples: ArrayLike,
    *,
    public: bool = False,
    repetitions: int = REPETITIONS,
    seed: int = SEED,
    entry: int | None = None,
    step: float = 0.0,
) -> Simulation:
    """Run a program in the clear, with random errors as the engine predicts them for every operation.

    Encryptions, roundings and key switches, by the plan's keys and routes, have normal errors with the
    variances of `keywright.keys.ErrorModel`. Bootstraps have the errors of
    `keywright.BootstrapperPlan.errors_of`.
    The run propagates them through the network. Each repetition has another secret key. The predicted mean
    and largest errors are within 2 bits of measured ones on these samples; on others, errors differ as far as
    the network's slopes do.

    Args:
        plan: of the program's keys. Keys derived from master keys count as if they were made directly.
        samples: (count, *input_shape), at least one; a few are enough.
        public: whether samples are encrypted with the public key.
        repetitions: runs with errors of each sample.
        seed: of the random numbers.
        entry: index of the bootstrap through which ciphertexts of thin clients enter.
        step: of which the numbers of thin clients are multiples.

    Raises:
        EncodeError: there are no samples, or they have another shape; no repetitions.
        OutOfRangeError: a sample drives a value above 1 into a bootstrap.
        ParameterError: a bootstrap has no prediction.
    """
    if (repetitions := require_integer("repetitions", repetitions)) < 1:
        raise EncodeError(f"a simulation needs at least 1 repetition, got {repetitions}", code="samples")
    if (seed := require_integer("seed", seed)) < 0:
        raise ParameterError(f"seed is {seed}; use an integer not below 0", what="seed", value=seed)
    batches = program.batches(samples)
    outline = EvaluationKeys.outline(plan.parameters, [*plan.key_specs, *plan.derived_specs])
    keys, rng = plan.follow(outline), np.random.default_rng(seed)
    noise = {
        ring: NoiseSource(
            ErrorModel(plan.in_ring(ring).parameters, keys), program.ring_slots(ring), repetitions, rng
        )
        for ring in (0, *plan.subrings)
    }
    backend = SimulatedBackend(noise, plan)
    packed = np.asarray([program.pack(batch) for batch in batches])
    if program.input.layout.parts > 1:
        packed = packed.astype(np.complex128)  # imaginary parts of errors matter
    level, ring = program.input.level, program.input.log_n
    encrypted: list[Value] = [
        backend.encrypt(packed[:, row], level, repetitions, public=public, ring=ring)
        if entry is None
        else backend.enter(packed[:, row], level, repetitions, entry, step)
        for row in range(packed.shape[1])
    ]
    results = execute(program, backend, encrypted)
    entries = [
        (as_ciphertext(each) if step == 0 else backend.leave(each, step)).values.real for each in results
    ]
    # (1 + repetitions, batches, ciphertexts, slots)
    runs = np.swapaxes(np.stack(entries, axis=2), 0, 1)
    unpacked = [
        np.concatenate([program.unpack(row, len(batch)) for row, batch in zip(run, batches, strict=True)])
        for run in runs
    ]
    return Simulation(unpacked[0], np.asarray(unpacked[1:]))
