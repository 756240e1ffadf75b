"""What the page states about figures 7 and 8 of ARK, to draw them again without planning again.

The figures of the page stay those of the cost model with which it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

from studies.network_keys.ark import Planned
from studies.network_keys.pictures import Shares


def figure_7(page: str) -> dict[tuple[str, str], Planned]:
    """Encoding and whose keys to keys, gigabytes and milliseconds here."""
    out = {}
    for name, *cells in _rows(page, "encoding, keys of"):
        encoding, _, whose = name.partition(", ")
        keys, gigabytes, milliseconds = cells[-3:]
        out[encoding, whose] = Planned(int(keys), float(gigabytes), float(milliseconds))
    return out


def figure_8(page: str) -> dict[str, dict[str, Shares]]:
    """Setting and strategy to percent of memory saved, of time added and of key generation saved."""
    out: dict[str, dict[str, Shares]] = {}
    for setting, strategy, *cells in _rows(page, "setting | strategy | paper, GB"):
        (own_gb, gb), (own_s, s), (own_made, paper_rotations) = (
            map(float, cell.split(" to ")) for cell in cells[-3:]
        )
        out.setdefault(setting, {})[strategy] = (
            100 * (1 - gb / own_gb),
            100 * (s / own_s - 1),
            100 * (1 - paper_rotations / own_made),
        )
    return out


def _rows(page: str, heading: str) -> Iterator[list[str]]:
    """The rows of the table whose heading begins so."""
    lines = iter(page.splitlines())
    for line in lines:
        if line.startswith(f"| {heading}"):
            next(lines)
            for row in lines:
                if not row.startswith("|"):
                    return
                yield [cell.strip() for cell in row.strip("|").split("|")]
    raise SystemExit(f"the page has no table with the heading {heading!r}; write it with the whole study")
