"""A lower bound for all plans: dual ascent on the linear program.

For a multiplier m (seconds per byte) no plan has less than

    min ( m * bytes + seconds ) = min ( sum_k m b_k y_k + sum_u t_u ),

over keys y and a way for each use u. Let use u have a budget v_u and pay w_ua towards keys of automorphism
a. If

    v_u - sum_(a in way) w_ua <= seconds of the way     for every way of u, and
    sum_(u at levels <= L) w_ua <= m b_(a, L)           for every key (a, L),

then sum_u v_u is a lower bound, by weak duality of the relaxation in which a way needs its keys to the
extent that it is taken. Budgets are raised in ascending order of levels, each as far as the keys allow;
b_(a, L) grows with L, so that the key of the use's own level is the one that binds. In groups that can share
a decomposition a way is charged only what its own products and division take, and the group the cheapest
decomposition once.
Where three hops or more are allowed there is a way of three hops that needs no key at all, and this bound
says little.

Counting says something for any number of hops. Automorphisms commute, so m keys make at most C(m + h, h) - 1
of them with h hops. For every level l the keys of levels from l up make all targets that are needed at such
a level; let m_l be the fewest for which that is possible by count. The k-th highest key then has at least
the highest level l with m_l >= k, and at least the bytes of the smallest key of that level. This holds
whatever automorphisms have keys, and for any time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from .cost import CostModel
from .galois import Automorphism
from .optimal import candidate_shapes
from .program import Program

_Way = tuple[float, tuple[Automorphism | None, ...]]


@dataclass(frozen=True)
class _Use:
    """A target at its level with its ways: seconds, and the automorphisms whose keys are needed."""

    level: int
    ways: tuple[_Way, ...]


class LowerBound:
    """The uses of a program; bounds for any multiplier."""

    def __init__(
        self,
        program: Program,
        model: CostModel,
        extra: Iterable[Automorphism] = (),
        *,
        max_hops: int = 2,
    ) -> None:
        """Collect uses and ways.

        Args:
            program: what is planned.
            model: predicts times.
            extra: automorphisms that may have a key although nothing needs them.
            max_hops: most hops of a target.
        """
        self._constant = 0.0
        self._uses: list[_Use] = []
        self._least_bytes = cache(
            lambda level: min(shape.stored_bytes for shape in candidate_shapes(program, model, level))
        )
        keyed = {*program.highest_levels(), *extra}
        for group in program.merged().groups:
            found = [
                model.switch(shape, group.level) for shape in candidate_shapes(program, model, group.level)
            ]
            costs = [cost for cost in found if cost is not None]
            several = len(group.targets) > 1
            hop = group.count * min(cost.own if several else cost.alone for cost in costs)
            if several:
                self._constant += group.count * min(cost.shared for cost in costs)
            for target in group.targets:
                ways: list[_Way] = [(hop, (target,))]
                if max_hops >= 3:
                    ways.append((hop if several else 3 * hop, ()))
                for between in keyed if max_hops >= 2 else ():
                    rest = program.automorphisms.subtract(target, between)
                    if rest in keyed and between <= rest:
                        ways.append((hop if several else 2 * hop, tuple({between, rest})))
                self._uses.append(_Use(group.level, tuple(ways)))
        for use in program.relinearizations:
            found = [model.switch(shape, use.level) for shape in candidate_shapes(program, model, use.level)]
            least = min(cost.alone for cost in found if cost is not None)
            self._uses.append(_Use(use.level, ((use.count * least, (None,)),)))
        self._uses.sort(key=lambda use: use.level)
        self.counted_bytes = self._count(program, max_hops)
        """No plan of so many hops has fewer bytes, by counting."""

    def _count(self, program: Program, max_hops: int) -> float:
        """Bytes of the fewest keys at each level that can make what is needed there."""
        levels = sorted(program.highest_levels().values(), reverse=True)
        total, keys = 0.0, 0
        for made, level in enumerate(levels, 1):
            while comb(keys + max_hops, max_hops) - 1 < made:
                keys += 1
                total += self._least_bytes(level)
        if program.relinearizations:
            total += self._least_bytes(max(use.level for use in program.relinearizations))
        return total

    def combined(self, multiplier: float) -> float:
        """A lower bound of multiplier * bytes + seconds."""
        paid: dict[Automorphism | None, float] = {}
        total = self._constant
        for use in self._uses:
            price = multiplier * self._least_bytes(use.level)
            capacity = {a: price - paid.get(a, 0.0) for _, keys in use.ways for a in keys}
            budget = min(seconds + sum(capacity[a] for a in keys) for seconds, keys in use.ways)
            own: dict[Automorphism | None, float] = {}
            for seconds, keys in use.ways:
                short = budget - seconds - sum(own.get(a, 0.0) for a in keys)
                for a in keys:
                    if short > 0:
                        pay = min(short, capacity[a] - own.get(a, 0.0))
                        own[a] = own.get(a, 0.0) + pay
                        short -= pay
            for a, pay in own.items():
                paid[a] = paid.get(a, 0.0) + pay
            total += budget
        return total

    def stored_bytes(self, seconds: float) -> float:
        """No plan that takes at most these seconds has fewer bytes."""
        found = ((self.combined(m) - seconds) / m for m in self._multipliers(seconds))
        return max(self.counted_bytes, *found)

    def seconds(self, stored_bytes: float) -> float:
        """No plan of at most these bytes takes less time."""
        fastest = self.combined(0.0)
        return max(self.combined(m) - m * stored_bytes for m in self._multipliers(fastest))

    def _multipliers(self, seconds: float) -> Iterable[float]:
        """From one at which all keys of the top level weigh a thousandth of the time to one at which a
        single key weighs all of it."""
        largest = self._least_bytes(max(use.level for use in self._uses))
        return (
            float(m)
            for m in np.geomspace(1e-3 * seconds / (largest * len(self._uses)), seconds / largest, 24)
        )
