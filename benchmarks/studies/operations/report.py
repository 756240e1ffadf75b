"""The table, as text for a terminal and as Markdown for a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.pages.table import MISSING, duration, markdown_line, times
from harness.programs.schedule import Outcome
from harness.programs.targets import KEYWRIGHT
from harness.record import Row
from harness.sets import ParameterSet

from studies.operations.ratios import Cell, Table


@dataclass(frozen=True)
class Report:
    """A finished comparison. `targets` are the columns, including those without figures."""

    title: str
    facts: Sequence[str]
    targets: Sequence[str]
    table: Table
    outcome: Outcome

    def cells(self) -> list[list[str]]:
        """The table as text: a heading and one line per row."""
        lines = [["work", "N", "level", "alpha", *self.targets]]
        for row, timed in self.table.items():
            cells = [cell_text(name, timed.get(name)) for name in self.targets]
            lines.append([*row_text(row), *cells])
        return lines

    def notes(self) -> list[str]:
        """What is missing from the table and why."""
        notes = [f"{name}: {reason}" for name, reason in self.outcome.reasons.items()]
        notes += [f"refused: {what}" for what in dict.fromkeys(self.outcome.refused)]
        if self.outcome.interrupted:
            notes.append("interrupted: not all rounds were run")
        return notes

    def markdown(self) -> str:
        """The record's `table.md`."""
        head, *body = self.cells()
        lines = [f"# {self.title}", "", *(f"* {fact}" for fact in self.facts), ""]
        lines += [markdown_line(head), markdown_line(["---"] * 4 + ["---:"] * len(self.targets))]
        lines += [markdown_line(line) for line in body]
        lines += ["", KEY, ""]
        if notes := self.notes():
            lines += ["Not in the table:", "", *(f"* {note}" for note in notes), ""]
        return "\n".join(lines)

    def text(self) -> str:
        """The table for a terminal, columns aligned."""
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [self.title, *self.facts, ""]
        for line in cells:
            left = [cell.ljust(width) for cell, width in zip(line[:4], widths[:4], strict=True)]
            right = [cell.rjust(width) for cell, width in zip(line[4:], widths[4:], strict=True)]
            lines.append("  ".join([*left, *right]).rstrip())
        lines += ["", KEY, *self.notes()]
        return "\n".join(lines)


KEY = (
    "A cell is the median time over rounds, then how many times Keywright's time that is: "
    "median and (extremes) of the ratios of single rounds."
)


def facts(
    chosen: ParameterSet,
    threads: int,
    rounds: int,
    runs: int,
    machine: Sequence[str],
    versions: Sequence[str],
) -> list[str]:
    """The facts that a reader needs to judge the table."""
    return [
        chosen.describe(),
        f"{counted(threads, 'thread')}, {counted(rounds, 'round')} of {counted(runs, 'run')}, interleaved",
        *machine,
        *versions,
    ]


def counted(number: int, thing: str) -> str:
    """A number with its noun: `1 round`, `5 rounds`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def row_text(row: Row) -> list[str]:
    """The first four columns."""
    transform = row.alpha == 0
    level, alpha = (MISSING, MISSING) if transform else (str(row.level), str(row.alpha))
    return [row.work, f"2^{row.log_n}", level, alpha]


def cell_text(target: str, cell: Cell | None) -> str:
    """One cell. Keywright's own has no ratio."""
    if cell is None:
        return MISSING
    if target == KEYWRIGHT or cell.ratio is None:
        return duration(cell.seconds.median)
    return f"{duration(cell.seconds.median)} {times(cell.ratio)}"
