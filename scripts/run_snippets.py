"""Run the snippets of Markdown pages and compare what they print with what the page says.

A fenced block is run if its language is one of

* ``python``: executed; the blocks of a page share one namespace. Checks are written as ``assert``.
* ``console``: each line ``$ command`` (continued by a trailing backslash) is run by ``bash``; the lines below
  it, if any, are its expected output, in which ``...`` stands for any text, also over several lines.

Both kinds run in one temporary folder per page, with this interpreter's own programs first in ``PATH``. Any
other language (``text``, ``sh``, ``rust``) is left alone, and so is a Python block that imports a module of
`OPTIONAL` which is not installed; later blocks must not use its names. The first failure of a page ends that
page; it is printed as ``page:line: reason``, and the exit status is 1 if any page failed.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)")
IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
OPTIONAL = {"torch", "transformers"}
"""Modules of gigabytes, which not every environment for tests has."""
COMMAND_TIMEOUT_S = 300


class SnippetError(Exception):
    """A snippet failed at ``line`` (counted from 1) of its page."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text without the fences, and the line of the page it begins at."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a console block, with the output the page shows for it (empty: any output will do)."""

    command: str
    expected: str
    line: int


def blocks(markdown: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order. Raises `SnippetError` for a fence that is never closed."""
    lines = enumerate(markdown.splitlines(), start=1)
    for number, line in lines:
        if not (fence := FENCE.match(line)):
            continue
        indent, body = len(fence["indent"]), []
        for _, inner in lines:
            if inner.strip() == fence["ticks"]:
                break
            body.append(inner[indent:])
        else:
            raise SnippetError(number, f"the fence {fence['ticks']}{fence['language']} is never closed")
        yield Block(fence["language"], "\n".join(body), number + 1)


def commands(block: Block) -> list[Command]:
    """Split a console block into commands. Raises `SnippetError` if it does not begin with one."""
    commands: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), start=block.line))
    for number, line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines, (0, ""))[1].strip()
            commands.append(Command(command, "", number))
        elif commands:
            last = commands[-1]
            commands[-1] = Command(last.command, f"{last.expected}{line}\n", last.line)
        else:
            raise SnippetError(number, f"a console block begins with '$ command', not with {line!r}")
    return commands


def output_matches(expected: str, output: str) -> bool:
    """Whether ``output`` is ``expected``, with ``...`` for any text; blanks at line ends are ignored."""
    pattern = ".*".join(re.escape(part) for part in _strip_lines(expected).split("..."))
    return re.fullmatch(pattern, _strip_lines(output), re.DOTALL) is not None


def _strip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> None:
    """Execute a Python block in ``namespace``. Raises `SnippetError` at the line of the page that raised."""
    # Empty lines in front make the line numbers of the traceback those of the page.
    source = "\n" * (block.line - 1) + block.text
    try:
        exec(compile(source, str(page), "exec"), namespace)
    except SyntaxError as error:
        raise SnippetError(error.lineno or block.line, f"SyntaxError: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(page)]
        line = (frames[-1].lineno if frames else None) or block.line
        reason = f"{type(error).__name__}: {error}\n    {source.splitlines()[line - 1].strip()}"
        raise SnippetError(line, reason) from error


def run_console(block: Block) -> None:
    """Run a console block's commands. Raises `SnippetError` for a failing command or an unexpected output."""
    for command in commands(block):
        try:
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command.command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=COMMAND_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            reason = f"`{command.command}` ran longer than {COMMAND_TIMEOUT_S} s"
            raise SnippetError(command.line, reason) from error
        if result.returncode != 0:
            reason = f"`{command.command}` ended with status {result.returncode}:\n{result.stdout}"
            raise SnippetError(command.line, reason)
        if command.expected and not output_matches(command.expected, result.stdout):
            reason = f"`{command.command}` printed\n{result.stdout}but the page shows\n{command.expected}"
            raise SnippetError(command.line, reason)


def missing_module(block: Block) -> str | None:
    """The first module of `OPTIONAL` that a Python block imports and that is not installed."""
    imported = IMPORT.findall(block.text) if block.language == "python" else []
    return next((name for name in imported if name in OPTIONAL and find_spec(name) is None), None)


def run_page(page: Path) -> int:
    """Run a page's snippets in a temporary folder and return how many ran. Raises `SnippetError`."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(text):
            if name := missing_module(block):
                print(f"{page.name}:{block.line}: SKIPPED, {name} is not installed")
                continue
            if block.language == "python":
                run_python(block, page, namespace)
            elif block.language == "console":
                run_console(block)
            else:
                continue
            ran += 1
    return ran


def run_apart(page: Path) -> None:
    """Run a page in a process of its own. Raises `AssertionError` with what it printed if a snippet fails."""
    command = [sys.executable, str(Path(__file__).resolve()), str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def main(arguments: list[str] | None = None) -> int:
    """Run the pages named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the python and console snippets of Markdown pages.")
    parser.add_argument("pages", nargs="+", type=Path)
    pages: list[Path] = parser.parse_args(arguments).pages
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    failed = False
    for page in pages:
        start = time.perf_counter()
        try:
            ran = run_page(page.resolve())
        except SnippetError as error:
            print(f"{page}:{error.line}: {error}", file=sys.stderr)
            failed = True
        else:
            print(f"{page}: {ran} snippets, {time.perf_counter() - start:.1f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
