"""Medians over rounds, and ratios to Keywright within each round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from harness.pages.table import Spread
from harness.programs.schedule import Measurement
from harness.programs.targets import KEYWRIGHT
from harness.record import Row
from harness.sets import WORKS


@dataclass(frozen=True)
class Cell:
    """One target's figures in one row: seconds, and how many times Keywright's time that is.

    `ratio` is None if Keywright has no figure in any of the same rounds.
    """

    seconds: Spread
    ratio: Spread | None
    rounds: int


Table = dict[Row, dict[str, Cell]]


def tabulate(measurements: Iterable[Measurement], alphas: tuple[int, ...]) -> Table:
    """Cells by row and target name, rows in the order of the table.

    The ratio is the median of the ratios of single rounds: what slows a machine down for a round slows both.
    """
    times: dict[Row, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for measurement in measurements:
        for row in measurement.record.rows(alphas):
            times[row][measurement.target][measurement.round] = measurement.record.median_s
    table: Table = {}
    for row in sorted(times, key=order):
        own = times[row].get(KEYWRIGHT, {})
        table[row] = {target: cell(seconds, own) for target, seconds in times[row].items()}
    return table


def cell(seconds_of_turns: dict[int, float], own: dict[int, float]) -> Cell:
    """Summarise one target's time per round, with ratios to Keywright's."""
    ratios = [seconds / own[turn] for turn, seconds in seconds_of_turns.items() if turn in own]
    return Cell(
        Spread.of(seconds_of_turns.values()), Spread.of(ratios) if ratios else None, len(seconds_of_turns)
    )


def order(row: Row) -> tuple[int, int, int, int]:
    """Works in their usual order; larger rings, higher levels and larger digits first."""
    work = WORKS.index(row.work) if row.work in WORKS else len(WORKS)
    return (work, -row.log_n, -row.alpha, -row.level)
