"""Run the snippets of Markdown pages and compare what they print with what the page says.

A fenced block is run if its language is one of

* ``python``: executed; the blocks of a page share one namespace. Checks are written as ``assert``.
* ``console``: each line ``$ command`` (continued by a trailing backslash) is run by ``bash``, or in a fork of
  this process if it only calls ``keywright``; the lines below it, if any, are its expected output, in which
  ``...`` stands for any text, also over several lines.

Both kinds run in one temporary folder per page, with this interpreter's own programs first in ``PATH``. Any
other language (``text``, ``sh``, ``rust``) is left alone, and so is a Python block that imports a module of
`OPTIONAL` which is not installed; later blocks must not use its names. The first failure of a page ends that
page; it is printed as ``page:line: reason``, and the exit status is 1 if any page failed.
"""

import argparse
import contextlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)")
IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
OPTIONAL = {"torch", "transformers"}
"""Modules of gigabytes, which not every environment for tests has."""
COMMAND_TIMEOUT_S = 300
IMPORTED = ("sklearn.ensemble", "sklearn.pipeline", "keywright.model", "keywright.commands.command_line")
"""Modules that many pages need: one process imports them, of which the processes of pages are forks."""
WORDS = re.compile(r"keywright( [\w./:=+,-]+)+")
"""A command that means the same without a shell."""


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
            status, output = run_command(command.command)
        except subprocess.TimeoutExpired as error:
            reason = f"`{command.command}` ran longer than {COMMAND_TIMEOUT_S} s"
            raise SnippetError(command.line, reason) from error
        if status != 0:
            reason = f"`{command.command}` ended with status {status}:\n{output}"
            raise SnippetError(command.line, reason)
        if command.expected and not output_matches(command.expected, output):
            reason = f"`{command.command}` printed\n{output}but the page shows\n{command.expected}"
            raise SnippetError(command.line, reason)


def run_command(command: str) -> tuple[int, str]:
    """Run a command and return its exit status and its output. Raises `subprocess.TimeoutExpired`."""
    if WORDS.fullmatch(command) and hasattr(os, "fork"):
        return _in_process("fork", _keywright, command.split()[1:], COMMAND_TIMEOUT_S)
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    return result.returncode, result.stdout


def _keywright(arguments: list[str]) -> int:
    from keywright.cli import main

    return main(arguments)


def _in_process(
    start: str, work: Callable[[Any], int], argument: object, seconds: float | None
) -> tuple[int, str]:
    """Call a function in a process of its own; return the exit status that it returns, and its output.
    Raises `subprocess.TimeoutExpired`."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        context: Any = multiprocessing.get_context(start)
        if start == "forkserver":
            context.set_forkserver_preload([*IMPORTED])
        process = context.Process(target=_redirected, args=(work, argument, output))
        process.start()
        process.join(seconds)
        if seconds is not None and process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([str(argument)], seconds)
        return process.exitcode, output.read_text(encoding="utf-8") if output.exists() else ""


def _redirected(work: Callable[[Any], int], argument: object, output: Path) -> None:
    """Call a function with everything that it prints in a file, and exit with the status that it returns."""
    with Path(os.devnull).open(encoding="utf-8") as nothing, output.open("w", encoding="utf-8") as file:
        for number, stream in enumerate((nothing, file, file)):
            os.dup2(stream.fileno(), number)
        # Not those of the parent, which may hold text that it has not written yet.
        sys.stdin, sys.stdout, sys.stderr = nothing, file, file
        sys.exit(work(argument))


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
    """Run a page in a process of its own, a copy of one that has imported `IMPORTED`. Raises `AssertionError`
    with what it printed if a snippet fails."""
    start = "forkserver" if hasattr(os, "fork") else "spawn"
    status, printed = _in_process(start, main, [str(page)], None)
    assert status == 0, printed


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
