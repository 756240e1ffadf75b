"""The planner's own strategy: a mixed-integer program chooses keys and hops together.

For each group g (a ciphertext at a level, c_g times) and target v, a hop of depth 1 leads from the ciphertext
to v with a key k of v; one of depth 2 leads from a depth-1 result w, wanted or not, to v with a key k of v -
w. Keys are candidates (automorphism, level, shape).

    y_k                key k exists
    x_gvk, z_gwvk      v is made at depth 1 with k; at depth 2 from w with k
    d_gs, e_gws        the ciphertext, or w, is decomposed for keys with digits s
    f_gw               w is needed as a step of a linear transform, and rotated again: a whole key switch

    sum_k x_gvk + sum_wk z_gwvk >= 1    for every target
    sum_k z_gwvk <= sum_k x_gwk         intermediate results exist
    x, z <= y_k;   x <= d,  z <= e,  z <= f     keys and decompositions exist
    bytes   = sum_k bytes_k y_k
    seconds = sum_g c_g (sum own x + own z + shared d + shared e + (whole - own) f)

An open part of the workload has a variable for each alternative, exactly one of which is 1; the targets of an
alternative are covered if it is taken.

Bytes or seconds are minimised within a bound on the other. The maximum depth is 2: it at most doubles the
noise of a hop, and further hops brought no gain (ARK, figure 4). HiGHS solves the program; the plan states
the gap that it proves.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, gcd
from typing import TYPE_CHECKING

import numpy as np

from keywright.errors import InfeasibleBudgetError, WorkloadError
from keywright.plan.cost.model import CostModel, Form
from keywright.plan.keys.budget import Budget
from keywright.plan.keys.key_plan import IDENTITY, Digits, Hop, KeyPlan, PlannedKey, digits_of
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.open_workload import Choice, OpenWorkload
from keywright.plan.workload.workload import Group, Workload

from .candidates import Candidates

if TYPE_CHECKING:
    import highspy

NODE_WORK = 20_000_000
"""Columns squared times nodes of the search tree after which HiGHS stops: unlike a time limit, this is the
same on every machine. It allows 20 nodes for a thousand columns and 2,000 for a hundred."""

GAP = 1e-4
"""Proven distance from the optimum at which the search ends."""

WHOLE = 1e-3
"""Tolerance of HiGHS: a bound this close above a whole number is rounded down to it."""


@dataclass
class _Model:
    """Columns and rows in the form that HiGHS takes."""

    time: list[float] = field(default_factory=list)
    size: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)

    def column(self, time: float, size: float = 0.0, *, integer: bool) -> int:
        self.time.append(time)
        self.size.append(size)
        self.integer.append(integer)
        return len(self.time) - 1

    def at_least(self, terms: Iterable[tuple[int, float]], bound: float) -> None:
        self.rows.append(list(terms))
        self.lower.append(bound)


_Place = tuple[tuple[int, int] | None, int, tuple[Automorphism, ...], Form]
"""Choice and alternative, None for parts that are not open; level; targets."""


@dataclass(frozen=True)
class _ServedGroup:
    """The columns of a group's hops of depth 1 and 2."""

    group: Group
    first: dict[tuple[Automorphism, PlannedKey], int]
    second: dict[tuple[Automorphism, Automorphism, PlannedKey], int]


