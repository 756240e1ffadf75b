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

Counting bounds time as well. Within B bytes there are at most K = B / (bytes of the smallest key of level l)
keys of level l and up. Of the automorphisms that single ciphertexts of level l need, at most K have one hop,
at most C(K + 2, 2) - 1 have one or two, and so on; if the ones that are needed most have the fewest hops, the
time is least. Fewer bytes give fewer keys, so the same bounds bytes from below for a given time.

Of a part that can be made in several ways the one of least time counts, keys aside. What the program
computes beside key switches depends on the primes that these remove: the least is counted of what any key
could make of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from .cost import CostModel, Form
from .galois import Automorphism
from .open_program import OpenProgram
from .operations import Operation
from .optimal import candidate_shapes
from .program import Group, Program

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
        program: Program | OpenProgram,
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
        opened = OpenProgram.of(program)
        program = opened.program
        self._uses: list[_Use] = []
        self._model, self._max_hops = model, max_hops
        self._least_bytes = cache(
            lambda level: min(shape.stored_bytes for shape in candidate_shapes(program, model, level))
        )
        self._least_seconds = cache(lambda level, form: self._least(program, level, form))
        self._ephemeral_bytes = program.ephemeral_bytes
        self._fixed_bytes = float(self._ephemeral_bytes)
        self._fixed_seconds = program.ephemeral_seconds(model)
        for choice in opened.choices:
            times = (sum(map(self._fastest, way.groups)) for way in choice.alternatives)
            self._fixed_seconds += len(choice.places) * min(times)
        self._constant = self._fixed_seconds
        keyed = {*opened.every().highest_levels(), *extra}
        merged = program.merged().groups
        for group in merged:
            alone, shared, own = self._least_seconds(group.level, group.form)
            several = len(group.targets) > 1
            hop = group.count * (own if several else alone)
            if several:
                self._constant += group.count * shared
            for target in group.targets:
                ways: list[_Way] = [(hop, (target,))]
                if max_hops >= 3:
                    ways.append((hop if several else 3 * hop, ()))
                for between in keyed if max_hops >= 2 else ():
                    rest = program.automorphisms.subtract(target, between)
                    if rest in keyed and between <= rest:
                        ways.append((hop if several else 2 * hop, tuple({between, rest})))
                self._uses.append(_Use(group.level, tuple(ways)))
        relinearizations = 0.0
        for use in program.relinearizations:
            least = self._least_seconds(use.level, "whole")[0]
            relinearizations += use.count * least
            self._uses.append(_Use(use.level, ((use.count * least, (None,)),)))
        self._uses.sort(key=lambda use: use.level)
        if program.relinearizations:
            self._fixed_bytes += self._least_bytes(max(use.level for use in program.relinearizations))
        self._fixed_seconds += relinearizations
        self._weights = self._needed_alone(merged)
        self._fixed_seconds += sum(self._fastest(group) for group in merged if len(group.targets) > 1)
        self.rest = self._least_rest(opened)
        """Seconds that no plan takes less than beside its key switches."""
        self.counted_bytes = self._count(program, max_hops)
        """No plan of so many hops has fewer bytes, by counting."""

    def _least(self, program: Program, level: int, form: Form) -> tuple[float, float, float]:
        """Least seconds of a switch of a form alone, of a decomposition and of the rest of a switch."""
        found = [self._model.switch(shape, level) for shape in candidate_shapes(program, self._model, level)]
        costs = [cost for cost in found if cost is not None]
        return (
            min(cost.shared + cost.of_form(form) for cost in costs),
            min(cost.shared for cost in costs),
            min(cost.of_form(form) for cost in costs),
        )

    def _least_rest(self, opened: OpenProgram) -> float:
        program, weights = opened.program, self._model.of_degree(opened.program.chain.log_n)
        keyed = sorted({group.level for group in opened.every().groups})
        relinearized = sorted({use.level for use in program.relinearizations})

        @cache
        def removed(level: int, levels: tuple[int, ...]) -> list[tuple[int, ...]]:
            shapes = [
                shape for at in levels if at >= level for shape in candidate_shapes(program, self._model, at)
            ]
            found = (self._model.switch(shape, level) for shape in shapes)
            return sorted({cost.removed for cost in found if cost is not None})

        def least(operation: Operation) -> float:
            chain, level = program.chain, operation.level
            top = chain.max_level + 1
            special = tuple(range(top, top + len(chain.p)))
            first = {special, *removed(level, tuple(keyed))}
            second = removed(level, tuple(relinearized)) if operation.merged else [()]
            works = (operation.work(chain, one, other) for one in first for other in second or [()])
            return operation.count * min(work.seconds(weights) for work in works)

        total = sum(map(least, program.operations))
        for choice in opened.choices:
            ways = (sum(map(least, way.operations)) for way in choice.alternatives)
            total += len(choice.places) * min(ways)
        return total

    def _fastest(self, group: Group) -> float:
        """Least seconds of a group, whatever keys there are."""
        alone, shared, own = self._least_seconds(group.level, group.form)
        number = len(group.targets)
        return group.count * (alone if number == 1 else shared + number * own if number else 0.0)

    def _needed_alone(self, groups: Iterable[Group]) -> dict[int, list[float]]:
        """For each level the seconds of one hop of each automorphism that single ciphertexts need, most
        first."""
        found: dict[int, dict[Automorphism, float]] = {}
        for group in groups:
            if len(group.targets) == 1:
                of_level = found.setdefault(group.level, {})
                target = group.targets[0]
                of_level[target] = of_level.get(target, 0.0) + self._fastest(group)
        return {level: sorted(of_level.values(), reverse=True) for level, of_level in found.items()}

    def _count(self, program: Program, max_hops: int) -> float:
        """Bytes of the fewest keys at each level that can make what is needed there."""
        levels = sorted(program.highest_levels().values(), reverse=True)
        total, keys = self._fixed_bytes, 0
        for made, level in enumerate(levels, 1):
            while comb(keys + max_hops, max_hops) - 1 < made:
                keys += 1
                total += self._least_bytes(level)
        return total

    def counted_seconds(self, stored_bytes: float) -> float:
        """No plan of at most these bytes takes less time, by counting; infinite if there is none."""
        total = self._fixed_seconds
        for level, weights in self._weights.items():
            keys = int(max(0.0, stored_bytes - self._fixed_bytes) / self._least_bytes(level) + 1e-9)
            done = 0
            for hops in range(1, self._max_hops + 1):
                most = comb(keys + hops, hops) - 1
                total += hops * sum(weights[done:most])
                done = max(done, min(most, len(weights)))
            if done < len(weights):
                return float("inf")
        return total

    def _counted_bytes_within(self, seconds: float) -> float:
        """No plan that takes at most these seconds has fewer bytes, by counting."""
        low, high = (
            0.0,
            self._fixed_bytes
            + sum(self._least_bytes(level) * len(weights) for level, weights in self._weights.items()),
        )
        if self.counted_seconds(high) > seconds:
            return low
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.counted_seconds(middle) > seconds else (low, middle)
        return low

    def combined(self, multiplier: float) -> float:
        """A lower bound of multiplier * bytes + seconds."""
        paid: dict[Automorphism | None, float] = {}
        total = self._constant + multiplier * self._ephemeral_bytes
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
        seconds -= self.rest
        found = ((self.combined(m) - seconds) / m for m in self._multipliers(seconds))
        return max(self.counted_bytes, self._counted_bytes_within(seconds), *found)

    def seconds(self, stored_bytes: float) -> float:
        """No plan of at most these bytes takes less time."""
        fastest = self.combined(0.0)
        found = (self.combined(m) - m * stored_bytes for m in self._multipliers(fastest))
        return max(self.counted_seconds(stored_bytes), fastest, *found) + self.rest

    def _multipliers(self, seconds: float) -> Iterable[float]:
        """From one at which all keys of the top level weigh a thousandth of the time to one at which a
        single key weighs all of it."""
        if not self._uses:
            return ()
        largest = self._least_bytes(max(use.level for use in self._uses))
        return (
            float(m)
            for m in np.geomspace(1e-3 * seconds / (largest * len(self._uses)), seconds / largest, 24)
        )
