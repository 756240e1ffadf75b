import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from keywright._units import format_bytes, format_seconds
from keywright.commands.terminal import Column, Failure, Level, Terminal, Value, shown
from rich.console import Console

COLUMNS = [Column("name", "Name"), Column("size", "Size", "bytes"), Column("time", "Time", "seconds")]
ROWS: list[dict[str, Value]] = [
    {"name": "rotation [5]", "size": 3.15e6, "time": 0.0271, "level": 3},
    {"name": "relinearization", "size": None, "time": 12e-6, "level": 9},
]


def make(
    *, json: bool = False, interactive: bool = False, level: Level = "info", kind: str = "xterm"
) -> tuple[Terminal, io.StringIO, io.StringIO]:
    """Return a terminal of a kind that writes to two strings, whatever the environment of the tests says."""
    output, notes = io.StringIO(), io.StringIO()
    terminal = Terminal(
        json=json,
        level=level,
        output=Console(file=output, width=100, _environ={"TERM": kind}),
        notes=Console(file=notes, width=100, force_terminal=interactive, _environ={"TERM": kind}),
    )
    return terminal, output, notes


def test_table_shows_units_dashes_and_brackets_as_written() -> None:
    terminal, output, _ = make(json=False)
    terminal.table(COLUMNS, ROWS, title="Keys [all]")
    lines = [line.split() for line in output.getvalue().splitlines()]
    assert lines == [
        ["Keys", "[all]"],
        ["Name", "Size", "Time"],
        ["rotation", "[5]", "3.15", "MB", "27.1", "ms"],
        ["relinearization", "-", "12", "us"],
    ]


def test_people_read_the_first_digits_of_a_hash_and_programs_all() -> None:
    digest = "0123456789abcdef" * 4
    for as_json, expected in ((False, "hash 0123456789ab..."), (True, f'{{"hash": "{digest}"}}')):
        terminal, output, _ = make(json=as_json)
        terminal.table([Column("hash", "hash", "hash")], [{"hash": digest}])
        assert " ".join(output.getvalue().split()) == expected


def test_a_terminal_breaks_lines_between_words_and_a_file_keeps_them() -> None:
    text = " ".join(["no plan of this kind is smaller"] * 5)
    for interactive in (True, False):
        terminal, _, notes = make(interactive=interactive)
        terminal.note(text)
        lines = notes.getvalue().splitlines()
        assert " ".join(line.rstrip() for line in lines) == text
        assert len(lines) == (2 if interactive else 1)


def test_json_has_every_key_of_every_row_and_nothing_else() -> None:
    terminal, output, notes = make(json=True, interactive=True)
    terminal.note("not for machines")
    with terminal.progress("rows", 2) as advance:
        terminal.table(COLUMNS, ROWS, title="Keys")
        advance(2)
    assert [json.loads(line) for line in output.getvalue().splitlines()] == ROWS
    assert notes.getvalue() == ""


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_refuses_what_json_cannot_say(value: float) -> None:
    terminal, output, _ = make(json=True)
    with pytest.raises(ValueError, match="not JSON compliant"):
        terminal.record({"median_s": value})
    assert output.getvalue() == ""


def test_progress_is_drawn_on_a_terminal_only() -> None:
    for interactive in (True, False):
        terminal, output, notes = make(json=False, interactive=interactive)
        with terminal.progress("keys [0/2]", 2) as advance:
            advance(2)
        assert ("keys [0/2]" in notes.getvalue()) is interactive
        with terminal.progress("for how long?", None):
            pass
        assert ("for how long?" in notes.getvalue()) is interactive
        assert output.getvalue() == ""


@pytest.mark.parametrize("kind", ["dumb", "unknown"])
def test_a_terminal_that_draws_nothing_has_lines(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keywright._progress.SILENT_S", 0.02)
    monkeypatch.setattr("keywright._progress.EVERY_S", 0.02)
    terminal, _, notes = make(interactive=True, kind=kind)
    with terminal.progress("keys", 2) as advance:
        advance(1)
        while "keys, " not in notes.getvalue() and "keys: " not in notes.getvalue():
            time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows needs its own variables")
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "20", "LINES": "5", "LC_ALL": "C", "HOME": "/nowhere"},
        {"TERM": "xterm-256color", "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "LC_ALL": "tr_TR.UTF-8"},
    ],
    ids=["bare", "dumb", "colourful"],
)
def test_no_test_of_this_file_depends_on_the_environment(environment: dict[str, str]) -> None:
    """`make test` failed where TERM was dumb."""
    if "KEYWRIGHT_INNER_TESTS" in os.environ:
        pytest.skip("these are the tests within")
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV") if name in os.environ}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", __file__],
        env={**kept, **environment, "KEYWRIGHT_INNER_TESTS": "1"},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


