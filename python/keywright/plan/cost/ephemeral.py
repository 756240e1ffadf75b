"""Keys to and from the ephemeral sparse secret, under which ModRaise runs.

Each can be made in only one way. They switch values below q_0, so they have one digit and a special prime of
at least q_0 at any level (crates/rlwe/src/planning/plan.rs, "Raising the modulus"). A plan does not choose
them, but its bytes and its time include them.
"""

from dataclasses import dataclass

from keywright.plan.ring.chain import Chain

from .model import CostModel
from .operations import Operation


@dataclass(frozen=True)
class EphemeralSwitch:
    """Switches with one of these keys.

    Attributes:
        weight: Hamming weight of the ephemeral secret.
        level: level of the result: 0 for the switch to the ephemeral secret, the raised level on the way
            back.
        special: number of special primes, the first of the chain.
        count: number of switches.
    """

    weight: int
    level: int
    special: int
    count: int

    def stored_bytes(self, chain: Chain) -> int:
        """Return the bytes of the key, its uniform half as a seed: one digit."""
        return chain.widths.key_bytes(1, self.level + 1 + self.special, seeded=True)

    def key_seconds(self, chain: Chain, model: CostModel) -> float:
        """Return the predicted time of making the key."""
        return model.making_seconds(chain.log_n, 1, self.level + 1 + self.special)

    def seconds(self, chain: Chain, model: CostModel) -> float:
        """Return the predicted time of all switches: each decomposes one prime, multiplies with one row and
        divides both halves."""
        switch = Operation("ephemeral", self.level, special=self.special, decomposed=1, key_rows=1, lowered=2)
        return self.count * switch.work(chain, ()).seconds(model.of_degree(chain.log_n))


@dataclass(frozen=True)
class FixedKeys:
    """Keys with one digit and no choice, to and from the ephemeral secret of a bootstrap. The workload's
    operations count their switches.

    Attributes:
        level: of the keys.
        special: number of special primes, the first of the chain.
        count: number of keys.
    """

    level: int
    special: int
    count: int

    def stored_bytes(self, chain: Chain) -> int:
        """Return the bytes of all of them, uniform halves as seeds."""
        return self.count * chain.widths.key_bytes(1, self.level + 1 + self.special, seeded=True)

    def key_seconds(self, chain: Chain, model: CostModel) -> float:
        """Return the predicted time of making them."""
        return self.count * model.making_seconds(chain.log_n, 1, self.level + 1 + self.special)
