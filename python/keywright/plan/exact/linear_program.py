"""A linear program, and a lower bound on its minimum that does not depend on the solver's accuracy.

For rows A x >= b and columns in [lower, upper], any y >= 0 gives

    min c x >= y b + sum_j min over [lower_j, upper_j] of (c - A^T y)_j x_j,

by weak duality. HiGHS suggests y; the right side is computed here from y and the data, so that the solver's
tolerances, or an early stop, make the bound weaker but never wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import highspy

ITERATIONS = 50_000
"""Pivots after which HiGHS stops: unlike a time limit, this is the same on every machine."""


@dataclass(frozen=True)
class ObjectiveBound:
    """A lower bound of an objective.

    Attributes:
        value: the bound.
        multiplier: how much `value` decreases for one more unit of the limited quantity, at most.
    """

    value: float
    multiplier: float


class LinearProgram:
    """Columns with finite bounds and rows `sum of coefficient * column >= bound`."""

    def __init__(self) -> None:
        """Create an empty program."""
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._rows: list[Mapping[int, float]] = []
        self._bounds: list[float] = []

    @property
    def columns(self) -> int:
        return len(self._lower)

    def column(self, lower: float = 0.0, upper: float = 1.0) -> int:
        """Add a column."""
        self._lower.append(lower)
        self._upper.append(upper)
        return len(self._lower) - 1

    def at_least(self, terms: Mapping[int, float], bound: float) -> None:
        """Add a row."""
        self._rows.append(terms)
        self._bounds.append(bound)

    def least(
        self, objective: Mapping[int, float], within: tuple[Mapping[int, float], float] | None = None
    ) -> ObjectiveBound | None:
        """Return a lower bound on the minimum of an objective.

        Args:
            objective: coefficients of columns.
            within: terms and an upper bound on their sum.

        Returns:
            The bound; None if the solver finds no feasible values, which is not proven.
        """
        import highspy

        rows, bounds = list(self._rows), list(self._bounds)
        if within is not None:
            rows.append({column: -value for column, value in within[0].items()})
            bounds.append(-within[1])
        sizes = [len(row) for row in rows]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        columns = np.fromiter((c for row in rows for c in row), np.int32, int(starts[-1]))
        values = np.fromiter((v for row in rows for v in row.values()), np.float64, int(starts[-1]))
        cost = np.zeros(self.columns)
        for column, value in objective.items():
            cost[column] = value
        right, low, high = np.array(bounds), np.array(self._lower), np.array(self._upper)
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = self.columns, len(rows)
        program.col_cost_, program.col_lower_, program.col_upper_ = cost, low, high
        program.row_lower_, program.row_upper_ = right, np.full(len(rows), np.inf)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = starts
        program.a_matrix_.index_ = columns
        program.a_matrix_.value_ = values
        dual = _solve(program)
        if dual is None:
            return None
        y = np.maximum(dual, 0.0)
        weights = values * np.repeat(y, sizes)
        reduced = cost - np.bincount(columns, weights=weights, minlength=self.columns)
        value = float(y @ right + np.minimum(reduced * low, reduced * high).sum())
        return ObjectiveBound(value, float(y[-1]) if within is not None else 0.0)


def _solve(program: "highspy.HighsLp") -> NDArray[np.float64] | None:
    """Return the dual values of the rows; None if there is no solution."""
    import highspy

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("random_seed", 1)
    highs.setOptionValue("simplex_iteration_limit", ITERATIONS)
    highs.passModel(program)
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    dual = np.array(highs.getSolution().row_dual, dtype=np.float64)
    return dual if len(dual) == program.num_row_ else np.zeros(program.num_row_)
