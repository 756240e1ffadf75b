"""Exceptions are few: a class for each thing to do, a code for each reason, and every code is raised."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import keywright as kw
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "keywright"
ENGINE = ROOT / "crates" / "python" / "src" / "errors"
PAGE = ROOT / "docs" / "reference" / "python" / "errors.md"

MOST_CLASSES = 45

CLASSES: dict[str, type[kw.KeywrightError]] = {
    name: kind
    for name in kw.errors.__all__
    if issubclass(kind := getattr(kw.errors, name), kw.KeywrightError)
}

BULLET = re.compile(r"^\* ((?:``\w+``(?:, )?)+):", re.MULTILINE)
CODE = re.compile(r"``(\w+)``")
DESCRIBED = re.compile(r'"(\w+Error)"(?:,| \{)([^}]*)')
"""A class and its attributes in a table of the engine."""

DYNAMIC = None
"""Stands for a code that is computed: strings of its module count as raised."""

Sites = dict[str, set[tuple[str | None, Path]]]


def listed(kind: type[kw.KeywrightError]) -> set[str]:
    """Return the codes that the docstring of a class lists, with its default."""
    text = inspect.getdoc(kind) or ""
    return {kind.code} | {code for bullet in BULLET.findall(text) for code in CODE.findall(bullet)}


def declared(kind: type[kw.KeywrightError]) -> set[str]:
    """Return the attributes that a class states, and the arguments of its constructor."""
    stated = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", {})}
    return stated | set(inspect.signature(kind.__init__).parameters)


def _class_of(call: ast.Call) -> tuple[str, ast.expr | None] | None:
    """Return the class of the error that a call makes, and its code."""
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "refusing" and len(call.args) > 1:
        name = ast.unparse(call.args[1])
    if name not in CLASSES:
        return None
    return name, next((word.value for word in call.keywords if word.arg == "code"), None)


def sites_of_python(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the class and the code of each error that a module makes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and (site := _class_of(node)) is not None:
            name, code = site
            match code:
                case None:
                    yield name, CLASSES[name].code
                case ast.Constant(value=str(text)):
                    yield name, text
                case _:
                    yield name, DYNAMIC


def sites_of_engine(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the class and the code of each entry of a table of the engine."""
    for name, attributes in DESCRIBED.findall(path.read_text(encoding="utf-8")):
        code = re.search(r'\bcode = (?:"(\w+)")?', attributes)
        yield name, CLASSES[name].code if code is None else code[1]


@pytest.fixture(scope="module")
def sites() -> Sites:
    """Where each class is raised, with the code."""
    raised: Sites = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "replies.py":  # reads codes of other places
            for name, code in sites_of_python(path):
                raised[name].add((code, path))
    for path in sorted(ENGINE.rglob("*.rs")):
        for name, code in sites_of_engine(path):
            raised[name].add((code, path))
    return raised


def test_there_are_few_classes() -> None:
    assert len(CLASSES) <= MOST_CLASSES


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_to_do_and_lists_its_codes(name: str) -> None:
    kind = CLASSES[name]
    text = vars(kind)["__doc__"] or ""
    assert re.search(r"^ *What to do: \w", text, re.MULTILINE)
    assert "code" in vars(kind)
    assert f"``{kind.code}``" in text or kind is kw.KeywrightError
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", code) for code in listed(kind))


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_raised_with_codes_that_it_lists(name: str, sites: Sites) -> None:
    assert {code for code, _ in sites[name]} - {DYNAMIC} <= listed(CLASSES[name])


@pytest.mark.parametrize("name", CLASSES)
def test_every_code_is_raised(name: str, sites: Sites) -> None:
    raised = {code for code, _ in sites[name]}
    for code, path in sites[name]:
        if code is DYNAMIC:
            raised |= set(re.findall(r'"(\w+)"', path.read_text(encoding="utf-8").replace(" ", "_")))
    # Groups are made of their reasons, and have no code of their own.
    assert listed(CLASSES[name]) <= raised


def test_an_error_gets_no_attributes_but_those_of_its_class() -> None:
    """A misspelt one would be set, and the one that programs read would keep its default. Refusals of models
    alone have numbers and names of their case."""
    wrong = [
        (path.name, node.lineno, name, word.arg)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func).rpartition(".")[2]) in CLASSES
        for word in node.keywords
        if word.arg not in {None, *declared(CLASSES[name])} and CLASSES[name] is not kw.errors.RefusalError
    ]
    assert not wrong


TEXT = re.compile(r'#\[error\(\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
"""The text of an error of the engine."""

STOP = re.compile(r"[a-z})]\. [A-Z]")


def texts_of_python(path: Path) -> Iterator[str]:
    """Yield the written parts of the first argument of every error that a module makes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith("Error"):
            parts = (part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant))
            yield "".join(part for part in parts if isinstance(part, str))


def test_the_remedy_of_an_error_follows_a_semicolon() -> None:
    """The command line takes what follows the last semicolon for the advice: a full stop would hide it."""
    engine = [text for path in (ROOT / "crates").rglob("*.rs") for text in TEXT.findall(path.read_text())]
    package = [text for path in PACKAGE.rglob("*.py") for text in texts_of_python(path)]
    assert min(len(engine), len(package)) > 100
    flat = [re.sub(r"\\\n\s*", "", text) for text in engine + package]
    assert [text for text in flat if STOP.search(text)] == []


def test_every_class_has_an_entry_of_the_page() -> None:
    entries = re.findall(
        r"^::: keywright\.(?:errors\.)?(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(entries) == sorted(kw.errors.__all__)


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ('raise ParameterError("n")', ("ParameterError", "range")),
        ('raise kw.errors.FormatError("n", code="program")', ("FormatError", "program")),
        ('with refusing("a plan", WorkloadError, code="columns"): ...', ("WorkloadError", "columns")),
        ('raise FormatError("n", code=code)', ("FormatError", DYNAMIC)),
    ],
)
def test_sites_are_read(text: str, site: tuple[str, str | None], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    assert list(sites_of_python(path)) == [site]