class Optimizer:
    """The integer program of one workload; can be solved for several budgets."""

    def __init__(
        self,
        workload: Workload | OpenWorkload,
        model: CostModel,
        *,
        hops: int = 2,
        ways: int = 24,
        every_level: bool = True,
        most_columns: int | None = None,
    ) -> None:
        """Set up the integer program.

        `complete` says whether the program covers all plans with that many hops over these automorphisms, so
        that its bound holds for all of them.

        Args:
            workload: the workload.
            model: predicts times.
            hops: 1 or 2, maximum hops of a target.
            ways: maximum number of intermediate results considered for a target, those that most targets
                could use.
            every_level: whether keys may have any level, or only those at which their automorphism is needed:
                the latter has fewer columns, and gives no proof.
            most_columns: maximum number of columns.

        Raises:
            ValueError: another number of hops.
            WorkloadError: there are more columns.
        """
        if hops not in (1, 2):
            raise ValueError(f"hops = {hops} is not supported; use 1 or 2")
        self.open = OpenWorkload.of(workload)
        self.workload = self.open.workload
        self.model = model
        self._every = self.open.every().merged()
        self._columns = _Model()
        self._keys: dict[PlannedKey, int] = {}
        self._by_automorphism: defaultdict[Automorphism | None, list[PlannedKey]] = defaultdict(list)
        self._served: dict[_Place, _ServedGroup] = {}
        self._ways_of: list[list[int]] = []
        self._relinearization: dict[tuple[int, PlannedKey], int] = {}
        self._popular: dict[Automorphism, int] = {}
        self._ways = ways
        self._most_columns = most_columns
        self.complete = every_level
        self._add_keys(hops, every_level)
        for group in self.workload.merged().groups:
            self._add_group(group, hops, None, None)
        for index, choice in enumerate(self.open.choices):
            self._add_choice(index, choice, hops)
        for use in self.workload.relinearizations:
            self._add_relinearizations(use.level, use.count)

    @property
    def columns(self) -> int:
        """Number of columns of the integer program."""
        return len(self._columns.time)

    def _add_keys(self, hops: int, every_level: bool) -> None:
        candidates = Candidates(self._every, self.model)
        levels: defaultdict[Automorphism, set[int]] = defaultdict(set)
        for group in self._every.groups:
            for target in group.targets:
                levels[target].add(group.level)
        of_use: dict[Automorphism | None, frozenset[int]] = dict(
            candidates.of_use(sorted(levels), hops).items()
        )
        relinearized = frozenset(use.level for use in self.workload.relinearizations)
        if relinearized:
            of_use[None] = relinearized
        ranked = sorted(of_use.items(), key=lambda entry: (entry[0] is not None, entry[0] or IDENTITY))
        for automorphism, used in ranked:
            own = relinearized if automorphism is None else frozenset(levels[automorphism])
            for shape in candidates.shapes(used, None if every_level else own):
                key = PlannedKey(automorphism, shape)
                self._keys[key] = self._column(0.0, shape.stored_bytes, integer=True)
                self._by_automorphism[automorphism].append(key)

    def _column(self, time: float, size: float = 0.0, *, integer: bool) -> int:
        if self._most_columns is not None and self.columns >= self._most_columns:
            raise WorkloadError(
                f"{self.workload.name}: the integer program has more than {self._most_columns} columns",
                code="columns",
            )
        return self._columns.column(time, size, integer=integer)

    def _usable(self, automorphism: Automorphism | None, level: int) -> list[PlannedKey]:
        return [key for key in self._by_automorphism.get(automorphism, ()) if key.shape.level >= level]

    def _add_choice(self, index: int, choice: Choice, hops: int) -> None:
        taken = []
        for way, alternative in enumerate(choice.alternatives):
            column = self._column(0.0, integer=True)
            taken.append(column)
            part = replace(self.workload, groups=alternative.groups).merged()
            for group in part.groups:
                repeated = replace(group, count=group.count * len(choice.places))
                self._add_group(repeated, hops, (index, way), column)
        self._columns.at_least(((column, 1.0) for column in taken), 1.0)
        self._ways_of.append(taken)

    def _add_group(self, group: Group, hops: int, way: tuple[int, int] | None, taken: int | None) -> None:
        """Add a group; for an open part, one that is served if the alternative's column is set."""
        subtract = self.workload.automorphisms.subtract
        ways: dict[Automorphism, list[Automorphism]] = {target: [] for target in group.targets}
        if hops == 2:
            for target in group.targets:
                for between in self._by_automorphism:
                    if between is None or between == target:
                        continue
                    if self._usable(between, group.level) and self._usable(
                        subtract(target, between), group.level
                    ):
                        ways[target].append(between)
        self._prune(group, ways)
        nodes = sorted({*group.targets, *(between for result in ways.values() for between in result)})
        first: dict[tuple[Automorphism, PlannedKey], int] = {}
        table: dict[Automorphism, list[int]] = {}
        shared: dict[tuple[Automorphism, Digits], int] = {}
        for node in nodes:
            table[node] = []
            for key in self._usable(node, group.level):
                form = group.form if node in ways else "whole"
                column = self._hop(group, IDENTITY, key, shared, form)
                first[node, key] = column
                table[node].append(column)
        second: dict[tuple[Automorphism, Automorphism, PlannedKey], int] = {}
        whole: dict[Automorphism, int] = {}
        for node in group.targets if hops == 2 else ():
            again_whole = self._rotated_again(group, node)
            if again_whole is not None:
                whole[node] = again_whole
        for target in group.targets:
            cover = list(table[target])
            for between in ways[target]:
                again = []
                # A giant step of several hops divides after each.
                form = "whole" if group.form == "giant" else group.form
                for key in self._usable(subtract(target, between), group.level):
                    column = self._hop(group, between, key, shared, form)
                    second[between, target, key] = column
                    again.append(column)
                    if between in whole:
                        self._columns.at_least([(whole[between], 1.0), (column, -1.0)], 0.0)
                self._columns.at_least(
                    [*((c, 1.0) for c in table[between]), *((c, -1.0) for c in again)], 0.0
                )
                cover += again
            terms = [(c, 1.0) for c in cover]
            if taken is None:
                self._columns.at_least(terms, 1.0)
            else:
                self._columns.at_least([*terms, (taken, -1.0)], 0.0)
        self._served[way, group.level, group.targets, group.form] = _ServedGroup(group, first, second)

    def _rotated_again(self, group: Group, node: Automorphism) -> int | None:
        """Return a column for a step of a linear transform that is rotated again, with the least extra cost
        of a whole key switch; None if that is zero."""
        costs = [self.model.switch(key.shape, group.level) for key in self._usable(node, group.level)]
        more = min((cost.own - cost.of_form(group.form) for cost in costs if cost is not None), default=0.0)
        return self._column(group.count * more, integer=False) if more > 0 else None

    def _prune(self, group: Group, ways: dict[Automorphism, list[Automorphism]]) -> None:
        """Keep the intermediate results whose two keys could serve the most targets."""
        subtract = self.workload.automorphisms.subtract
        for target, result in ways.items():
            if len(result) > self._ways:
                result.sort(
                    key=lambda w: (-min(self._popularity(w), self._popularity(subtract(target, w))), w)
                )
                del result[self._ways :]
                self.complete = False

    def _popularity(self, automorphism: Automorphism) -> int:
        """Return how many sums of two needed automorphisms contain an automorphism."""
        if automorphism not in self._popular:
            subtract = self.workload.automorphisms.subtract
            needed = self._by_automorphism
            self._popular[automorphism] = sum(
                other is not None and subtract(other, automorphism) in needed for other in needed
            )
        return self._popular[automorphism]

    def _hop(
        self,
        group: Group,
        parent: Automorphism,
        key: PlannedKey,
        shared: dict[tuple[Automorphism, Digits], int],
        form: Form,
    ) -> int:
        cost = self.model.switch(key.shape, group.level)
        if cost is None:
            raise WorkloadError(f"{group.name}: a key of level {key.shape.level} at level {group.level}")
        columns = self._columns
        column = self._column(group.count * cost.of_form(form), integer=True)
        columns.at_least([(self._keys[key], 1.0), (column, -1.0)], 0.0)
        place = (parent, digits_of(key.shape, group.level))
        if place not in shared:
            shared[place] = self._column(group.count * cost.shared, integer=False)
        columns.at_least([(shared[place], 1.0), (column, -1.0)], 0.0)
        return column

    def _add_relinearizations(self, level: int, count: int) -> None:
        cover = []
        for key in self._usable(None, level):
            cost = self.model.switch(key.shape, level)
            if cost is not None:
                column = self._column(count * cost.alone, integer=True)
                self._columns.at_least([(self._keys[key], 1.0), (column, -1.0)], 0.0)
                self._relinearization[level, key] = column
                cover.append((column, 1.0))
        self._columns.at_least(cover, 1.0)

    def solve(self, budget: Budget, seconds: float = 60.0) -> KeyPlan:
        """Return the best plan within a budget.

        Args:
            budget: maximum bytes or seconds.
            seconds: search time.

        Raises:
            InfeasibleBudgetError: no plan fits the budget; the message states the minimum.
        """
        columns = self._columns
        by_time = budget.stored_bytes is not None
        bound = (
            budget.stored_bytes - self.workload.ephemeral_bytes
            if budget.stored_bytes is not None
            else (budget.seconds or 0.0) - self.workload.ephemeral_seconds(self.model)
        )
        objective, bounded = (columns.time, columns.size) if by_time else (columns.size, columns.time)
        result = _run(columns, objective, bounded, bound, seconds) if bound > 0 else None
        if result is None:
            least = _run(columns, bounded, None, None, seconds)
            what, unit = ("keys take at least", "bytes") if by_time else ("switches take at least", "s")
            total = float("nan") if least is None else least[1]
            raise InfeasibleBudgetError(
                f"{self.workload.name}: {what} {total:.4g} {unit}; the budget is {bound:.4g} {unit}"
            )
        values, least_value = result
        plan = self._read(values)
        plan.check()
        fixed = self.workload.ephemeral_seconds(self.model) if by_time else self.workload.ephemeral_bytes
        value = plan.seconds(self.model) if by_time else plan.stored_bytes
        return replace(plan, gap=max(0.0, 1 - (least_value + fixed) / value) if value > 0 else 0.0)

    def _read(self, values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> KeyPlan:
        selection = [max(range(len(ways)), key=lambda way: values[ways[way]]) for ways in self._ways_of]
        # The engine makes equal sets of automorphisms of ciphertexts of one level in the same way.
        trees: dict[tuple[int, tuple[Automorphism, ...]], tuple[Hop, ...]] = {}
        hops = []
        for index, group in self.open.ordered(selection):
            way = None if index is None else (index, selection[index])
            place = (group.level, group.targets)
            if place not in trees:
                trees[place] = self._tree(self._served[way, *place, group.form], values)
            hops.append(trees[place])
        relinearization = {
            level: key for (level, key), column in self._relinearization.items() if values[column] > 0.5
        }
        workload = self.open.resolve(selection)
        return KeyPlan("optimal", workload, tuple(hops), relinearization)

    def _tree(
        self, served: _ServedGroup, values: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    ) -> tuple[Hop, ...]:
        group = served.group
        direct = {
            node: Hop(IDENTITY, node, key) for (node, key), c in served.first.items() if values[c] > 0.5
        }
        again: dict[Automorphism, Hop] = {}
        for (between, target, key), column in served.second.items():
            if values[column] > 0.5 and target not in direct and between in direct:
                again[target] = Hop(between, target, key)
        needed = {target for target in group.targets if target in direct} | {
            hop.parent for hop in again.values()
        }
        return (*(direct[node] for node in sorted(needed)), *(again[node] for node in sorted(again)))


def _unit(objective: Sequence[float]) -> tuple[float, bool]:
    """Return the unit of an objective, and whether the objective is always a whole multiple of it. Bytes are
    counted in their greatest common divisor, because a solver that knows that the next better solution is a
    whole unit less stops sooner; seconds in the largest coefficient."""
    values = [value for value in objective if value]
    if values and all(value == int(value) for value in values):
        return float(gcd(*map(int, values))), True
    return max(values, default=1.0), False


def _run(
    columns: _Model,
    objective: Sequence[float],
    bounded: Sequence[float] | None,
    bound: float | None,
    seconds: float,
) -> "tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float] | None":
    """Minimise: returns the values and the proven lower bound; None if no solution within the bound is
    found."""
    import highspy

    count = len(columns.time)
    lp = highspy.HighsLp()
    rows = [*columns.rows]
    lower = [*columns.lower]
    upper = [highspy.kHighsInf] * len(rows)
    if bounded is not None and bound is not None:
        scale = max(bound, 1e-300)
        rows.append([(c, value / scale) for c, value in enumerate(bounded) if value])
        lower.append(-highspy.kHighsInf)
        upper.append(1.0)
    lp.num_col_, lp.num_row_ = count, len(rows)
    unit, unit_is_whole = _unit(objective)
    lp.col_cost_ = np.asarray(objective) / unit
    lp.col_lower_, lp.col_upper_ = np.zeros(count), np.ones(count)
    lp.row_lower_, lp.row_upper_ = np.asarray(lower), np.asarray(upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    lp.a_matrix_.index_ = np.asarray([c for row in rows for c, _ in row], dtype=np.int32)
    lp.a_matrix_.value_ = np.asarray([value for row in rows for _, value in row])
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[integer] for integer in columns.integer]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", seconds)
    solver.setOptionValue("mip_max_nodes", max(1, NODE_WORK // count**2))
    solver.setOptionValue("mip_rel_gap", GAP)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("random_seed", 0)
    solver.passModel(lp)
    _interruptibly(solver)
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    least = info.mip_dual_bound
    if unit_is_whole:
        least = ceil(least - WHOLE)
    return np.asarray(solver.getSolution().col_value), least * unit


def _interruptibly(solver: "highspy.Highs") -> None:
    """Solve in a separate thread, so that an interrupt is noticed here and ends it."""
    solver.HandleUserInterrupt = True
    solver.startSolve()
    try:
        while not solver.wait(0.1)[0]:
            pass
    except BaseException:
        solver.cancelSolve()  # type: ignore[no-untyped-call]
        while not solver.wait(0.1)[0]:
            pass
        raise
