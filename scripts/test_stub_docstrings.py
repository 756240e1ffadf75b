"""Docstrings of the compiled engine in its stub."""

from __future__ import annotations

from types import SimpleNamespace

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
def gone() -> None:
    """Nobody says this any more."""

class Thing:
    """Old."""
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def size(self) -> int:
        """Old
        and long.
        """
    @staticmethod
    def make() -> Thing: ...

class Elsewhere:
    """Not in this build."""
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
def gone() -> None:
    ...

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
    """Not in this build."""
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
    gone=_named(None),
    Thing=Thing,
)


def test_docstrings_are_put_in_replaced_and_removed() -> None:
    made = stub_docstrings.document(STUB, MODULE)
    assert made == DOCUMENTED
    assert stub_docstrings.document(made, MODULE) == made


def test_the_stub_is_current() -> None:
    """What editors show is what the extension says, of everything public."""
    stub = stub_docstrings.STUB.read_text(encoding="utf-8")
    assert stub_docstrings.formatted(stub_docstrings.document(stub, _core)) == stub
    said = _core.Parameters.for_circuit.__doc__
    assert said is not None
    assert said.splitlines()[0] in stub
