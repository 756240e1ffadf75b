"""Where things lie: sources, builds, records."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
"""The folder `benchmarks`, in which every program runs."""

BUILD = HERE / ".build"
"""Builds of the peers, with a log for each."""


def today() -> str:
    """The date of a record."""
    return datetime.now(UTC).date().isoformat()


def record_folder(given: Path | None, kind: str | None = None) -> Path:
    """The folder of a record, made: the given one, else `record/DATE-KIND`; `record/DATE` without a kind,
    numbered from the second of a day on."""
    if given is not None:
        folder = given.resolve()
    elif kind is not None:
        folder = HERE / "record" / f"{today()}-{kind}"
    else:
        base = HERE / "record" / today()
        numbered = (base if number == 1 else base.with_name(f"{base.name}-{number}") for number in count(1))
        folder = next(folder for folder in numbered if not folder.exists())
    folder.mkdir(parents=True, exist_ok=True)
    return folder
