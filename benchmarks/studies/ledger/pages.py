"""The Markdown of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path

from harness.prose import wrapped
from harness.table import markdown

from studies.ledger.claims import VERDICTS, Paper
from studies.ledger.records import ROOT, Record

FOLDER = ROOT / "docs" / "reproduction"


def link(path: str, text: str) -> str:
    """A link of a page of `docs/reproduction` to a file of the repository."""
    return f"[{text}]({relpath(ROOT / path, FOLDER)})"


def ledger(head: str, papers: Sequence[Paper], records: Mapping[str, Record]) -> str:
    """The page of all papers: how many verdicts of each kind, every claim, every record."""
    lines = [head.rstrip(), "", *summary(papers), ""]
    used: dict[str, None] = {}
    for paper in papers:
        rows = []
        for claim in paper.claims:
            used |= dict.fromkeys(claim.records)
            behind = [link(records[name].path, name) for name in claim.records]
            behind += [link(claim.test.partition("::")[0], "test")] if claim.test else []
            commands = dict.fromkeys(records[name].command for name in claim.records)
            cells = [claim.place, claim.claim, claim.theirs, claim.ours, claim.verdict]
            rows.append([*cells, "; ".join(f"`{command}`" for command in commands), ", ".join(behind)])
        lines += [f"## {paper.short}", "", f"{paper.title}. {paper.about}", ""]
        columns = ["place", "claim", "theirs", "ours", "verdict", "command", "record"]
        lines += [*markdown(columns, rows, aligned=False), ""]
    lines += ["## Records", "", "Commands are run in `benchmarks/`, `make` in the root.", ""]
    shown = [
        [link(one.path, name), f"`{one.command}`", ", ".join(one.commits), one.note]
        for name, one in ((name, records[name]) for name in used)
    ]
    columns = ["record", "made by", "commit", "mind"]
    return wrapped("\n".join([*lines, *markdown(columns, shown, aligned=False)]))


def summary(papers: Sequence[Paper]) -> list[str]:
    """How many claims of each paper have which verdict."""
    counted = {paper.short: Counter(claim.verdict for claim in paper.claims) for paper in papers}
    counted["all"] = sum(counted.values(), Counter())
    rows = [
        [name, *(found[verdict] for verdict in VERDICTS), found.total()] for name, found in counted.items()
    ]
    return markdown(["paper", *VERDICTS, "all"], rows)


def write_or_compare(pages: Mapping[Path, str], *, compare: bool) -> list[Path]:
    """Write pages; or only say which are not as they would be written."""
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not compare:
            path.write_text(pages[path])
    return stale
