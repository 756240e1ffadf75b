"""The command line as it is read: groups, examples, and errors that name the way out."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shlex
from pathlib import Path

import keywright
import numpy as np
import pytest
from keywright.cli import main
from keywright.commands.command_line import parser
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.inputs import parse_bytes
from keywright.commands.models.info import JSON_KINDS, MESSAGES
from keywright.commands.parsing import command_name, command_name_of
from keywright.commands.terminal import Column, Terminal
from rich.console import Console

GROUPS = parser().groups
COMMANDS = [module for modules in GROUPS.values() for module in modules]
PACKAGE = Path(keywright.__file__).parent


@pytest.mark.parametrize("command", COMMANDS, ids=command_name)
def test_every_command_has_an_example_that_is_read(command: object) -> None:
    program, *arguments = shlex.split(command.EXAMPLE)  # type: ignore[attr-defined]
    assert program == "keywright"
    assert command_name_of(parser().read(arguments)) == command_name(command)  # type: ignore[arg-type]


def test_alone_it_prints_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    for title, commands in GROUPS.items():
        assert f"\n{title}\n" in text
        assert all(f"\n  {command_name(command)} " in text for command in commands)
    assert max(map(len, text.splitlines())) <= 80


def test_the_help_of_every_command_fits_and_names_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in parser().commands.items():
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        text = capsys.readouterr().out
        assert "\nexample: keywright " in text
        for action in command._actions:
            if action.option_strings and action.nargs != 0 and isinstance(action.metavar, str):
                assert action.metavar != action.dest.upper() or len(action.metavar) < 12, action.dest
        assert not re.search(r"\(default [^:]", text), name


NAMED = {"preset": "keywright presets", "bootstrap": "keywright presets"}
"""Options whose values a command lists."""


@pytest.mark.parametrize("word", ["folder", "seconds"])
def test_a_value_is_named_by_what_its_help_says(word: str) -> None:
    named = {
        f"{name} {action.option_strings[-1]}": str(action.metavar)
        for name, command in parser().commands.items()
        for action in command._actions
        if action.option_strings and (action.help or "").startswith(word)
    }
    assert set(named.values()) == {word.upper()}, named


def test_the_help_of_every_option_of_a_few_values_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    count = 0
    for name, command in parser().commands.items():
        for action in command._actions:
            if action.choices is None:
                continue
            count += 1
            shown = " ".join(action.help.split()) if action.help else ""
            head = action.metavar or "{" + ",".join(map(str, action.choices)) + "}"
            known = NAMED.get(action.dest, "")
            assert (known and known in shown) or all(
                str(each) in f"{head} {shown}" for each in action.choices
            ), f"{name} {action.dest}"
    assert count > 10
    with pytest.raises(SystemExit):
        main(["compile", "--help"])
    assert "--client {slots,thin}" in capsys.readouterr().out


USAGE = [
    ("compil", "'compil' is not a command", "did you mean compile"),
    ("zzz", "'zzz' is not a command", "choose from demo, infer"),
    ("infer", "needs MODEL", "see keywright infer --help"),
    ("--foo presets", "has no option --foo", "options follow the command"),
    (
        "info x --seed 3",
        "has no option --seed",
        "write, e.g., keywright info keys/server/keys.kw (see --help)",
    ),
    ("infer m.onnx --calibratoin x", "has no option --calibratoin", "did you mean --calibration"),
    ("keygen a b --out c", "does not take 'b'", "see keywright keygen --help"),
    ("plan --hops 9 x", "'9' is not a value of --hops", "choose from 1, 2, 3, 4"),
    ("bench --set man", "'man' is not a value of --set", "did you mean main"),
    ("infer m.onnx --batch 3", "not a power of two", "write 1, 2, 4"),
    ("info x --threads many", "'many' is not a value of --threads", "write a whole number"),
    ("compile x --out y --error many", "'many' is not a value of --error", "write a number"),
    ("demo --threads 0", "--threads 0 is too small", "use at least 1 thread"),
    ("info /no/such/file", "/no/such/file: No such file", "no folder /no/such"),
    ("info sampels.npy", "sampels.npy: No such file", "did you mean samples.npy"),
    ("info notes.txt", "notes.txt is not a Keywright file", "a model that ends in .onnx"),
    ("info other.json", "not a Keywright file", "name another file"),
]


@pytest.mark.parametrize(("line", "what", "advice"), USAGE)
def test_errors_have_advice(
    line: str,
    what: str,
    advice: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("samples.npy", np.zeros(3))
    Path("notes.txt").write_text("hello")
    Path("other.json").write_text("{}")
    assert main(shlex.split(line)) == 2
    first, second, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("error: ")
    assert what in first
    assert advice in second
    assert not more
    assert main([*shlex.split(line), "--json"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert (f"error: {error['message']}", f"  {error['advice']}") == (first, second)


@pytest.mark.parametrize(
    "text", ["8GiB", "8 gib", "8g", "8G", " 8192MiB ", "8388608k", "8589934592", "8589934592b"]
)
def test_amounts_of_memory_in_all_spellings(text: str) -> None:
    assert parse_bytes(text) == 8 << 30


def test_decimal_units_are_decimal_and_others_are_refused() -> None:
    assert parse_bytes("1.5kB") == parse_bytes("1.5KB") == 1500
    for text in ("lots", "-1", "8 pounds", "1e9", "", "9" * 400, "9" * 5000, "1." + "9" * 5000):
        with pytest.raises(CommandError, match=r"e\.g\., 8GB"):
            parse_bytes(text)


EXTREME = ("", "0", "-1", "nan", "inf", "1e400", "1e-320", "9" * 30, "9" * 400, "9" * 5000, "1_0", "-0.0")


def test_no_option_ends_in_another_error_than_that_of_its_value() -> None:
    (commands,) = (each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    read: set[str] = set()
    for command in commands.choices.values():
        for option in command._actions:
            if option.type is None:
                continue
            convert = command._registry_get("type", option.type, option.type)
            for text in EXTREME:
                # What argparse and `main` report.
                with contextlib.suppress(argparse.ArgumentTypeError, TypeError, ValueError, CommandError):
                    convert(text)
            read.update(option.option_strings)
    assert {"--port", "--threads"} <= read
    for number in ("9" * 30, "-" + "9" * 400, str(1 << 63)):
        with pytest.raises(CommandError, match=r"--samples: .* is not from"):
            parser().read(["compile", "model.onnx", "--out", "served", f"--samples={number}"])


def test_names_and_numbers_stay_whole_in_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=80, highlight=False)
    columns = [Column("name", "name"), *(Column(f"n{i}", "a long heading", "number") for i in range(6))]
    columns.append(Column("text", "text"))
    row = {"name": "N16_QP1732_L9_S45_few_keys", "text": "some words that may be wrapped"}
    Terminal(output=console).table(columns, [row | {f"n{i}": 1_234_567 for i in range(6)}])
    text = capsys.readouterr().out
    assert row["name"] in text
    assert text.count("1,234,567") == 6


def test_info_knows_every_format_in_json() -> None:
    """A new format gets a name that `info` prints."""
    formats = set[str]()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        formats |= set(re.findall(r'^ *FORMAT(?:, _KIND)? = "([a-z-]+?)(?:-\d+)?"', text, re.M))
    assert formats == set(JSON_KINDS)


def test_info_knows_every_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new format of bytes gets a name that `info` prints."""
    begins, crates = set[bytes](), PACKAGE.parents[1] / "crates"
    for path in (*PACKAGE.rglob("*.py"), *crates.glob("*/src/**/*.rs")):
        if path.name != "info.py":
            text = path.read_text(encoding="utf-8")
            magics = re.findall(r'b"((?:KW|kw)[A-Za-z]{4,5})(?:\d|\\0|\\x00)', text)
            begins |= {magic.encode().ljust(7, b"\0") for magic in magics}
    assert begins == set(MESSAGES)
    for begin, kind in MESSAGES.items():
        (tmp_path / "message").write_bytes(begin + b"1" + bytes(40))
        assert main(["info", str(tmp_path / "message")]) == 0
        assert kind in capsys.readouterr().out


