"""Levels and digits of the keys of published strategies: the other two axes of the design space of KDS."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from keywright.errors import WorkloadError
from keywright.errors.choices import require_choice
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.key_plan import PlannedKey
from keywright.plan.ring.chain import Chain, Shape, shapes
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.workload import Workload

Digits = Literal["maximum", "dynamic"]
Levels = Literal["all", "needed"]


@dataclass(frozen=True)
class KeyPolicy:
    """The shapes of keys, once their automorphisms are known.

    Attributes:
        alpha: primes per digit: a number; "maximum", as many as the special primes of the parameters hold
            (`largest_alpha`), as libraries do; or "dynamic", the fastest at each level, with dropped
            ciphertext primes as special primes, and one key for each alpha that occurs (KDS section 5.2).
        levels: "all" makes keys for the top level; "needed" for the highest level at which a key is used (KDS
            section 5.3).

    Raises:
        ParameterError: a name is unknown.
    """

    alpha: int | Digits
    levels: Levels

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, int):
            require_choice("alpha", self.alpha, get_args(Digits))
        require_choice("levels", self.levels, get_args(Levels))

    def keys(
        self, workload: Workload, model: CostModel, uses: Mapping[Automorphism | None, Iterable[int]]
    ) -> dict[tuple[Automorphism | None, int], PlannedKey]:
        """Return the key for each automorphism (None: relinearization) and level of use.

        Raises:
            WorkloadError: no key of that alpha fits in the secure modulus.
        """
        chain = workload.chain

        @cache
        def fastest(level: int) -> Shape:
            return _fastest(workload, model, level)

        @cache
        def digits(level: int, alpha: int) -> Shape:
            return _with_digits(workload, level, alpha)

        def alpha_at(level: int) -> int:
            if isinstance(self.alpha, int):
                return self.alpha
            return largest_alpha(chain) if self.alpha == "maximum" else fastest(level).alpha

        out: dict[tuple[Automorphism | None, int], PlannedKey] = {}
        for automorphism, levels in uses.items():
            used = sorted(set(levels))
            chosen = {level: alpha_at(level) for level in used}
            for level, alpha in chosen.items():
                if self.levels == "needed":
                    top = max(other for other in used if chosen[other] == alpha)
                elif self.alpha == "dynamic":
                    top = max(other for other in range(chain.max_level + 1) if alpha_at(other) == alpha)
                else:
                    top = chain.max_level
                shape = fastest(top) if self.alpha == "dynamic" else digits(top, alpha)
                out[automorphism, level] = PlannedKey(automorphism, shape)
        return out


@cache
def largest_alpha(chain: Chain) -> int:
    """Return the largest alpha for which every digit of a top-level key is within the product of the special
    primes. Lattigo and OpenFHE choose their special primes for it.

    1 if the product is below a single prime.
    """
    top = chain.max_level
    special = min(len(chain.p), len(chain.special_candidates(top)))
    return max(
        (
            alpha
            for alpha in range(1, len(chain.q) + 1)
            if Shape(chain, top, alpha, special).digits == tuple(range(0, top + 1, alpha))
        ),
        default=1,
    )


def _fastest(workload: Workload, model: CostModel, level: int) -> Shape:
    """Return the shape of a key of this level whose switch is fastest."""

    def seconds(shape: Shape) -> float:
        cost = model.switch(shape, level)
        return float("inf") if cost is None else cost.alone

    result = shapes(workload.chain, level)
    if not result:
        raise WorkloadError(
            f"{workload.name}: no key of level {level} is within {workload.chain.modulus_bound} bits; use "
            "parameters with fewer levels, or a larger ring"
        )
    return min(result, key=seconds)


def _with_digits(workload: Workload, level: int, alpha: int) -> Shape:
    """Return the key with these digits and the fewest special primes that hold them; if there are not enough
    primes, the key with all special primes and smaller digits."""
    chain = workload.chain
    targets = tuple(range(0, level + 1, alpha))
    for special in range(1, len(chain.special_candidates(level)) + 1):
        shape = Shape(chain, level, alpha, special)
        if shape.legal and (shape.digits == targets or special == len(chain.special_candidates(level))):
            return shape
    raise WorkloadError(
        f"{workload.name}: no key of level {level} with {alpha} primes per digit is within "
        f"{chain.modulus_bound} bits"
    )
