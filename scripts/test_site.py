"""The site has every page and every public name once, and its check of links finds broken ones."""

import importlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import api_names
import build_site
import griffe
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = (
    "keywright",
    "keywright.bfv",
    "keywright.client",
    "keywright.compiler",
    "keywright.compiler.front_ends",
    "keywright.errors",
    "keywright.federated",
    "keywright.keys",
    "keywright.model",
    "keywright.model.folder",
    "keywright.plan",
    "keywright.plan.cost",
    "keywright.plan.keys",
    "keywright.plan.memory",
    "keywright.plan.ring",
    "keywright.plan.workload",
    "keywright.runtime",
    "keywright.search",
    "keywright.security",
    "keywright.serve",
    "keywright.serve.cluster",
    "keywright.serve.tenants",
    "keywright.thin",
    "keywright.values",
)
SHOWN_ELSEWHERE = {
    "keywright.errors": {"KeywrightError"},
    "keywright.model": {"Model", "compile", "load", "load_client", "load_server"},
    "keywright.values": {"Encrypted", "EncryptedIntegers"},
}
"""Names that have their entries as names of `keywright` or `keywright.bfv`."""

OWN = {
    "keywright.commands.models.serve",
    "keywright.compiler.front_ends.operators",
    "keywright.insecure",
    "keywright.serve.storage",
    "keywright.serve.uploads",
}
"""Modules whose names are for other parts of the package, and the insecure scheme, which no wheel has."""

ENTRY = re.compile(r"^::: (keywright[\w.]*)$", re.MULTILINE)
PATH = re.compile(r"\]\(([^)#\s]+)")
"""The file that a link of Markdown leads to."""

OPERATORS = {
    "keywright.serve.Served",
    "keywright.serve.ServedIndex",
    "keywright.serve.Server",
    "keywright.serve.Service",
    "keywright.serve.Workers",
    "keywright.serve.application",
    "keywright.serve.cluster.RayWorkers",
}
"""A program makes, starts and stops these. Only the parts of the server use what their methods return."""


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


def titles(entries: list[object]) -> Iterator[str]:
    """The names that the navigation gives to pages and parts."""
    for entry in entries:
        if isinstance(entry, dict):
            for name, value in entry.items():
                yield name
                yield from titles(value if isinstance(value, list) else [])


def test_no_two_pages_have_one_title() -> None:
    """A reader who sees one among search results knows which page it is."""
    config = tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))
    named = Counter(titles(config["project"]["nav"]))
    headings = (
        re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE) for page in DOCS.rglob("*.md")
    )
    counted = Counter(heading[1] for heading in headings if heading)
    assert {name for one in (named, counted) for name, times in one.items() if times > 1} == set()


def test_tables_write_large_numbers_out() -> None:
    pages = {
        page.name: re.findall(r"\b\d[\d.]*e\+\d+", page.read_text("utf-8")) for page in DOCS.rglob("*.md")
    }
    assert {name: numbers for name, numbers in pages.items() if numbers} == {}


TOPICS = sorted(set((DOCS / "explanation").glob("*.md")) - {DOCS / "explanation" / "index.md"})
SHARED = 9
"""Letters that the file names of a topic's pages have in common: `bootstrapping`, `kds-bootstrap-keys`."""


@pytest.mark.parametrize("topic", TOPICS, ids=lambda page: page.stem)
def test_the_explanation_of_a_topic_leads_to_its_other_pages(topic: Path) -> None:
    """A topic has one page from which a reader reaches its uses, its tables and its measurements."""
    others = [page for page in DOCS.rglob("*.md") if topic.stem[:SHARED] in page.stem and page != topic]
    linked = {topic.parent.joinpath(path).resolve() for path in PATH.findall(topic.read_text("utf-8"))}
    assert [page.relative_to(DOCS).as_posix() for page in others if page not in linked] == []


def test_only_the_page_of_bootstrapping_has_this_name() -> None:
    assert [page.parent.name for page in DOCS.rglob("bootstrapping.md")] == ["explanation"]


