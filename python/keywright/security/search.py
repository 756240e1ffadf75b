"""The cheapest choice of an attack's parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .reduction import MIN_BETA, Array

Evaluate = Callable[[int, Array], tuple[Array, dict[str, Array]]]
"""Maps a number of guessed coefficients and block sizes to log2 of the costs and the attack's other
numbers."""


MOST_BITS = 512.0
"""Attacks that cost more are ignored."""

_REFINEMENTS = 16
"""Each step at least halves the grid: enough for 2^16 coefficients."""


@dataclass(frozen=True)
class Cost:
    """The cost of an attack.

    Attributes:
        bits: log2 of its operations; infinity if it does not apply.
        numbers: the cheapest choices: ``beta`` (block size), ``d`` (dimension of the lattice), ``zeta``
            (guessed coefficients), ``weight`` (maximum of non-zero ones), and those of the attack.
    """

    bits: float
    numbers: dict[str, float] = field(default_factory=dict)


def grid_search(evaluate: Evaluate, most_guessed: int, most_beta: int) -> Cost:
    """Return the least cost over guessed coefficients and block sizes, on grids that are refined around the
    best.

    Costs have one valley along either number, up to steps of a bit where an integer changes; finer grids are
    wide enough to leave the neighbourhood of such a step.
    """
    zetas = np.unique(np.round(np.concatenate([[0], np.geomspace(1, max(most_guessed, 1), 16)])))
    zetas = np.unique(np.append(zetas, np.round(most_guessed * np.linspace(0, 1, 17))))
    zetas = zetas[zetas <= most_guessed].astype(int)
    betas = np.unique(np.round(np.geomspace(MIN_BETA, most_beta, 40)))
    best, zeta, beta = _least(evaluate, zetas, betas)
    for _ in range(_REFINEMENTS):
        (low, high), (lower, upper) = _neighbours(zetas, zeta), _neighbours(betas, beta)
        if high - low <= 2 and upper - lower <= 2:
            break
        zetas = np.unique(np.append(np.round(np.linspace(low, high, 9)), zeta)).astype(int)
        betas = np.unique(np.append(np.round(np.linspace(lower, upper, 13)), beta))
        best, zeta, beta = _least(evaluate, zetas, betas)
    return best if best.bits <= MOST_BITS else Cost(np.inf)


def _least(evaluate: Evaluate, zetas: Array, betas: Array) -> tuple[Cost, int, float]:
    best = Cost(np.inf)
    where = (int(zetas[0]), float(betas[0]))
    for zeta in zetas:
        costs, numbers = evaluate(int(zeta), betas)
        at = int(np.argmin(costs))
        if costs[at] < best.bits:
            details = {name: float(values[at]) for name, values in numbers.items()}
            best = Cost(float(costs[at]), {"zeta": float(zeta)} | details)
            where = (int(zeta), float(betas[at]))
    return best, *where


def _neighbours(grid: Array, value: float) -> tuple[float, float]:
    """Return the entries two below and two above: wide enough for a valley that the grid missed by one."""
    at = int(np.searchsorted(grid, value))
    return float(grid[max(0, at - 2)]), float(grid[min(len(grid) - 1, at + 2)])
