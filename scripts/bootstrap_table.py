"""Writes the table of presets in `docs/reference/bootstrapping-presets.md` from measured records.

    keywright bench bootstrap --preset NAME --vectors 100 --threads 1 --json >> RECORD
    python scripts/bootstrap_table.py RECORD ...

With `--check` nothing is written, and a page that differs from its records is an error. Of several lines of
one preset the last one counts.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "bootstrapping-presets.md"
BEGIN, END = "<!-- presets: scripts/bootstrap_table.py -->\n", "<!-- end of presets -->\n"
HEADINGS = (
    "preset",
    "values",
    "levels left",
    "seconds",
    "worst: predicted, seen",
    "keys",
    "key bytes",
    "peak memory",
    "matrices",
    "mean: predicted, seen",
    "result, worst",
    "bound",
    "fails",
    "vectors",
    "K, degree, r, arcsine",
)
"""The columns by which a preset is chosen come first: a screen shows nine."""


def row(record: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one preset."""
    log_failure = record["log2_failure"]
    return (
        f"`{record['preset']}`",
        f"2^{math.log2(record['slots']):.0f} {record['values']}",
        f"{record['levels_left']} of {record['log_scale']:.0f} bits",
        f"{record['median_s']:.1f}",
        f"{record['predicted_worst_bits']:.1f}, {record['worst_bits']:.1f}",
        str(record["keys"]),
        f"{record['key_bytes'] / 1e9:.2f} GB",
        f"{record['peak_rss_bytes'] / 1e9:.1f} GB",
        f"{record['matrix_bytes'] / 1e9:.2f} GB",
        f"{record['predicted_mean_bits']:.1f}, {record['mean_bits']:.1f}",
        f"{record['result_worst_bits']:.1f}",
        f"{record['bound_bits']:.1f}",
        "never" if log_failure is None else f"2^{log_failure:.0f}",
        str(record["vectors"]),
        ", ".join(map(str, record["approximation"])),
    )


def table(records: list[dict[str, Any]]) -> str:
    """A Markdown table, presets in the order of their first record.

    Raises:
        SystemExit: the result of a record was not right.
    """
    rows = {}
    for record in records:
        if not record["checked"]:
            raise SystemExit(f"{record['preset']}: the result was not right")
        rows[record["preset"]] = row(record)
    # A wide table scrolls; its cells need not be narrow.
    whole = [[cell.replace(" ", "\N{NO-BREAK SPACE}") for cell in cells] for cells in rows.values()]
    lines = (HEADINGS, ("---",) * len(HEADINGS), *whole)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    """Replace the table of the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    said = "files of lines that `keywright bench bootstrap --json` printed"
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD", help=said)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args()
    records = [json.loads(line) for path in options.records for line in path.read_text().splitlines()]
    page = PAGE.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name} has no place for the table: {BEGIN.strip()} ... {END.strip()}")
    updated = before + begin + table(records) + end + after
    if options.check:
        sys.exit("the table is not that of the record" if updated != page else 0)
    PAGE.write_text(updated)


if __name__ == "__main__":
    main()