def test_long_work_has_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keywright._progress.SILENT_S", 0.02)
    monkeypatch.setattr("keywright._progress.EVERY_S", 0.02)
    monkeypatch.setattr("keywright._progress.LEAST_LEFT", 0.0)
    terminal, _, notes = make(json=False)
    with terminal.progress("layers [all]", 4.0) as advance:
        advance(1.0, "layer 2 of 3, [conv]")
        while notes.getvalue().count("\n") < 2:
            time.sleep(0.01)
    text = notes.getvalue()
    assert text.startswith("layers [all]: layer 2 of 3, [conv], 25%, about ")
    # A quarter of the work took a quarter of the time.
    assert 3 * advance_seconds(text, "on this step") == pytest.approx(advance_seconds(text, "left"), rel=0.05)
    with terminal.progress("compiling", None):
        while "compiling, " not in notes.getvalue():
            time.sleep(0.01)
    after = notes.getvalue()
    time.sleep(0.1)
    assert notes.getvalue() == after
    silent, _, notes = make(json=True)
    with silent.progress("compiling", None):
        time.sleep(0.1)
    assert notes.getvalue() == ""


def advance_seconds(text: str, word: str) -> float:
    """Return the milliseconds before a word of the first line."""
    (part,) = [part for part in text.splitlines()[0].split(", ") if part.endswith(word)]
    return float(part.removeprefix("about ").split()[0])


def test_errors_go_to_standard_error_also_in_json_mode() -> None:
    message = "level 9 is above the top level 7: " + "nearest keys: [3], [5], " * 10
    deep = Failure("RefusalError", "7 levels, 3 are available", "take another preset")
    failure = Failure("LevelError", message, "start lower", {"level": 9}, [deep, deep, Failure("E", "x")])
    for terminal, output, notes in (make(), make(json=True)):
        terminal.error(failure)
        printed = notes.getvalue().splitlines()
        if terminal.json:
            assert json.loads(printed[0]) == {
                "error": {
                    "type": "LevelError",
                    "message": message,
                    "advice": "start lower",
                    "details": {"level": 9},
                    "reasons": [deep.record(), deep.record(), {"type": "E", "message": "x"}],
                }
            }
        else:
            # In one line and with its brackets; advice that several reasons share is printed once.
            expected = [f"error: {message}", "  start lower", *["  7 levels, 3 are available"] * 2]
            assert printed == [*expected, "    take another preset", "  x"]
        assert output.getvalue() == ""


def test_what_is_told_beside_results() -> None:
    levels: dict[Level, int] = {"error": 0, "warning": 1, "info": 2, "debug": 2}
    for level, expected in levels.items():
        terminal, _, notes = make(level=level)
        terminal.note("a note")
        terminal.warn("look at this")
        assert len(notes.getvalue().splitlines()) == expected
        failed = Failure("E", "x", error=ValueError("who knows"))
        terminal.error(failed)
        assert ("ValueError: who knows" in notes.getvalue()) == (level == "debug")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1024, "1.02 kB"),
        (999.7e3, "1.00 MB"),
        (128.4e6, "128 MB"),
        (2.5e9, "2.50 GB"),
        (5e15, "5000 TB"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ns"),
        (48.8e-6, "48.8 us"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (9.996e-3, "10.0 ms"),
        (59.96, "60.0 s"),
        (99.96, "1 min 40 s"),
        (3725, "62 min 05 s"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\rb", "\x9b1m", "\u202egpj.exe", "\udcff", "\x07"])
def test_a_terminal_obeys_no_name(text: str) -> None:
    """Names of files may hold commands of terminals, and characters that cannot be printed."""
    terminal, output, notes = make()
    terminal.table([Column("file", "file")], [{"file": f"{text}\nb"}], title=text)
    terminal.text(text)
    terminal.note(text)
    terminal.warn(text)
    terminal.error(Failure("Error", text, text))
    for printed in (output.getvalue(), notes.getvalue()):
        assert all(letter.isprintable() or letter == "\n" for letter in printed)
        assert "?" in printed
    assert "?b" in output.getvalue()
    assert shown("é 日本\xa0\n\N{ZERO WIDTH NON-JOINER}") == "é 日本\xa0\n\N{ZERO WIDTH NON-JOINER}"
