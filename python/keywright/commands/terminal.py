"""Output of the command line: results on standard output; progress, notes and errors on standard error.

Standard output can be piped: it carries tables for people or, with ``json=True``, one JSON object per line.
Tables and bars are drawn by ``rich``.
"""

import json
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keywright._progress import Advance, bar, lines, silent
from keywright._units import format_bytes, format_seconds

Value = str | int | float | bool | None
Kind = Literal["text", "number", "seconds", "bytes", "ratio", "share", "hash"]

PIPE_WIDTH = 1000
TEXT_WIDTH = 8
"""Width to which a column of texts is narrowed at least."""

HASH_DIGITS = 12

Level = Literal["error", "warning", "info", "debug"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info", "debug")
"""Log levels, from least to most output."""

COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys, or cannot show: names of files and of models may have any."""


@dataclass(frozen=True)
class Column:
    """A column of a table: the key of its values in each row, its heading, and the quantity it holds.

    ``seconds`` and ``bytes`` are shown with a unit that suits their size, ``ratio`` as ``2.5x``, ``share``
    as ``25.0%``, and of a ``hash`` the first digits: JSON has them all.
    """

    key: str
    heading: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Failure:
    """The reason why a command failed.

    Attributes:
        kind: name of the error's class.
        message: the fault, its place and its cause.
        code: the kind of mistake, if the class covers several.
        advice: the remedy; empty if the message includes it.
        details: numbers and names of the error.
        reasons: the single reasons, if there are several.
        error: the exception.
    """

    kind: str
    message: str
    advice: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    reasons: Sequence["Failure"] = ()
    error: BaseException | None = None
    code: str = ""

    def record(self) -> dict[str, object]:
        """Return the JSON object."""
        results: dict[str, object] = {"type": self.kind, "message": self.message}
        if self.code:
            results["code"] = self.code
        if self.advice:
            results["advice"] = self.advice
        if self.details:
            results["details"] = dict(self.details)
        if self.reasons:
            results["reasons"] = [reason.record() for reason in self.reasons]
        return results

    def lines(self, indent: str = "  ") -> list[str]:
        """Return the lines below the message: the advice, and the reasons, grouped by advice."""
        out = [f"{indent}{self.advice}"] if self.advice else []
        for advice in dict.fromkeys(reason.advice for reason in self.reasons):
            out += [f"{indent}{reason.message}" for reason in self.reasons if reason.advice == advice]
            out += [f"{indent}  {advice}"] if advice else []
        return out


class Terminal:
    """The two streams of a command. Make one per command and pass it to every function that prints.

    Args:
        json: print JSON lines instead of tables and errors; suppresses notes.
        level: error prints only errors; warning, info and debug add warnings, notes and progress, and
            tracebacks.
        output: console of results; standard output by default.
        notes: console of progress, notes and errors; standard error by default.
    """

    def __init__(
        self,
        *,
        json: bool = False,
        level: Level = "info",
        output: Console | None = None,
        notes: Console | None = None,
    ) -> None:
        self.json, self._level = json, LEVELS.index(level)
        # In a pipe a table is as wide as it needs to be; rich would assume 80 columns.
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        self._output = output or Console(highlight=False, width=width)
        self._notes = notes or Console(stderr=True, highlight=False)

    def table(
        self, columns: Sequence[Column], rows: Iterable[Mapping[str, Value]], *, title: str = ""
    ) -> None:
        """Print rows as one table, or as one JSON object per row with every key of the row.

        A missing key or ``None`` shows as a dash.
        """
        if self.json:
            for row in rows:
                self.record(row)
            return
        if title:
            # Apart from the table, which may be narrower than a path.
            self._output.print(Text(shown(title), style="bold"), soft_wrap=True)
        table = Table(box=None, pad_edge=False)
        cells = [[format_value(row.get(column.key), column.kind) for column in columns] for row in rows]
        widths = [max(map(len, values), default=0) for values in zip(*cells, strict=True)]
        least: list[int] = []
        for place, column in enumerate(columns):
            justify: Literal["left", "right"] = "left" if column.kind in ("text", "hash") else "right"
            # Names, numbers and words of headings stay whole; headings and other texts are wrapped.
            whole = place == 0 or column.kind != "text"
            word = max(map(len, column.heading.split()))
            least.append(
                max(word, widths[place] if cells and whole else min(len(column.heading), TEXT_WIDTH))
            )
            table.add_column(column.heading, justify=justify, overflow="fold", min_width=least[-1])
        for values in cells:
            table.add_row(*map(Text, values))
        # A table that is too wide even so continues on the terminal's next line.
        width = max(self._output.width, sum(least) + 2 * len(least))
        self._output.print(table, width=width, crop=False, soft_wrap=width > self._output.width)

    def text(self, line: str) -> None:
        """Print a line of results for people; nothing in JSON mode."""
        if not self.json:
            _print(self._output, Text(shown(line)))

    def record(self, values: Mapping[str, object]) -> None:
        """Print one object as a line of JSON and flush, so that a reader sees it at once.

        Raises:
            ValueError: a float is not finite, which JSON cannot represent.
            TypeError: a value is not a JSON type; convert numpy scalars with ``.item()``.
        """
        self._output.file.write(json.dumps(values, allow_nan=False) + "\n")
        self._output.file.flush()

    def note(self, text: str) -> None:
        """Print a note for people on standard error; nothing in JSON mode."""
        if not self.json and self._level >= LEVELS.index("info"):
            _print(self._notes, Text(shown(text)))

    def warn(self, text: str) -> None:
        """Print a warning for people on standard error; nothing in JSON mode."""
        if not self.json and self._level >= LEVELS.index("warning"):
            _print(self._notes, Text.assemble(("warning: ", "bold yellow"), shown(text)))

    def error(self, failure: Failure) -> None:
        """Print why the command failed, on standard error: the message, and the advice on a line of its own.
        In JSON mode, print one object, ``{"error": {"type": ..., "message": ..., "advice": ...}}``."""
        if self.json:
            self._notes.file.write(json.dumps({"error": failure.record()}) + "\n")
            self._notes.file.flush()
        else:
            _print(self._notes, Text.assemble(("error: ", "bold red"), shown(failure.message)))
            for line in failure.lines():
                _print(self._notes, Text(shown(line)))
        if failure.error is not None and self._level >= LEVELS.index("debug"):
            self._notes.print(Text(shown("".join(traceback.format_exception(failure.error)))), soft_wrap=True)

    @contextmanager
    def progress(self, description: str, total: float | None) -> Iterator[Advance]:
        """Show the progress of the block: a bar on a terminal that can draw one, periodic lines elsewhere,
        and nothing in JSON mode. Yields ``advance(steps, label)``.

        Args:
            description: the work.
            total: number of steps, or predicted seconds as a float; None if unknown.
        """
        if self.json or self._level < LEVELS.index("info"):
            with silent(description, total) as advance:
                yield advance
        elif self._notes.is_terminal and not self._notes.is_dumb_terminal:
            with bar(self._notes, description, total) as advance:
                yield advance
        else:
            with lines(self.note, description, total) as advance:
                yield advance


def _print(console: Console, text: Text) -> None:
    """Print a text: on a terminal its lines end between words, in a file they are as they are."""
    console.print(text, soft_wrap=not console.is_terminal)


def shown(text: str) -> str:
    """Return a text with ``?`` for each of `COMMANDS`."""
    return COMMANDS.sub("?", text)


def format_value(value: Value, kind: Kind) -> str:
    """Format a value of a column for people; ``None`` is a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f"{value[:HASH_DIGITS]}..." if kind == "hash" else shown(value).replace("\n", "?")
    if kind == "seconds":
        return format_seconds(value)
    if kind == "bytes":
        return format_bytes(value)
    if kind == "ratio":
        return f"{value:.3g}x"
    if kind == "share":
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
