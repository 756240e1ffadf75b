"""Reads figures from committed records: lines of JSON, tables of Markdown, printed text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LISTS = Path(__file__).parent / "records"
"""A file for the records of each paper, one for those of several, and one for those of pages alone.

`command` makes the record, run in the root of the repository (empty where nothing in the repository makes
it); words in capitals stand for files and folders. `note` is what a reader has to mind. `once` says what was
run or measured only once; every line that takes a figure from the record repeats it.
"""

NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?([eE][+-]?\d+)?")
COMMIT = re.compile(r"commit ([0-9a-f]{8})[0-9a-f]*(-dirty)?")
HEADING = "#"
"""The column of a Markdown row that says under which heading its table stands."""

Value = float | list[float]


class NoFigure(Exception):
    """A record lacks a requested figure."""


@dataclass(frozen=True)
class Record:
    """A committed file of figures.

    Attributes:
        name: as claims call it.
        path: relative to the repository.
        command: what made it; empty where nothing in the repository does.
        note: what it is not, in a few words: a prediction, one run; empty where there is nothing to say.
        source: the path of the record that a page is computed from; empty where it is a record itself.
        once: what there was only one of, a run or an image; empty where there were several.
        rows: selections of it by name, each as `select` takes it.
    """

    name: str
    path: str
    command: str
    note: str = ""
    source: str = ""
    once: str = ""
    rows: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """Its bytes as text."""
        return (ROOT / self.path).read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """Its lines of JSON, its objects of JSON, or the rows of all its tables.

        Raises:
            NoFigure: it is neither.
        """
        if self.path.endswith(".jsonl"):
            return [flat(json.loads(line)) for line in self.text.splitlines()]
        if self.path.endswith(".json"):
            read = json.loads(self.text)
            return [flat(row) for row in (read if isinstance(read, list) else [read])]
        if self.path.endswith(".md"):
            return tables(self.text)
        raise NoFigure(f"{self.path} has no rows; give a pattern with one group")

    def select(self, where: str) -> list[dict[str, Any]]:
        """Rows whose columns are as `column: value; column: value` says.

        Raises:
            NoFigure: there is none.
        """
        parts = (part.partition(":") for part in where.split(";"))
        conditions = {name.strip(): value.strip() for name, _, value in parts}
        rows = [row for row in self.lines if all(shown(row.get(name)) == v for name, v in conditions.items())]
        if not rows:
            raise NoFigure(f"{self.path} has no row with {where}")
        return rows

    @cached_property
    def commits(self) -> list[str]:
        """Commits that its text names, each once; `-dirty` where files of the commit had been changed.

        A record without any has those of the pages beside it, which the same run wrote. A page that was
        computed from a record has the commits of that record.
        """
        path = ROOT / (self.source or self.path)
        texts = [path.read_text(encoding="utf-8")]
        if path.is_relative_to(ROOT / "benchmarks" / "record"):
            texts += [page.read_text(encoding="utf-8") for page in sorted(path.parent.glob("*.md"))]
        for names in map(COMMIT.findall, texts):
            if names:
                return list(dict.fromkeys(name + dirty for name, dirty in names))
        return []

    def match(self, pattern: str) -> float:
        """The number that the one group of a pattern finds.

        Raises:
            NoFigure: it finds none, or several.
        """
        matches = re.findall(pattern, self.text)
        if len(matches) != 1:
            raise NoFigure(f"{self.path} has {len(matches)} times {pattern!r}, not once")
        return float(matches[0].replace(",", ""))


def records(folder: Path = LISTS) -> Mapping[str, Record]:
    """Return all records that claims name.

    Raises:
        ValueError: two files list a record of one name.
    """
    lists = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))]
    listed = {name: Record(name, **fields) for entries in lists for name, fields in entries.items()}
    if len(listed) < sum(map(len, lists)):
        raise ValueError(f"two files of {folder} list a record of one name; rename one of them")
    return listed


def flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Fields of fields as `outer.inner`, with a list where there are several."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            out |= flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            out |= {f"{prefix}{name}.{key}": [one.get(key) for one in value] for key in value[0]}
        else:
            out[prefix + name] = value
    return out


def shown(value: object) -> str:
    """A value as a selection writes it."""
    return value if isinstance(value, str) else json.dumps(value)


def tables(text: str) -> list[dict[str, Any]]:
    """Rows of every table of a page: column to cell, and the heading above."""
    out: list[dict[str, Any]] = []
    head: list[str] | None = None
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            head = None
            continue
        row = [cell.strip().strip("*`").strip() for cell in line.strip().strip("|").split("|")]
        if head is None:
            head = named(row)
        elif not all(set(cell) <= set(":-") and cell for cell in row):
            # A row that begins with an empty cell goes on with the one above.
            first = row[0] or (out[-1][head[0]] if head[0] and out else "")
            out.append({HEADING: heading, **dict(zip(head, [first, *row[1:]], strict=True))})
    return out


def named(head: Sequence[str]) -> list[str]:
    """Headings of columns, the second of a name as `name 2`."""
    out: list[str] = []
    for name in head:
        times = sum(other == name or other.rpartition(" ")[0] == name for other in out)
        out.append(name if not times else f"{name} {times + 1}")
    return out


def value_of(row: Mapping[str, Any], column: str) -> Value:
    """A figure of a row: a number, numbers, or the first number of a cell; of `column#2` the second.

    Raises:
        NoFigure: the column is not there, or has no such number.
    """
    name, _, place = column.partition("#") if column != HEADING else (column, "", "")
    if name not in row:
        raise NoFigure(f"no column {name!r}; there are {', '.join(row)}")
    value = row[name]
    if isinstance(value, list):
        return [float(one) for one in value]
    if isinstance(value, int | float):
        return float(value)
    matches = [number[0] for number in NUMBER.finditer(str(value))]
    if len(matches) < int(place or 1):
        raise NoFigure(f"no number {place or 1} in {value!r}")
    return float(matches[int(place or 1) - 1].replace(",", ""))
