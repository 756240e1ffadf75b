"""Docstrings of the compiled engine in its stub."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keywright as kw
import stub_docstrings
from keywright import _core

STUB = '''"""Types."""

ONE: int

def plain(x: int) -> int: ...  # noqa: A001
def bare(
    x: int,  # with a comment
    *,
    y: str = "...",
) -> int: ...
def silent() -> None: ...

class Thing:
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def size(self) -> int: ...
    @staticmethod
    def make() -> Thing: ...

class Elsewhere:
    size: int
'''

DOCUMENTED = '''"""Types."""

ONE: int

def plain(x: int) -> int:  # noqa: A001
    """Adds.

    Args:
        x: a number.
    """
def bare(
    x: int,  # with a comment
    *,
    y: str = "...",
) -> int:
    r"""Of a \\."""
def silent() -> None: ...

class Thing:
    """A thing."""
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def size(self) -> int:
        """How large."""
    @staticmethod
    def make() -> Thing:
        """A new one."""

class Elsewhere:
    size: int
'''


class Thing:
    """A thing."""

    @property
    def size(self) -> int:
        """How large."""
        return 1

    @staticmethod
    def make() -> Thing:
        """A new one."""
        return Thing()


def _named(doc: str | None) -> object:
    def function() -> None: ...

    function.__doc__ = doc
    return function


MODULE = SimpleNamespace(
    plain=_named("Adds.\n\n    Args:\n        x: a number.\n    "),
    bare=_named("Of a \\."),
    silent=_named(None),
    Thing=Thing,
)


def test_docstrings_are_put_in() -> None:
    assert stub_docstrings.document(STUB, MODULE) == DOCUMENTED


def test_the_stub_of_the_tree_has_types_alone() -> None:
    """The Rust comments are the only source of the documentation."""
    nodes = ast.walk(ast.parse(stub_docstrings.STUB.read_text(encoding="utf-8")))
    objects = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert objects
    assert [node.name for node in objects if ast.get_docstring(node) is not None] == []


def test_the_documented_stub_has_the_same_types_and_what_the_engine_says(tmp_path: Path) -> None:
    path = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, stub_docstrings.__file__, str(path)], check=True)
    stub = path.read_text(encoding="utf-8")
    documented = ast.parse(stub)
    said = _core.Parameters.for_circuit.__doc__
    assert said is not None
    assert said.splitlines()[0] in stub
    for node in ast.walk(documented):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Expr(ast.Constant(...))]
    assert ast.unparse(documented) == ast.unparse(ast.parse(stub_docstrings.STUB.read_text(encoding="utf-8")))


def test_no_documented_exception_is_missing() -> None:
    """The exceptions that the comments of the engine list are those of `keywright.errors`, or Python's."""
    named = re.compile(r"\b[A-Z]\w*Error\b")
    for name in set(named.findall(stub_docstrings.documented_stub())):
        assert name in kw.errors.__all__ or hasattr(builtins, name), name
