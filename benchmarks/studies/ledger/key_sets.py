"""Tables of executed key sets: a page's line `[[key sets: RECORD]]` stands for the table of a record, of the
sets that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping

from studies.ledger.records import Record

PLACE = re.compile(r"^\[\[key sets: (\w+)\]\]$", re.MULTILINE)
RANGE = re.compile(r"(?<=\| )(\S+) to \1(?= \|)")
SETS = {
    "pot-p1": "Pot-P1",
    "pot-pdyn": "Pot-Pdyn",
    "all-p1": "All-P1",
    "all-pdyn": "All-Pdyn, the proposal",
    "optimal-1.0": "planned, predicted as fast",
    "optimal-1.05": "planned, predicted 1.05 times that",
    "optimal-2gb": "planned, within 2 GB seeded",
}
"""Of `studies.executed_keys`, by their names in its records."""
COLUMNS = {
    "keys": '{median(ROWS["keys"]):d}',
    "switches": '{median(ROWS["switches"]):d}',
    "GB, their formula": '{median(ROWS["formula_bytes"]) / 1e9:.2f}',
    "GB in memory, seeded": '{median(ROWS["seeded_bytes"]) / 1e9:.2f}',
    "GB in a file": '{median(ROWS["file_bytes"]) / 1e9:.2f}',
    "parts": '{median(ROWS["segments"]):d}',
    "peak, GB": '{median(ROWS["peak_bytes"]) / 1e9:.2f}',
    "linear, s": '{median(ROWS["processor.linear"]):.2f}',
    "bootstraps, s": '{median(ROWS["processor.bootstrap"]):.2f}',
    "rest, s": '{median(ROWS["processor.rest"]):.2f}',
    "all, wall s": '{min(ROWS["seconds"]):.2f} to {max(ROWS["seconds"]):.2f}',
    "all, processor s": '{min(ROWS["processor_seconds"]):.2f} to {max(ROWS["processor_seconds"]):.2f}',
    "of the proposal": '{median(ROWS["processor_seconds"]) / median(PROPOSAL["processor_seconds"]):.2f}',
}
"""Headings, and the expressions of their figures, in which ROWS are the runs of a key set."""


def with_tables(text: str, records: Mapping[str, Record]) -> str:
    """A page's text, each table in place of its line, as expressions."""
    return PLACE.sub(lambda result: "\n".join(_table(result[1], records[result[1]])), text)


def without_repeats(text: str) -> str:
    """A page's filled text: one figure in a cell of a table for a range from it to itself."""
    return RANGE.sub(r"\1", text)


def _table(record: str, of: Record) -> list[str]:
    ran = {row["set"] for row in of.lines}
    rows = [["key set", *COLUMNS], ["---", *["---:"] * len(COLUMNS)]]
    proposal = f'{record}("set: all-pdyn")'
    for name, label in SETS.items():
        if name not in ran:
            continue
        runs = f'{record}("set: {name}")'
        cells = (cell.replace("ROWS", runs).replace("PROPOSAL", proposal) for cell in COLUMNS.values())
        rows.append([label, *cells])
    return [f"| {' | '.join(row)} |" for row in rows]
