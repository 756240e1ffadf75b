"""Switches of ciphertexts from another ring into a workload's ring, and their keys.

A switch from a larger ring takes 2^(difference of the logarithms) keys, a switch from a smaller one a single
key. All keys are in the target ring, at the highest level at which ciphertexts arrive. A plan does not choose
them, but its bytes and its time include them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from keywright.plan.cost.model import CostModel, Work
from keywright.plan.cost.ring_switch import ring_switch_parts, ring_switch_shape, ring_switch_work
from keywright.plan.ring.chain import Chain, Shape


@dataclass(frozen=True)
class RingSwitches:
    """Ciphertexts that come from another ring at one level.

    Attributes:
        source: log2 of the degree of the other ring.
        level: of the ciphertexts.
        count: number of ciphertexts.
    """

    source: int
    level: int
    count: int


@dataclass(frozen=True)
class RingKeys:
    """The keys of all ciphertexts that come from another ring.

    Attributes:
        source: log2 of the degree of the other ring.
        shape: of every key.
    """

    source: int
    shape: Shape

    @property
    def parts(self) -> int:
        return ring_switch_parts(self.shape.chain, self.source) or 1

    @property
    def stored_bytes(self) -> int:
        """Bytes of all of them, uniform halves as seeds."""
        return self.parts * self.shape.stored_bytes

    def key_seconds(self, model: CostModel) -> float:
        """Return the predicted time of making them."""
        shape = self.shape
        rows, primes = len(shape.digits), shape.level + 1 + shape.special
        return self.parts * model.making_seconds(shape.chain.log_n, rows, primes)

    def work(self, level: int) -> Work:
        """Return the work of one switch at a level."""
        shape = self.shape
        work = ring_switch_work(shape, level, ring_switch_parts(shape.chain, self.source))
        if work is None:
            raise ValueError(f"keys of level {shape.level} cannot be used at level {level}")
        return work


def ring_keys(chain: Chain, switches: Iterable[RingSwitches]) -> list[RingKeys]:
    """Return the keys for switches into the ring of a chain, by falling degree of the source."""
    highest: dict[int, int] = {}
    for use in switches:
        highest[use.source] = max(highest.get(use.source, 0), use.level)
    return [
        RingKeys(source, ring_switch_shape(chain, level, ring_switch_parts(chain, source)))
        for source, level in sorted(highest.items(), reverse=True)
    ]


def ring_seconds(chain: Chain, switches: Sequence[RingSwitches], model: CostModel) -> float:
    """Return the predicted time of all switches into the ring of a chain."""
    keys = {each.source: each for each in ring_keys(chain, switches)}
    weights = model.of_degree(chain.log_n)
    return sum(use.count * keys[use.source].work(use.level).seconds(weights) for use in switches)
