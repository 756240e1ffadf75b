"""Progress of long work: a bar on a terminal, periodic lines if standard error is a file."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from keywright._units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console

LEAST_LEFT = 1.0
"""Seconds below which the time that is left is not worth a word."""

SILENT_S = 2.0
"""Work that takes fewer seconds prints no line."""

EVERY_S = 10.0
"""Seconds from one line to the next."""


class Advance:
    """Receives the progress of work while it runs.

    Args:
        total: steps, or predicted seconds as a float; None if unknown.
        shown: called after every change.

    Attributes:
        done: finished part of the total.
        label: the current part of the work.
    """

    def __init__(self, total: float | None, shown: Callable[["Advance"], object]) -> None:
        self.total, self._shown = total, shown
        self.done, self.label = 0.0, ""

    def __call__(self, steps: float, label: str | None = None) -> None:
        """Add ``steps``, and set the label of the next part if one is given."""
        self.done += steps
        self.label = self.label if label is None else label
        self._shown(self)

    def line(self, description: str, elapsed: float) -> str:
        """Return the progress as one line."""
        parts = [f"{description}: {self.label}" if self.label else description]
        if self.total and self.done:
            share = min(self.done / self.total, 1.0)
            left = elapsed * (1 / share - 1)
            parts.append(
                f"{share:.0%}" + (f", about {format_seconds(left)} left" if left >= LEAST_LEFT else "")
            )
        return ", ".join([*parts, f"{format_seconds(elapsed)} on this step"])


Progress = Callable[[str, float | None], AbstractContextManager[Advance]]
"""Reports work: called with a description and a total, see `Advance`; ends with the block."""


@contextmanager
def silent(description: str, total: float | None) -> Iterator[Advance]:
    """Report nothing."""
    yield Advance(total, lambda _: None)


@contextmanager
def bar(console: "Console", description: str, total: float | None) -> Iterator[Advance]:
    """A bar that disappears when the block ends."""
    # Imported here: few programs show a bar.
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
    """Report a line after `SILENT_S` seconds and every `EVERY_S`, from a separate thread."""
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
