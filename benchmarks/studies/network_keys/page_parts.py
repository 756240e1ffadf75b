"""Parts of the page: tables, and what is said while they are made."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from harness.pages.table import markdown

GB = 1e9


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    return "\n".join(markdown(headings, rows, aligned=False))


@contextmanager
def step(name: str) -> Iterator[None]:
    """Say what is done, and then in how many seconds."""
    begin = time.monotonic()
    print(f"{name} ...", end="", file=sys.stderr, flush=True)
    yield
    print(f" {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def require(claim: bool, words: str) -> None:
    """Stop if a statement of the page is false.

    Raises:
        SystemExit: it is false.
    """
    if not claim:
        raise SystemExit(f"the page says that {words}, which is no longer true")
