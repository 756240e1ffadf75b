"""Levels and digits of the keys of the published strategies: the other two axes of the design space of
KDS."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from keywright.plan.chain import Shape, shapes
from keywright.plan.cost import CostModel
from keywright.plan.galois import Automorphism
from keywright.plan.key_plan import PlannedKey
from keywright.plan.program import Program, ProgramError


@dataclass(frozen=True)
class KeyPolicy:
    """How keys are shaped once it is known which automorphisms have one.

    Attributes:
        alpha: primes per digit: a number; "maximum", what the special primes of the parameters hold; or
            "dynamic", the fastest at each level, ciphertext primes that are no longer there serving as
            special primes, one key for each alpha that occurs (KDS section 5.2).
        levels: "all" makes keys for the top level; "needed" for the highest level at which a key is used
            (KDS section 5.3).
    """

    alpha: int | Literal["maximum", "dynamic"]
    levels: Literal["all", "needed"]

    def keys(
        self, program: Program, model: CostModel, uses: Mapping[Automorphism | None, Iterable[int]]
    ) -> dict[tuple[Automorphism | None, int], PlannedKey]:
        """The key for each automorphism (None: relinearisation) and level of use.

        Raises:
            ProgramError: no key of that alpha fits in the modulus that is secure.
        """
        out: dict[tuple[Automorphism | None, int], PlannedKey] = {}
        for automorphism, levels in uses.items():
            used = sorted(set(levels))
            chosen = {level: self._alpha(program, model, level) for level in used}
            for level, alpha in chosen.items():
                if self.levels == "needed":
                    top = max(other for other in used if chosen[other] == alpha)
                elif self.alpha == "dynamic":
                    everywhere = range(program.chain.max_level + 1)
                    top = max(other for other in everywhere if self._alpha(program, model, other) == alpha)
                else:
                    top = program.chain.max_level
                out[automorphism, level] = PlannedKey(automorphism, self._shape(program, top, alpha))
        return out

    def _alpha(self, program: Program, model: CostModel, level: int) -> int:
        if isinstance(self.alpha, int):
            return self.alpha
        if self.alpha == "maximum":
            return len(program.chain.p)

        def seconds(shape: Shape) -> float:
            cost = model.switch(shape, level)
            return float("inf") if cost is None else cost.alone

        found = shapes(program.chain, level)
        if not found:
            raise ProgramError(
                f"{program.name}: no key of level {level} is within {program.chain.modulus_bound} bits; the "
                "program needs more than any plan can give"
            )
        return min(found, key=seconds).alpha

    def _shape(self, program: Program, level: int, alpha: int) -> Shape:
        """The key of these digits with the fewest special primes."""
        chain = program.chain
        known = [shape for shape in shapes(chain, level) if shape.alpha == alpha]
        if known:
            return known[0]
        for special in range(1, len(chain.pool(level)) + 1):
            shape = Shape(chain, level, alpha, special)
            widest = max(sum(chain.q[start : min(start + alpha, level + 1)]) for start in shape.digits)
            if shape.legal and (widest <= shape.special_bits or special == len(chain.pool(level))):
                return shape
        raise ProgramError(
            f"{program.name}: no key of level {level} with {alpha} primes a digit is within "
            f"{chain.modulus_bound} bits"
        )
