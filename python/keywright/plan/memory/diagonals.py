"""Ways to store the diagonals of a linear transform, with their bytes and their time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2
from typing import Literal

from keywright._core import BootstrapperPlan
from keywright.plan.cost.model import CostModel, Work
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.ring.chain import Chain
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.program import Program

Storage = Literal["encoded", "coefficients", "streamed"]
"""How diagonals are stored. "encoded": residues modulo every prime, ready for use. "coefficients": one
integer per coefficient of the subring that their period generates, transformed at every use. "streamed": not
at all; they are encoded at every use."""

Place = tuple[int, int, int]
"""Index of a transform of a network, the level of its input, and its ring (`Program.rings`)."""


@dataclass(frozen=True)
class StorageOption:
    """One way to store the diagonals of a transform.

    Attributes:
        storage: which way.
        stored_bytes: bytes between uses.
        used_bytes: bytes of diagonals during a use, unless they are scratch.
        seconds: extra time of every use, relative to encoded diagonals, on one thread.
        making_seconds: time of the preparation, once, on one thread.
    """

    storage: Storage
    stored_bytes: int
    used_bytes: int
    seconds: float
    making_seconds: float


@dataclass(frozen=True)
class TransformStorage:
    """The ways to store one transform.

    Attributes:
        place: the transform; for bootstraps the index and `BOOTSTRAP`.
        uses: evaluations per sample.
        ways: from the fewest bytes up, times descending.
    """

    place: Place
    uses: int
    ways: tuple[StorageOption, ...]


def network_diagonals(network: Program, plan: PlanExecution, model: CostModel) -> list[TransformStorage]:
    """Return the transforms of a network, each at each level where it is used.

    Args:
        network: the network.
        plan: of its keys; determines the primes for which diagonals are encoded.
        model: predicts times.
    """
    uses: dict[Place, int] = {}
    for step in network.instructions:
        if step.opcode == "linear_transform":
            place = (step.argument, step.level + 1, network.rings[step.result])
            uses[place] = uses.get(place, 0) + 1
    out = []
    for (index, level, ring), count in uses.items():
        transform = network.operands.transforms[index]
        periods = list(_periods(transform))
        execution = plan.in_ring(ring)
        chain, special = execution.plan.workload.chain, execution.special(level, transform)
        primes = [*range(level + 1), *special]
        out.append(
            TransformStorage((index, level, ring), count, storage_options(periods, primes, chain, model))
        )
    return out


def storage_options(
    periods: Sequence[int], primes: Sequence[int], chain: Chain, model: CostModel
) -> tuple[StorageOption, ...]:
    """Return the three ways to store real diagonals of these periods, for these primes of a chain.

    Half of the coefficients of a real diagonal, and half of its residues, determine the others. Two of one
    period are transformed together.
    """
    weights = model.of_degree(chain.log_n)
    widths = (*chain.q, *chain.p)
    wide = sum(widths[prime] > NARROW_BITS for prime in primes)
    turns = sum(map(_butterflies, periods))
    transforms = ((len(primes) - wide) * turns * PAIRED, wide * turns * PAIRED)
    transformed = Work(transforms=transforms).seconds(weights)
    embedded = Work(embeddings=turns).seconds(weights)
    coefficients = 8 * sum(periods)
    return (
        # The slot values from which the coefficients are made are stored as well, as many words.
        StorageOption("streamed", 0, coefficients * 2, transformed + embedded, 0.0),
        StorageOption("coefficients", coefficients, 0, transformed, embedded),
        StorageOption("encoded", coefficients * len(primes), 0, 0.0, transformed + embedded),
    )


PAIRED = 0.6
"""Time of a real diagonal in the transform of two, relative to a transform by itself: 0.64 was measured at
N = 2^14, and 0.56 at 2^15."""

NARROW_BITS = 50.01
"""Wider primes have slower arithmetic."""


def bootstrap_diagonals(
    plan: BootstrapperPlan, index: int, uses: int, chain: Chain, model: CostModel
) -> TransformStorage:
    """Return the transforms of a bootstrap, which are all stored in one way.

    Args:
        plan: the bootstrap.
        index: its index in the network.
        uses: number per sample.
        chain: the primes.
        model: predicts times.
    """
    encoded, coefficients = (plan.diagonal_bytes(storage) for storage in ("encoded", "coefficients"))
    # Most have long periods, so assume the longest for all.
    limbs = encoded / (8 << chain.log_n)
    size = 2.0 ** (chain.log_n - 16)
    weights = model.of_degree(chain.log_n)
    transformed = Work(transforms=(limbs * size * chain.log_n / 16, 0.0)).seconds(weights)
    embeddings = coefficients / (8 << chain.log_n) * size * chain.log_n / 16
    embedded = Work(embeddings=embeddings).seconds(weights)
    return TransformStorage(
        (index, BOOTSTRAP, 0),
        uses,
        (
            StorageOption("streamed", 0, 0, transformed + embedded, 0.0),
            StorageOption("coefficients", coefficients, 0, transformed, embedded),
            StorageOption("encoded", encoded, 0, 0.0, transformed + embedded),
        ),
    )


BOOTSTRAP = -1
"""The level that marks a bootstrap's `Place`."""


def _butterflies(period: int) -> float:
    """Return the butterflies of a transform of a diagonal's subring, in units of a polynomial of 2^16
    coefficients."""
    degree = 2 * period
    return degree * log2(degree) / (16 * 2.0**16)


def _periods(transform: DiagonalMatrix) -> Iterator[int]:
    for diagonals, period in zip(transform.diagonals, transform.periods, strict=True):
        yield from (period for _ in diagonals)
