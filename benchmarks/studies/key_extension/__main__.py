"""Key extension, KDS 7.3, counted: `python -m studies.key_extension`.

Transforms, products, conversions and bytes of a key switch with an ordinary key and with one whose rows are
cut into digits as well (Kim, Lee, Seo, Song, CRYPTO 2023), for digit lengths in the parameters of KDS and of
this project's bootstrapping. Counts are exact. Seconds are predicted for one thread by the planner without a
calibration. Nothing is encrypted; `benchmarks/tests/test_key_extension.py` runs the algorithm itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import keywright as kw
from harness.folders import record_folder
from harness.pages.table import heading, markdown
from keywright.plan.cost.model import CostModel

from studies.bootstrapping_keys.paper import PRIMES
from studies.key_extension.counts import Counts, Setting, extensions, ordinary

PRESET = "N16_QP1732_L9_S45"
ALPHAS = range(1, 9)
LEVELS = (31, 23, 15, 7)
"""Of a ciphertext in KDS' parameters with one prime to a digit."""

WEIGHTS = CostModel().of_degree(16)
"""Seconds of a core in the ring of all settings."""

Row = dict[str, object]


def settings() -> Iterator[tuple[str, Setting]]:
    """KDS: 34 primes of 50 bits in all, as many special ones as an alpha takes; then alpha = 1 at lower
    levels. Ours: a preset of bootstrapping at its top level, with its special primes and digits of as many
    primes, whose widths are taken as their mean."""
    for alpha in ALPHAS:
        yield "KDS", Setting(16, min(32, PRIMES - alpha), alpha, alpha)
    for level in LEVELS[1:]:
        yield "KDS, alpha = 1", Setting(16, level + 1, 1, 1)
    parameters = kw.BootstrapperPlan.preset(PRESET).parameters
    q, p = parameters.q, parameters.p
    yield PRESET, Setting(16, len(q), len(p), len(p), parameters.log_q / len(q))


def row(name: str, of: Setting, counts: Counts, **more: object) -> Row:
    """A line of the record."""
    return {
        "parameters": name,
        "primes": of.primes,
        "special": of.special,
        "alpha": of.alpha,
        **more,
        "transforms": sum(counts.transforms),
        "own_transforms": sum(counts.transforms) - counts.shared,
        "products": counts.products,
        "conversions": sum(counts.conversions),
        "key_bytes": counts.key_bytes,
        "sent_bytes": counts.sent_bytes,
        "predicted_s": counts.seconds(WEIGHTS),
    }


def break_even(before: Counts, after: Counts) -> float | None:
    """GB a second at which the extended key is as fast as the ordinary one, if its products take as long as
    reading it. None where the rest alone takes longer."""
    rest = after.seconds(WEIGHTS) - after.products * _product(after)
    left = before.seconds(WEIGHTS) - rest
    return round(after.key_bytes / left / 1e9, 2) if left > 0 else None


def _product(counts: Counts) -> float:
    return Counts((0, 0), 0, 1, (0, 0), 0, 0, counts.bits, counts.seeded).seconds(WEIGHTS)


def rows() -> Iterator[Row]:
    """Of each setting the ordinary key, the extended one of fewest transforms, and the one predicted the
    fastest."""
    for name, of in settings():
        before = ordinary(of)
        yield row(name, of, before, key="ordinary")
        rows = list(extensions(of))
        for key, chosen in (
            ("fewest transforms", min(rows, key=lambda one: (sum(one[2].transforms), one[2].key_bytes))),
            ("fastest", min(rows, key=lambda one: one[2].seconds(WEIGHTS))),
        ):
            size, bits, after = chosen
            yield row(
                name, of, after, key=key, size=size, bits=bits, break_even_gb_s=break_even(before, after)
            )


def table(rows_of_table: list[Row]) -> list[str]:
    """The record as a table: ordinary / extended."""
    lines = []
    for start in range(0, len(rows_of_table), 3):
        before, fewest, fastest = rows_of_table[start : start + 3]
        cells = [before["parameters"], before["primes"], before["alpha"]]
        for column, scale in (
            ("transforms", 1),
            ("own_transforms", 1),
            ("products", 1),
            ("key_bytes", 1e6),
            ("predicted_s", 1e-3),
        ):
            pair = [float(str(one[column])) / scale for one in (before, fastest)]
            cells.append(" / ".join(f"{value:.0f}" for value in pair))
        lines.append([*cells, fewest["transforms"], fastest["break_even_gb_s"] or "never"])
    head = [
        "parameters",
        "primes",
        "alpha",
        "transforms",
        "not shared",
        "products",
        "MB, both halves",
        "ms, predicted",
    ]
    return markdown([*head, "fewest transforms", "as fast at, GB/s"], lines)


def main() -> int:
    """Write the record."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.key_extension", description=str(__doc__).split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-key-extension)")
    options = parser.parse_args()
    folder = record_folder(options.out, "key-extension")
    rows_of_table = list(rows())
    (folder / "key_extension.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows_of_table))
    lines = [
        *heading("Key extension, counted", "ordinary / extended, predicted the fastest"),
        *table(rows_of_table),
    ]
    (folder / "key_extension.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
