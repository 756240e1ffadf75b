"""Keys to and from the ephemeral sparse secret under which the modulus is raised.

There is one way to make each: what they switch is below q_0, so they have one digit and a special prime of
at least q_0 at whatever level (crates/rlwe/src/switch/plan.rs, "Raising the modulus"). A plan does not choose
them, but its bytes and its time include them.
"""

from dataclasses import dataclass

from keywright.plan.ring.chain import Chain

from .model import CostModel
from .operations import Operation


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
        return chain.widths.key_bytes(1, self.level + 1 + self.special, seeded=True)

    def key_seconds(self, chain: Chain, model: CostModel) -> float:
        """Predicted time of making the key."""
        return model.making_seconds(chain.log_n, 1, self.level + 1 + self.special)

    def seconds(self, chain: Chain, model: CostModel) -> float:
        """Predicted time of all of them: each decomposes one prime, multiplies with one row and divides both
        halves."""
        switch = Operation("ephemeral", self.level, special=self.special, decomposed=1, key_rows=1, lowered=2)
        return self.count * switch.work(chain, ()).seconds(model.of_degree(chain.log_n))


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
        return self.count * chain.widths.key_bytes(1, self.level + 1 + self.special, seeded=True)

    def key_seconds(self, chain: Chain, model: CostModel) -> float:
        """Predicted time of making them."""
        return self.count * model.making_seconds(chain.log_n, 1, self.level + 1 + self.special)
