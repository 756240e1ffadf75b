"""Names in Python are nouns of the field: participles of finding, making and wanting name nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FOLDERS = (
    "benchmarks", "container", "docs", "embedded", "examples", "fuzz", "hardware", "python", "scripts", "web",
)  # fmt: skip
"""All that have Python of their own."""

NOT_OURS = {".build", ".venv", "build", "node_modules", "target"}
"""Folders of what is installed or built."""

PARTICIPLES = {"found", "made", "wanted"}

TYPES = {"Begun", "Edge", "Ends", "Found", "Made", "Sights", "Stretch", "Turn", "Wanted"}
"""Names of types that say how something came about, or nothing at all."""

DETAILS = {"found", "made"}
"""Details that errors have beside ``expected``: public, on the wire and in JSON. Attributes of errors and
arguments by keyword may be called so."""

WORDS = re.compile("|".join(sorted(PARTICIPLES | TYPES)))
"""A file without any of them needs no parsing, which takes seconds for all files."""

RUST_TYPES = re.compile(r"\b(?:struct|enum|union|trait|type) (\w+)")


def names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that code defines or uses, but for arguments by keyword and attributes of others."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            case _:
                pass


def of_tree() -> Iterator[tuple[str, set[str]]]:
    """Yield the names of each file of Python that has a refused word, be it in a comment."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    for path in (ROOT / "conftest.py", *paths):
        place = path.relative_to(ROOT)
        if NOT_OURS & set(place.parts):
            continue
        if WORDS.search(text := path.read_text(encoding="utf-8")):
            yield place.as_posix(), set(names(ast.parse(text)))


def test_names_are_nouns() -> None:
    wrong = {}
    for path, used in of_tree():
        allowed = DETAILS if path.startswith("python/keywright/errors/") else set()
        if refused := (used & (PARTICIPLES | TYPES)) - allowed:
            wrong[path] = refused
    assert not wrong


def test_types_of_the_engine_are_nouns() -> None:
    wrong = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sorted((ROOT / "crates").rglob("*.rs"))
        for name in RUST_TYPES.findall(path.read_text(encoding="utf-8"))
        if name in TYPES
    }
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def f(wanted): ...",
        "for made in (): ...",
        "class Made: ...",
        "self.found = 1",
        'f"{made}"',
        "import os as found",
        "class C:\n    wanted: int",
        "def made(): ...",
    ],
)
def test_a_participle_is_refused(text: str) -> None:
    assert set(names(ast.parse(text))) & (PARTICIPLES | TYPES)


def test_a_detail_of_an_error_is_not_a_name() -> None:
    assert not set(names(ast.parse("error(found=1).found"))) & PARTICIPLES
