"""Links of the repository's pages lead to files that are there, and to headings that they have."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import record_index

ROOT = Path(__file__).parents[1]
TEMPLATES = {"benchmarks/studies/network_keys/page.md", "benchmarks/studies/speed/page.md"} | {
    f"benchmarks/studies/ledger/pages/{name}.md"
    for name in (
        "README",
        "boosted-deflation",
        "executed-keys",
        "is-it-for-me",
        "key-extension",
        "key-switch",
    )
}
"""Texts of pages that a program writes elsewhere."""

BLOCKS = ROOT / "benchmarks" / "studies" / "ledger" / "blocks"
"""Parts of pages, whose links have paths from the root."""

RUST = ROOT / "docs" / "rust"
"""The Rust documentation: there on the site alone, whose links `build_site.py` checks."""


def pages() -> list[str]:
    """Every Markdown file that is committed."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(set(listed.stdout.split()) - TEMPLATES)


@cache
def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^(```+).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """The names that links give to its headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("name", pages())
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        folder = ROOT if page.parent == BLOCKS else page.parent
        target = (folder / path).resolve() if path else page
        if target.is_relative_to(RUST):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_every_record_is_listed() -> None:
    """No table of a record is without a link."""
    page = record_index.PAGE.read_text(encoding="utf-8")
    assert page == record_index.index(), "run python scripts/record_index.py"
