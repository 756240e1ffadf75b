"""One measured result: the schema that peer programs and `keywright bench --json` print."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness.sets import TRANSFORMS


class BadRecord(Exception):
    """A line of output is not a record; the message names the line and what is wrong with it."""


@dataclass(frozen=True, order=True)
class Row:
    """A row of the table. `alpha` is 0 where digits play no part."""

    work: str
    log_n: int
    level: int
    alpha: int


@dataclass(frozen=True)
class Record:
    """One line of a program's output. Times are seconds per operation.

    `alpha` is None where the library chooses its own digits.
    """

    version: str
    work: str
    log_n: int
    level: int
    alpha: int | None
    threads: int
    backend: str
    median_s: float
    checked: bool
    raw: dict[str, Any]

    def rows(self, alphas: tuple[int, ...]) -> list[Row]:
        """The rows that this result belongs to: one with digits of its own stands beside every alpha."""
        if self.work in TRANSFORMS:
            return [Row(self.work, self.log_n, 0, 0)]
        chosen = alphas if self.alpha is None else (self.alpha,)
        return [Row(self.work, self.log_n, self.level, alpha) for alpha in chosen]


FIELDS: dict[str, type | tuple[type, ...]] = {
    "library": str,
    "version": str,
    "work": str,
    "log_n": int,
    "level": int,
    "alpha": (int, type(None)),
    "threads": int,
    "backend": str,
    "median_s": (int, float),
    "min_s": (int, float),
    "max_s": (int, float),
    "runs": int,
    "bytes": (int, type(None)),
    "checked": bool,
    "peak_rss_bytes": int,
}


def parse(line: str) -> Record:
    """Read one line.

    Raises:
        BadRecord: it is not a JSON object with the fields of the schema, or its time is not positive.
    """
    try:
        raw = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadRecord(f"not JSON ({error.msg}): {line.strip()[:80]!r}") from error
    if not isinstance(raw, dict):
        raise BadRecord(f"not a JSON object: {line.strip()[:80]!r}")
    for name, kind in FIELDS.items():
        if name not in raw:
            raise BadRecord(f"no field {name!r} in {line.strip()[:80]!r}")
        if not isinstance(raw[name], kind):
            raise BadRecord(f"field {name!r} is {raw[name]!r} in {line.strip()[:80]!r}")
    if not raw["median_s"] > 0:
        raise BadRecord(f"median_s is {raw['median_s']!r}, which is not a time")
    kept = {name: raw[name] for name in Record.__dataclass_fields__ if name != "raw"}
    return Record(**kept, raw=raw)
