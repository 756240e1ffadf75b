"""A linear program whose minimum bounds the cost of all plans.

For a plan and a level l let S_l be the automorphisms that have a key of level l or above; S_l contains S_L
for L > l. Every plan satisfies the following. The linear program requires only that, with values between 0
and 1 instead of 0 or 1:

    k_l         number of elements of S_l; not less than k_L for L > l
    s_al        a is in S_l; at most s_al' for l' < l, and sum_a s_al <= k_l
    R_alj       a is made from a ciphertext of level l in at most j hops: R_al1 = s_al, R_alh = 1 where a is
                needed; grows with j, and as l falls
    z_abl       a and b are in S_l, for a + b needed at l: at most s_al and s_bl

*Two hops.* R_al2 <= s_al + sum of z_bcl over b + c = a: a key serves any number of pairs, but each pair needs
two existing keys. Pairs consist of automorphisms that the workload needs.

*Counting.* Automorphisms commute, so k keys make, in at most j hops, at most C(k + j, j) - 1 automorphisms,
of which k are in S. For any keys, therefore,

    sum over a needed at levels >= l of (R_alj - s_al) <= C(k_l + j, j) - 1 - k_l.

The right side, capped at the number of needed automorphisms, is a sum of steps d_1 >= d_2 >= ... in [0, 1],
one for each key, and the steps of the fewest keys that suffice for j = h are 1.

*Bytes.* With b_l the least bytes of a key of level l or above, a key of level L has at least b_L = sum_(l <=
L) (b_l - b_(next lower l)), so that all have at least sum_l (b_l - b_(next lower)) k_l.

*Seconds.* A ciphertext with one target takes a switch for each hop: the cheapest in its form, and the
cheapest whole switch for each of the sum_(j < h) (1 - R_alj) further hops. A ciphertext with n targets takes
at least n times the minimum of (an n-th of a decomposition plus the rest). A target of i hops has i - 1
intermediate results, which are decomposed themselves and cannot have the form of a step of a linear
transform. Hence the group has E >= sum_(j < h) (1 - R_alj) of these, for each of its targets.

*Open parts.* Each alternative of a part has a share of 1, and its groups the same share of their seconds. A
target is made to the extent that the alternatives that need it are taken. The further hops of a group count
only beyond the share of other alternatives; those of all alternatives that need a target count together,
beyond the share of alternatives that do not.

*Shapes.* Larger keys are faster. Let x_a be the extra bytes of a's largest key over the smallest of its
level. A target with one hop saves at most a concave function of x_a, relative to its time with the smallest
keys. All targets of a group save at most what the fastest shape saves, if E is 1 or more. Alternatives of
open parts are assumed to be as fast as with the largest keys.

Bytes or seconds are minimised within a budget of the other. Pairs are left out at levels whose keys are
small, and beyond a maximum number of pairs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import comb

from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.open_workload import Choice, OpenWorkload
from keywright.plan.workload.workload import Group, Workload

from .least_costs import LeastCosts
from .linear_program import LinearProgram

PAIRS = 3200
"""Maximum number of pairs of keys, allotted to levels from the top down."""
LIGHT = 0.04
"""A level whose keys have less than this share of the bytes of a top-level key has no pairs."""
MEGABYTE = 1e6


class Relaxation:
    """The linear program of one workload; can be solved for several budgets."""

    def __init__(
        self,
        opened: OpenWorkload,
        least: LeastCosts,
        extra: Iterable[Automorphism] = (),
        *,
        max_hops: int,
    ) -> None:
        """Set up the linear program.

        Args:
            opened: the workload.
            least: least costs of key switches.
            extra: automorphisms that may have a key although nothing needs them.
            max_hops: maximum hops of a target.
        """
        self._least = least
        self._lp, self._hops = LinearProgram(), max_hops
        self._seconds: defaultdict[int, float] = defaultdict(float)
        self._bytes: defaultdict[int, float] = defaultdict(float)
        self._fixed_seconds = 0.0
        self._free_bytes: dict[float, float] = {}
        self._free_seconds: dict[float, float] = {}
        every, fixed = opened.every().merged().groups, opened.workload.merged().groups
        self._levels = sorted({group.level for group in every})
        needed = _levels_of(every)
        self._always = _levels_of(fixed)
        """Automorphisms with the levels at which they are needed for all alternatives."""
        self._most = float(max_hops * sum(len(group.targets) for group in every))
        pairs = self._pairs(opened.workload, needed, {*needed, *extra})
        self._count_keys()
        self._add_keys(needed, pairs)
        self._reach: dict[tuple[Automorphism, int, int], int] = {}
        for automorphism, levels in needed.items():
            self._add_reach(automorphism, sorted(levels))
        for (target, level), summands in pairs.items():
            self._add_pairs(target, level, summands)
        for level in self._levels:
            self._add_count(level, needed)
        self._larger: dict[Automorphism, int] = {}
        for group in fixed:
            self._add_group(group)
        for choice in opened.choices:
            self._add_choice(choice)

    def _pairs(
        self,
        workload: Workload,
        needed: Mapping[Automorphism, Iterable[int]],
        keyed: Iterable[Automorphism],
    ) -> dict[tuple[Automorphism, int], list[tuple[Automorphism, Automorphism]]]:
        """Return, for targets by level, the pairs of automorphisms that make them."""
        subtract = workload.automorphisms.subtract
        candidates = sorted(keyed)
        known = set(candidates)
        out: dict[tuple[Automorphism, int], list[tuple[Automorphism, Automorphism]]] = {}
        if self._hops == 1 or not self._levels:
            return out
        summands: dict[Automorphism, list[tuple[Automorphism, Automorphism]]] = {}
        total, light = 0, LIGHT * self._least.stored_bytes(self._levels[-1])
        for level in reversed(self._levels):
            targets = [target for target, levels in needed.items() if level in levels]
            for target in targets:
                if target not in summands:
                    both = ((a, subtract(target, a)) for a in candidates if a != target)
                    summands[target] = [(a, b) for a, b in both if a <= b and b in known]
            total += sum(len(summands[target]) for target in targets)
            if self._least.stored_bytes(level) < light or total > PAIRS:
                break
            out |= {(target, level): summands[target] for target in targets}
        return out

    def _count_keys(self) -> None:
        """Add k_l."""
        lp = self._lp
        self._keys = {level: lp.column(0.0, self._most) for level in self._levels}
        below: int | None = None
        for level in self._levels:
            least = self._least.stored_bytes(level)
            if below is not None:
                lp.at_least({self._keys[below]: 1.0, self._keys[level]: -1.0}, 0.0)
                least -= self._least.stored_bytes(below)
            self._bytes[self._keys[level]] = least / MEGABYTE
            below = level

    def _add_keys(
        self,
        needed: Mapping[Automorphism, Iterable[int]],
        pairs: Mapping[tuple[Automorphism, int], Sequence[tuple[Automorphism, Automorphism]]],
    ) -> None:
        """Add s_al, up to the highest level at which a is needed or in a pair."""
        lp, highest = self._lp, {a: max(levels) for a, levels in needed.items()}
        for (_, level), summands in pairs.items():
            for a in {a for pair in summands for a in pair}:
                highest[a] = max(highest.get(a, 0), level)
        self._has: dict[tuple[Automorphism, int], int] = {}
        rows = {level: {self._keys[level]: 1.0} for level in self._levels}
        for a, top in sorted(highest.items()):
            below: int | None = None
            for level in self._levels:
                if level > top:
                    break
                column = self._has[a, level] = lp.column()
                rows[level][column] = -1.0
                if below is not None:
                    lp.at_least({below: 1.0, column: -1.0}, 0.0)
                below = column
        for row in rows.values():
            lp.at_least(row, 0.0)

    def _add_reach(self, a: Automorphism, levels: Sequence[int]) -> None:
        """Add R_alj."""
        lp = self._lp
        for index, level in enumerate(levels):
            self._reach[a, level, 1] = self._has[a, level]
            for hops in range(2, self._hops + 1):
                column = self._reach[a, level, hops] = lp.column()
                lp.at_least({column: 1.0, self._reach[a, level, hops - 1]: -1.0}, 0.0)
                if index:
                    lp.at_least({self._reach[a, levels[index - 1], hops]: 1.0, column: -1.0}, 0.0)
            if level in self._always.get(a, ()):
                lp.at_least({self._reach[a, level, self._hops]: 1.0}, 1.0)

    def _add_pairs(
        self, target: Automorphism, level: int, summands: Sequence[tuple[Automorphism, Automorphism]]
    ) -> None:
        """Add z_abl."""
        lp = self._lp
        row = {self._has[target, level]: 1.0, self._reach[target, level, 2]: -1.0}
        for pair in summands:
            both = lp.column()
            row[both] = 1.0
            for a in set(pair):
                lp.at_least({self._has[a, level]: 1.0, both: -1.0}, 0.0)
        lp.at_least(row, 0.0)

    def _add_count(self, level: int, needed: Mapping[Automorphism, Iterable[int]]) -> None:
        """Bound by counting how many needed automorphisms at a level or above the keys make."""
        if self._hops == 1:
            return
        lp, hops = self._lp, self._hops
        here = {a: min((at for at in levels if at >= level), default=-1) for a, levels in needed.items()}
        here = {a: at for a, at in here.items() if at >= 0}
        always = sum(max(levels) >= level for levels in self._always.values())
        steps: list[int] = []
        while _made(len(steps), 2) < len(here):
            enough = len(steps) + _made(len(steps), hops) >= always
            step = lp.column(0.0 if enough else 1.0)
            if steps:
                lp.at_least({steps[-1]: 1.0, step: -1.0}, 0.0)
            steps.append(step)
        lp.at_least({self._keys[level]: 1.0, **dict.fromkeys(steps, -1.0)}, 0.0)
        for most in range(2, hops + 1):
            cut = [min(_made(keys, most), len(here)) for keys in range(len(steps) + 1)]
            row = {step: float(cut[i + 1] - cut[i]) for i, step in enumerate(steps)}
            for a, at in here.items():
                row[self._has[a, level]] = 1.0
                reach = self._reach[a, at, most]
                row[reach] = row.get(reach, 0.0) - 1.0
            lp.at_least(row, 0.0)

    def _add_group(self, group: Group) -> None:
        """Add the seconds of a group that is not open."""
        lp, again = self._lp, self._again(group, 1)
        number = len(group.targets)
        smallest, most, faster = self._least.with_larger_keys(
            group.level, group.form, number, tuple(self._levels)
        )
        self._fixed_seconds += group.count * number * smallest
        for target in group.targets:
            self._add_hops(target, group.level, [(None, again)])
            if most <= 0:
                continue
            saved = lp.column(0.0, most)
            self._seconds[saved] = -group.count
            row = {saved: -1.0} if self._hops == 1 else {saved: -1.0, again: most}
            for slope, constant in faster or [(0.0, 0.0)]:
                if slope:
                    row = {**row, self._larger_key(target): slope * MEGABYTE}
                lp.at_least(row, -constant)

    def _larger_key(self, a: Automorphism) -> int:
        """Add x_a, in megabytes."""
        if a not in self._larger:
            column = self._larger[a] = self._lp.column(0.0, self._least.largest / MEGABYTE)
            self._bytes[column] = 1.0
        return self._larger[a]

    def _again(self, group: Group, places: int) -> int:
        """Add E: a column for the maximum number of further hops of a target of a group, with their cost."""
        least, several = self._least, len(group.targets) > 1
        each = least.again(group.level, group.form) if several else least.switch(group.level)
        column = self._lp.column(0.0, self._hops - 1.0)
        self._seconds[column] = group.count * places * each
        return column

    def _add_hops(self, target: Automorphism, level: int, groups: Sequence[tuple[int | None, int]]) -> None:
        """Add the further hops of a target in mutually exclusive groups. Each group comes with its share,
        None for one that is not open, and its column."""
        if self._hops == 1:
            return
        row = {self._reach[target, level, hops]: 1.0 for hops in range(1, self._hops)}
        bound = 0.0
        for taken, again in groups:
            row[again] = 1.0
            if taken is None:
                bound += self._hops - 1.0
            else:
                row[taken] = 1.0 - self._hops
        self._lp.at_least(row, bound)

    def _add_choice(self, choice: Choice) -> None:
        """Add an open part."""
        lp, least, places = self._lp, self._least, len(choice.places)
        ways: list[int] = []
        needs: defaultdict[tuple[Automorphism, int], dict[int, int]] = defaultdict(dict)
        for way in choice.alternatives:
            taken = lp.column()
            ways.append(taken)
            for group in way.groups:
                self._seconds[taken] += (
                    group.count * places * least.group(group.level, group.form, len(group.targets))
                )
                again = self._again(group, places)
                for target in group.targets:
                    self._add_hops(target, group.level, [(taken, again)])
                    needs[target, group.level].setdefault(taken, again)
        lp.at_least(dict.fromkeys(ways, 1.0), 1.0)
        for (target, level), result in needs.items():
            lp.at_least({self._reach[target, level, self._hops]: 1.0, **dict.fromkeys(result, -1.0)}, 0.0)
            if len(result) > 1:
                self._add_hops(target, level, list(result.items()))

    def seconds(self, stored_bytes: float) -> float:
        """Return the least seconds of automorphisms' key switches with at most so many bytes of keys for
        them."""
        result = self._within(self._seconds, self._bytes, stored_bytes / MEGABYTE, self._free_bytes)
        return result + self._fixed_seconds

    def stored_bytes(self, seconds: float) -> float:
        """Return the least bytes of keys for automorphisms whose key switches take at most so many
        seconds."""
        limit = seconds - self._fixed_seconds
        return self._within(self._bytes, self._seconds, limit, self._free_seconds) * MEGABYTE

    def _within(
        self,
        objective: Mapping[int, float],
        limited: Mapping[int, float],
        limit: float,
        free: dict[float, float],
    ) -> float:
        """Return the minimum of one quantity within a limit of the other; infinite if the limit is proven
        infeasible.

        Above a certain limit the minimum is constant: `free` caches that.
        """
        known = [value for enough, value in free.items() if enough <= limit]
        if known:
            return max(known)
        result = self._lp.least(objective, (limited, limit))
        if result is None:
            least = self._lp.least(limited)
            if least is not None and least.value > limit + 1e-9 * abs(limit):
                return float("inf")
            result = self._lp.least(objective)
        elif result.multiplier == 0.0:
            free[limit] = result.value
        return 0.0 if result is None else result.value


def _made(keys: int, hops: int) -> int:
    """Return the maximum number of automorphisms that so many keys make, excluding the keys' own."""
    return comb(keys + hops, hops) - 1 - keys


def _levels_of(groups: Iterable[Group]) -> dict[Automorphism, set[int]]:
    """Return every automorphism with the levels at which it is needed."""
    out: defaultdict[Automorphism, set[int]] = defaultdict(set)
    for group in groups:
        for target in group.targets:
            out[target].add(group.level)
    return dict(sorted(out.items()))
