"""What operations take beside their operands and their results, while they run."""

from collections.abc import Sequence

from keywright._core import BootstrapperPlan, polynomial_depth
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.workload.network_protocol import InstructionLike, NetworkLike

from .ciphertexts import ciphertext_bytes

POSITIONS = 2
"""Primes that a thread works on at a time."""


BABY_BYTES = 64 << 20
"""Bytes of baby steps that a thread keeps; more are made in turns."""

DIGITS = 6
"""Limbs for each prime that a thread works on: a raised digit, products, what they are added to."""


class Scratch:
    """Scratch memory of operations in one ring.

    Args:
        plan: of the keys of the ring.
        threads: that compute.
    """

    def __init__(self, plan: PlanExecution, threads: int) -> None:
        self.plan, self.chain, self.threads = plan, plan.plan.workload.chain, threads
        self.limb = 8 << self.chain.log_n

    def _special(self, level: int) -> int:
        return len(self.plan.special(level))

    def switch(self, level: int) -> int:
        """A key switch: the decomposition, both sums over the raised primes, and what they are divided to."""
        primes = level + 1
        return self.limb * (primes + 1 + 2 * (primes + self._special(level)) + 2 * primes)

    def product(self, level: int) -> int:
        """A product of ciphertexts: three polynomials, and a key switch."""
        return self.limb * 3 * (level + 1) + self.switch(level)

    def transform(
        self,
        level: int,
        inputs: int,
        babies: int,
        giants: int,
        special: int | None = None,
        turns: int | None = None,
    ) -> int:
        """A linear transform: the sum of every giant step over the raised primes, and beside them what baby
        steps take, or what giant steps take after them.

        Args:
            level: of its inputs.
            inputs: how many there are.
            babies: baby steps of all of them.
            giants: giant steps.
            special: primes that its diagonals have beside those of the level; as most of the level's where
                not given.
            turns: giant steps that are made at a time; all where not given.
        """
        primes = level + 1 + (self._special(level) if special is None else special)
        kept = min(self.limb * 2 * babies * POSITIONS, BABY_BYTES)
        first = self.limb * inputs * (level + 2) + self.threads * (kept + self.limb * POSITIONS * DIGITS)
        second = self.limb * ((turns or giants) * (2 * level + 3) + self.threads * POSITIONS * DIGITS)
        return self.limb * 2 * giants * primes + max(first, second)

    def instruction(self, network: NetworkLike, step: InstructionLike, bootstraps: Sequence[int]) -> int:
        """An instruction of a network.

        Args:
            network: whose transforms and polynomials it refers to.
            step: the instruction.
            bootstraps: scratch of each bootstrap, in order.
        """
        match step.opcode:
            case "linear_transform":
                transform = network.transforms[step.argument]
                used = [diagonals for diagonals in transform.diagonals if diagonals]
                babies = sum(len({r % transform.n1 for r in diagonals}) for diagonals in used)
                giants = len({r - r % transform.n1 for diagonals in used for r in diagonals})
                return self.transform(step.level + 1, len(used), babies, giants)
            case "rotate" | "switch_ring":
                return self.switch(step.level)
            case "mul":
                return self.product(step.level + 1)
            case "polynomial":
                degree = network.polynomials[step.argument].degree
                top = step.level + polynomial_depth(degree)
                return self.polynomial(top, degree)
            case "bootstrap":
                return bootstraps[step.argument]
            case _:
                return 0

    def polynomial(self, level: int, degree: int) -> int:
        """A polynomial by baby and giant steps: the powers that are kept, and a product."""
        powers = 2 * (degree + 1) ** 0.5
        return int(powers * ciphertext_bytes(self.chain.log_n, level)) + self.product(level)

    def bootstrap(self, plan: BootstrapperPlan) -> int:
        """A bootstrap: its largest stage."""
        stages = []
        for (_, level, ways), (_, now) in zip(plan.factor_ways, plan.factors, strict=True):
            ((groups, (special, _)),) = ((found, beside) for babies, found, beside in ways if babies == now)
            if special is not None:
                continue
            babies = 1 + sum(len(elements) for form, elements, _ in groups if form == "baby")
            giants = 1 + sum(count for form, _, count in groups if form == "giant")
            stages.append(self.transform(level, 1, babies, giants, turns=1))
        for stage, level, special, counts, _ in plan.operations:
            if stage == "coeffs_to_slots" and special is not None:  # With raising the modulus.
                steps = max(1, counts.get("lowered", 0) // 2)
                quotients = steps * ciphertext_bytes(self.chain.log_n, level)
                stages.append(
                    quotients + self.transform(level, 1, counts.get("key_rows", 1), steps, special, turns=1)
                )
        top, _ = plan.levels["eval_mod"]
        powers = sum(
            count
            for stage, _, _, counts, count in plan.operations
            if stage == "eval_mod" and "merged" in counts
        )
        vectors = 1 if plan.values == "real" else 2
        kept = vectors * (powers // 2 + 1) * ciphertext_bytes(self.chain.log_n, top)
        stages.append(kept + self.product(top))
        return max(stages)
