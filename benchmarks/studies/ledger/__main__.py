"""The ledger of the papers' claims, and figures of pages: `python -m studies.ledger`.

Writes docs/reproduction/README.md and docs/reproduction/ledger from `claims/*.toml`, the pages whose texts
are in `pages/`, the figures of other pages that `figures.toml` names, and the pictures with such figures.
Every figure of ours is taken from a committed record that `records/` lists. With `--check` nothing is
written, and a page that differs from the records is an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.pages.prose import wrapped

from studies.ledger.claims import FOLDER as CLAIMS
from studies.ledger.claims import PAPERS, paper
from studies.ledger.expressions import Expressions
from studies.ledger.figures import figures, made_pages
from studies.ledger.key_sets import with_tables, without_repeats
from studies.ledger.pages import FOLDER, ledger, write_or_compare
from studies.ledger.pictures import pictures
from studies.ledger.records import ROOT, records

TEXTS = Path(__file__).parent / "pages"
INDEX = "README.md"
ELSEWHERE = {"is-it-for-me.md": ROOT / "docs"}
"""Folders of pages that are not in docs/reproduction, by the names of their texts."""


def pages() -> Mapping[Path, str]:
    """Every page as the records make it."""
    listed = records()
    expressions = Expressions(listed)
    papers = [paper(CLAIMS / f"{name}.toml", expressions) for name in PAPERS]
    out: dict[Path, str] = {}
    for text in sorted(TEXTS.glob("*.md")):
        filled = without_repeats(expressions.fill(with_tables(text.read_text(encoding="utf-8"), listed)))
        out |= (
            ledger(filled, papers, listed)
            if text.name == INDEX
            else {ELSEWHERE.get(text.name, FOLDER) / text.name: wrapped(filled)}
        )
    return out | made_pages(expressions) | pictures(listed, figures(expressions))


def main() -> int:
    """Write the pages, or compare them. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies.ledger", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args()
    stale = write_or_compare(pages(), compare=options.check)
    for path in stale:
        print(f"{path}: {'not what the records make' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
