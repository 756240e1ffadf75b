"""Keys to and from the ephemeral sparse secret under which the modulus is raised.

There is one way to make each: what they switch is below q_0, so they have one digit and a special prime of at
least q_0 at whatever level (crates/rlwe/src/plan.rs, "Raising the modulus"). They are no part of a plan's
choices, but of its bytes and its time.
"""

from dataclasses import dataclass

from keywright.plan.ring.chain import Chain

from .cost import NARROW_BITS, CostModel, Work


@dataclass(frozen=True)
class EphemeralSwitch:
    """Switches of one of these keys.

    Attributes:
        weight: Hamming weight of the ephemeral secret.
        level: of the result: 0 to the ephemeral secret, the level raised to on the way back.
        special: number of special primes, the first of the chain.
        count: how often.
    """

    weight: int
    level: int
    special: int
    count: int

    def stored_bytes(self, chain: Chain) -> int:
        """Bytes of the key, its uniform half as a seed: one digit."""
        return (8 << chain.log_n) * (self.level + 1 + self.special)

    def key_seconds(self, chain: Chain, model: CostModel) -> float:
        """Predicted time of making the key."""
        return _key_seconds(self.level + 1 + self.special, chain, model)

    def seconds(self, chain: Chain, model: CostModel) -> float:
        """Predicted time of all of them: the terms of `cost` for one digit of one prime."""
        size = 2.0 ** (chain.log_n - 16)
        turns = size * chain.log_n / 16
        kept, removed = chain.q[: self.level + 1], chain.p[: self.special]
        targets = (*kept, *removed)
        narrow, narrow_kept = _narrow(targets), _narrow(kept)
        wide, wide_kept = len(targets) - narrow, len(kept) - narrow_kept
        divided = 2 * len(removed)
        work = Work(
            transforms=(3 * narrow * turns, 3 * wide * turns),
            products=(narrow * size, wide * size),
            conversions=((narrow + divided * narrow_kept) * size, (wide + divided * wide_kept) * size),
        )
        return self.count * work.seconds(model.of_degree(chain.log_n))


@dataclass(frozen=True)
class FixedKeys:
    """Keys with one digit that have one way to be made and used, whose switches the workload's operations
    count: those of an engine's bootstrap to and from its ephemeral secret.

    Attributes:
        level: of the keys.
        special: number of special primes, the first of the chain.
        count: how many keys.
    """

    level: int
    special: int
    count: int

    def stored_bytes(self, chain: Chain) -> int:
        """Bytes of all of them, uniform halves as seeds."""
        return self.count * (8 << chain.log_n) * (self.level + 1 + self.special)

    def key_seconds(self, chain: Chain, model: CostModel) -> float:
        """Predicted time of making them."""
        return self.count * _key_seconds(self.level + 1 + self.special, chain, model)


def _key_seconds(primes: int, chain: Chain, model: CostModel) -> float:
    """Making a key of one row over so many primes."""
    weights, size = model.of_degree(chain.log_n), 2.0 ** (chain.log_n - 16)
    return size * (primes * (weights.key_limb + weights.key_prime) + weights.key_row)


def _narrow(bits: tuple[float, ...]) -> int:
    return sum(width <= NARROW_BITS for width in bits)
