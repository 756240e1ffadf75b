"""The Markdown of the ledger: an index, and a page for each paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os.path import relpath
from pathlib import Path

from harness.pages.prose import wrapped
from harness.pages.table import markdown

from studies.ledger.claims import VERDICTS, Claim, Paper
from studies.ledger.records import ROOT, Record

FOLDER = ROOT / "docs" / "reproduction"
LEDGER = FOLDER / "ledger"
RELATIVE = re.compile(r"\]\((?!https?:|#)")
"""The start of a link to a file, as texts of `docs/reproduction` have it."""


def link(path: str, text: str) -> str:
    """A link of a page of the ledger to a file of the repository."""
    return f"[{text}]({relpath(ROOT / path, LEDGER)})"


def ledger(head: str, papers: Sequence[Paper], records: Mapping[str, Record]) -> dict[Path, str]:
    """The index with how many verdicts of each kind there are, and a page for each paper."""
    index = "\n".join([head.rstrip(), "", *summary(papers)])
    pages = {LEDGER / f"{one.name}.md": page(one, records) for one in papers}
    return {FOLDER / "README.md": wrapped(index), **pages}


def page(paper: Paper, records: Mapping[str, Record]) -> str:
    """The page of a paper: the claims that matter most, the others in its order, every record."""
    about = RELATIVE.sub("](../", paper.about)
    lines = [f"# The claims of {paper.short}", "", f"{paper.title}. {about}", ""]
    lines += [
        "[The index](../README.md) defines the verdicts. The last table has the command of each record.",
        "",
    ]
    lines += ["## The claims that matter most", "", *table((c for c in paper.claims if c.first), records), ""]
    lines += ["## All other claims", "", *table((c for c in paper.claims if not c.first), records), ""]
    lines += [
        "## Records",
        "",
        "Run the commands in the root of the repository. Words in capitals stand for files and",
    ]
    lines += [
        "folders. A commit that ends in `-dirty` had changed files: its record cannot be reproduced exactly.",
        "",
    ]
    used = dict.fromkeys(name for claim in paper.claims for name in claim.records)
    shown = [
        [
            link(one.path, name),
            f"`{one.command}`" if one.command else "none",
            ", ".join(one.commits) or "not stated",
            one.note,
        ]
        for name, one in ((name, records[name]) for name in used)
    ]
    return wrapped(
        "\n".join([*lines, *markdown(["record", "command", "commit", "note"], shown, aligned=False)])
    )


def table(claims: Iterable[Claim], records: Mapping[str, Record]) -> list[str]:
    """Lines of a table of claims. A figure that was measured once has a word on it in its line."""
    rows = []
    for claim in claims:
        behind = [link(records[name].path, name) for name in claim.records]
        behind += [link(claim.test.partition("::")[0], "test")] if claim.test else []
        once = [f"{name}: {records[name].once}" for name in claim.records if records[name].once]
        ours = RELATIVE.sub("](../", claim.ours) + (f" *({'; '.join(once)})*" if once else "")
        rows.append([claim.place, claim.claim, claim.theirs, ours, claim.verdict, ", ".join(behind)])
    return markdown(["place", "claim", "theirs", "ours", "verdict", "record"], rows, aligned=False)


def summary(papers: Sequence[Paper]) -> list[str]:
    """How many claims of each paper have which verdict."""
    counted = {f"[{one.short}](ledger/{one.name}.md)": verdicts(one) for one in papers}
    counted["all"] = sum(counted.values(), Counter())
    rows = [
        [name, *(count[verdict] for verdict in VERDICTS), count.total()] for name, count in counted.items()
    ]
    return markdown(["paper", *VERDICTS, "all"], rows)


def verdicts(paper: Paper) -> Counter[str]:
    """How many claims of a paper have which verdict."""
    return Counter(claim.verdict for claim in paper.claims)


def write_or_compare(pages: Mapping[Path, str], *, compare: bool) -> list[Path]:
    """Write pages; or only say which are not as they would be written."""
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if not compare:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages[path])
    return stale
