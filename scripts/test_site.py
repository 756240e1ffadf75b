"""The site has every page and every public name once, and its check of links finds broken ones."""

import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import build_site
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = (
    "keywright",
    "keywright.client",
    "keywright.compiler",
    "keywright.federated",
    "keywright.model",
    "keywright.plan",
    "keywright.runtime",
    "keywright.security",
    "keywright.serve",
)
SHOWN_ELSEWHERE = {
    "keywright": {
        "__version__",
        "client",
        "compiler",
        "federated",
        "model",
        "runtime",
        "security",
        "serve",
    },
    "keywright.model": {"CompiledModel", "compile", "load_client", "load_server"},
}
"""Names that are not classes or functions, because modules have pages of their own, and names of
`keywright.model` that have their entries as names of `keywright`."""


def leaves(entries: list[object]) -> Iterator[str]:
    """The pages of a part of the navigation."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, list):
            yield from leaves(entry)
        elif isinstance(entry, dict):
            yield from leaves(list(entry.values()))


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))
    listed = Counter(leaves(config["project"]["nav"]))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert set(listed) == pages | {f"project/{name}" for name in build_site.PROJECT}
    assert max(listed.values()) == 1


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_one_entry(module: str) -> None:
    entries: Counter[str] = Counter()
    for page in (DOCS / "reference" / "python").glob("*.md"):
        found = re.findall(
            rf"^::: {re.escape(module)}\.(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        entries.update(found)
    public = set(importlib.import_module(module).__all__) - SHOWN_ELSEWHERE.get(module, set())
    assert set(entries) == public
    assert max(entries.values()) == 1


def test_links_to_files_outside_the_site_lead_to_the_forge() -> None:
    page = DOCS / "explanation" / "key-switching.md"
    text = (
        "[a](rings.md#x) [b](../../crates/rlwe) [c](../../Makefile) [d](https://e.org) [f](../../SECURITY.md)"
    )
    made = build_site.rewritten(text, page, "https://forge/r")
    assert made == (
        "[a](rings.md#x) [b](https://forge/r/tree/main/crates/rlwe) [c](https://forge/r/blob/main/Makefile)"
        " [d](https://e.org) [f](../project/SECURITY.md)"
    )


def test_broken_links_of_built_pages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_site, "SITE", tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h1 id="here">x</h1>')
    links = ["other/#here", "other/#there", "/base/other/", "/base/none/", "gone.svg", "rust/a.html", "#top"]
    page = tmp_path / "index.html"
    page.write_text('<p id="top">' + "".join(f'<a href="{link}">x</a>' for link in links))
    found = build_site.broken([page], "/base/", rust=False)
    assert found == [f"index.html: {link}" for link in ("other/#there", "/base/none/", "gone.svg")]
    assert "index.html: rust/a.html" in build_site.broken([page], "/base/", rust=True)


def test_a_file_that_a_snippet_shows_becomes_a_part_of_the_page() -> None:
    text = "Before.\n\n```console\n$ cat table.md\n| a |\n|---|\n| b |\n```\n\n```console\n$ ls\nx\n```\n"
    made = build_site.rewritten(text, DOCS / "index.md", "https://forge/r")
    assert made == "Before.\n\n| a |\n|---|\n| b |\n\n\n```console\n$ ls\nx\n```\n"
