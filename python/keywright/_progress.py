"""How far long work is: a bar on a terminal, a line now and then where standard error is a file."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from keywright._units import format_seconds

SILENT_S = 2.0
"""Work that takes less has no line."""

EVERY_S = 10.0
"""From one line to the next."""


class Advance:
    """What is told of work while it runs.

    Args:
        total: steps, or predicted seconds as a float; None if nobody knows.
        shown: called after every change.

    Attributes:
        done: of the total.
        label: what is worked on now.
    """

    def __init__(self, total: float | None, shown: Callable[["Advance"], object]) -> None:
        self.total, self._shown = total, shown
        self.done, self.label = 0.0, ""

    def __call__(self, steps: float, label: str | None = None) -> None:
        """So much more is done; what follows is called ``label``, as before where it is not given."""
        self.done += steps
        self.label = self.label if label is None else label
        self._shown(self)

    def line(self, description: str, elapsed: float) -> str:
        """How far it is, in a line."""
        parts = [f"{description}: {self.label}" if self.label else description]
        if self.total and self.done:
            share = min(self.done / self.total, 1.0)
            parts.append(f"{share:.0%}, about {format_seconds(elapsed * (1 / share - 1))} left")
        return ", ".join([*parts, f"{format_seconds(elapsed)} so far"])


Progress = Callable[[str, float | None], AbstractContextManager[Advance]]
"""Tells of work: called with what is done and its total, see `Advance`; ends with the block."""


@contextmanager
def silent(description: str, total: float | None) -> Iterator[Advance]:
    """Tell nobody."""
    yield Advance(total, lambda _: None)


@contextmanager
def bar(console: Console, description: str, total: float | None) -> Iterator[Advance]:
    """A bar that disappears when the block ends."""
    counted: tuple[ProgressColumn, ...] = (TimeElapsedColumn(),)
    if total is not None:
        share = MofNCompleteColumn() if isinstance(total, int) else TaskProgressColumn()
        counted = (share, TimeRemainingColumn())
    text = TextColumn("{task.description}", markup=False)
    with Bar(text, BarColumn(), *counted, console=console, transient=True) as shown:
        task = shown.add_task(description, total=total)

        def show(advance: Advance) -> None:
            label = f"{description}: {advance.label}" if advance.label else description
            shown.update(task, completed=advance.done, description=label)

        yield Advance(total, show)


@contextmanager
def lines(note: Callable[[str], object], description: str, total: float | None) -> Iterator[Advance]:
    """A line after `SILENT_S` seconds and every `EVERY_S`, from a thread of their own."""
    advance, ended, start = Advance(total, lambda _: None), threading.Event(), time.monotonic()

    def tell() -> None:
        pause = SILENT_S
        while not ended.wait(pause):
            note(advance.line(description, time.monotonic() - start))
            pause = EVERY_S

    teller = threading.Thread(target=tell, name="keywright-progress", daemon=True)
    teller.start()
    try:
        yield advance
    finally:
        ended.set()
        teller.join()