def test_info_describes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "samples.npy", np.zeros((2, 3)))
    (tmp_path / "plan.json").write_text('{"format": "keywright-plan-1", "keys": [1, 2]}')
    (tmp_path / "notes.txt").write_text("hello")
    np.savez(tmp_path / "archive.npz", samples=np.zeros(3))
    assert main(["info", str(tmp_path), "--json"]) == 0
    rows = {row["file"]: row["kind"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows == {
        "archive.npz": "other",
        "notes.txt": "other",
        "plan.json": "a key plan",
        "samples.npy": "an array of numbers",
    }
    assert main(["info", str(tmp_path / "samples.npy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shape"] == "2 x 3"


def test_a_long_title_of_a_narrow_table_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    title = "a/long/path/to/a/file/that/does/not/fit.kwp"
    Terminal(output=Console(width=30, highlight=False)).table([Column("n", "n")], [{"n": "1"}], title=title)
    assert capsys.readouterr().out.splitlines()[0] == title


@pytest.mark.parametrize("name", sorted(parser().commands))
def test_the_help_of_a_command_fits_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = parser().commands[name].format_help().splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith("example: ")] == []


def test_an_empty_path_is_refused_by_every_command() -> None:
    """It would name the current folder, which a message then advises to remove."""
    tried = 0
    for name, command in parser().commands.items():
        for action in command._actions:
            if action.type is not Path:
                continue
            given = [name, *action.option_strings[:1], ""]
            with pytest.raises(CommandError, match="the path is empty; name a file or folder"):
                parser().read(given)
            tried += 1
    assert tried > 30


def test_no_parser_ends_the_process() -> None:
    for command in parser().commands.values():
        with pytest.raises(CommandError):
            command.error("something; do this")
        assert isinstance(command, argparse.ArgumentParser)


def test_info_marks_a_pool_and_a_secret_key_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = keywright.SecretKey.generate(keywright.Parameters.preset("N13_QP214_S38"))
    file, register = tmp_path / "owner" / "pool", tmp_path / "register"
    file.parent.mkdir()
    key.save(file.parent / "secret.kw")
    keywright.EncryptionPool(key, 1, threads=0, file=file, file_key=bytes(32), register=register).close()
    assert main(["info", str(file)]) == 0
    assert capsys.readouterr().out.startswith("SECRET: it stays with its owner\n")
    assert main(["info", str(file.parent)]) == 0
    shown = capsys.readouterr().out
    assert "a pool of precomputed encryptions" in shown
    assert "\nsecret.kw: SECRET: it stays with its owner\n" in shown