def entries() -> list[str]:
    """The names that the pages of the Python API have entries for."""
    pages = sorted((DOCS / "reference" / "python").glob("*.md"))
    return [name for page in pages for name in ENTRY.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_one_entry(module: str) -> None:
    public = set(importlib.import_module(module).__all__) - SHOWN_ELSEWHERE.get(module, set())
    counts = Counter(entries())
    assert {name: counts[f"{module}.{name}"] for name in public} == dict.fromkeys(public, 1)


def test_every_module_with_public_names_has_entries() -> None:
    package = ROOT / "python"
    names = [
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")
        for path in (package / "keywright").rglob("*.py")
        if "\n__all__ = " in path.read_text(encoding="utf-8")
    ]
    assert {*names} == {*MODULES} | OWN


def test_pages_list_what_they_show() -> None:
    """A forge shows no entries, so the pages have a table of them."""
    stale = [
        page.name
        for page in api_names.PAGES.glob("*.md")
        if page.read_text() != api_names.filled(page.stem, page.read_text())
    ]
    assert not stale, f"run python scripts/api_names.py: {', '.join(stale)}"


def returned(entry: griffe.Object) -> Iterator[str]:
    """The names in annotations of what a function returns, or of what the public members of a class do."""
    members = entry.all_members.items() if isinstance(entry, griffe.Class) else [(entry.name, entry)]
    for name, member in members:
        public = not name.startswith("_") or name == "__call__"
        target = member.final_target if isinstance(member, griffe.Alias) else member
        annotation = getattr(target, "returns" if target.is_function else "annotation", None)
        if public and isinstance(annotation, griffe.Expr):
            yield from (
                part.canonical_path
                for part in annotation.iterate(flat=True)
                if isinstance(part, griffe.ExprName)
            )


def test_every_type_that_a_public_name_returns_has_an_entry() -> None:
    """Types of entries are followed as well: what a returned object has can be looked up in turn."""
    package = griffe.load("keywright", search_paths=[ROOT / "python"], allow_inspection=False)

    def resolved(path: str) -> griffe.Object:
        member = package[path.removeprefix("keywright.")]
        return member.final_target if isinstance(member, griffe.Alias) else member

    shown = {resolved(name).path: resolved(name) for name in entries()}
    assert len(shown) == len(entries()), "two entries are of the same object"
    missing = set()
    for path, entry in shown.items():
        if path in {resolved(name).path for name in OPERATORS}:
            continue
        for name in returned(entry):
            private = name.rpartition(".")[2].startswith("_")
            if name.startswith("keywright.") and not private and isinstance(resolved(name), griffe.Class):
                missing |= {(resolved(name).path, path)} if resolved(name).path not in shown else set()
    assert not missing


def test_links_to_files_outside_the_site_lead_to_the_forge() -> None:
    page = DOCS / "explanation" / "key-switching.md"
    text = (
        "[a](rings.md#x) [b](../../crates/rlwe) [c](../../Makefile) [d](https://e.org) [f](../../SECURITY.md)"
    )
    page_text = build_site.rewritten(text, page, "https://forge/r")
    assert page_text == (
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
    broken_links = build_site.broken([page], "/base/", rust=False)
    assert broken_links == [f"index.html: {link}" for link in ("other/#there", "/base/none/", "gone.svg")]
    assert "index.html: rust/a.html" in build_site.broken([page], "/base/", rust=True)


def test_a_file_that_a_snippet_shows_becomes_a_part_of_the_page() -> None:
    text = "Before.\n\n```console\n$ cat table.md\n| a |\n|---|\n| b |\n```\n\n```console\n$ ls\nx\n```\n"
    page_text = build_site.rewritten(text, DOCS / "index.md", "https://forge/r")
    assert page_text == "Before.\n\n| a |\n|---|\n| b |\n\n\n```console\n$ ls\nx\n```\n"
