"""Commands of the ledger's records and of the pages beside it are read as their programs read them, from the
repository's root."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NoReturn
from unittest.mock import MagicMock

import pytest
from keywright.commands.command_line import parser
from keywright.commands.parsing import UsageError
from studies.ledger.records import ROOT, records

PAGES = sorted((ROOT / "docs" / "reproduction").rglob("*.md"))
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
MENTION = re.compile(r"`((?:python (?:-m )?|cargo run |make |keywright )[^`]+)`")


def in_blocks(page: Path) -> list[str]:
    """The commands that a page shows in blocks. Those behind a line `cd FOLDER` run there."""
    commands = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        folder = ""
        for line in block.replace("\\\n", " ").splitlines():
            words = line.partition("  #")[0].strip()
            if words.startswith("cd ") and "&&" not in words:
                folder = f"{words} && "
            elif words:
                commands.append(folder + words)
    return commands


def mentions(page: Path) -> list[str]:
    """The programs that the sentences of a page name, perhaps without arguments that they need."""
    text = " ".join(BLOCK.sub("", page.read_text(encoding="utf-8")).split())
    return MENTION.findall(text)


COMMANDS = sorted(
    {record.command for record in records().values() if record.command}
    | {line for page in PAGES for line in in_blocks(page)}
)
MENTIONS = sorted({mention for page in PAGES for mention in mentions(page)} - set(COMMANDS))
LIGHT = {
    "key_extension": "key_extension.jsonl",
    "weights": "weights.jsonl",
    "bounds": None,
    "frontier": None,
}
"""Records whose commands need no data and little time, and the file that each makes again to the last byte;
None where a program prints its figures."""

UNFINISHED = {"keywright demo --picture", "keywright infer", "keywright serve"}
"""Commands that sentences name without what they need."""

TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


class Parsed(Exception):
    """A program's arguments are read, and it would begin."""


def programs(command: str) -> list[tuple[Path, list[str]]]:
    """Folder and words of each program of a command line."""
    folder, programs = ROOT, []
    for part in command.split(" && "):
        words = shlex.split(part)
        while "=" in words[0]:  # a variable of the environment
            words = words[1:]
        if words[0] == "cd":
            folder = folder / words[1]
        else:
            programs.append((folder, words))
    return programs


def read(path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a program up to the end of `parse_args`, which needs no torch."""
    if "\nimport torch\n" in path.read_text(encoding="utf-8") and importlib.util.find_spec("torch") is None:
        monkeypatch.setitem(sys.modules, "torch", MagicMock())
        monkeypatch.setitem(sys.modules, "torch.nn", MagicMock())
    whole = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, args: list[str] | None = None) -> NoReturn:
        whole(self, args)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    with pytest.raises(Parsed):
        runpy.run_path(str(path), run_name="__main__")


def asks_for_a_model(path: Path, words: list[str]) -> bool:
    """Whether a study reads its arguments and then asks for a model, which they do not name."""
    asks = "--model names the ONNX file" in path.read_text(encoding="utf-8")
    return asks and "--model" not in words and not {"gru", "lenet-mnist", "vit-mnist"} & set(words)


def source(module: str) -> Path:
    """The file that `python -m` runs."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"there is no {module}"
    path = Path(spec.origin or "")
    return path.with_name("__main__.py") if path.name == "__init__.py" else path


def rust_source(words: list[str]) -> Path:
    """The file of a program that `cargo run` builds."""
    crate = words[words.index("-p") + 1]
    if "--bin" in words:
        return ROOT / "benchmarks" / "suite" / "src" / "bin" / f"{words[words.index('--bin') + 1]}.rs"
    example = words[words.index("--example") + 1]
    return ROOT / "crates" / crate.removeprefix("keywright-") / "examples" / f"{example}.rs"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_read_by_its_program(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, words in programs(command):
        match words:
            case ["make", target]:
                assert target in TARGETS
            case ["cargo", "run", *_]:
                assert rust_source(words).is_file()
            case ["python", "-m", "gallery", name]:
                assert folder == ROOT / "examples"
                assert name.isupper() or list((folder / "gallery").rglob(f"{name}.py"))
            case ["python", "-m", module, *arguments]:
                assert folder == ROOT / "benchmarks"
                assert not asks_for_a_model(source(module), arguments), "it asks for --model"
                read(source(module), arguments, monkeypatch)
            case ["python", script, *arguments]:
                assert (folder / script).is_file()
                monkeypatch.syspath_prepend((folder / script).parent)
                read(folder / script, arguments, monkeypatch)
            case ["keywright", *arguments]:
                parser().parse_args(arguments)
            case _:
                pytest.fail(f"nothing here reads {words}")


@pytest.mark.parametrize("mention", MENTIONS)
def test_a_program_that_a_sentence_names_has_these_arguments(
    mention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments that it needs besides, and words in capitals, may be for a reader to fill in."""

    def error(self: argparse.ArgumentParser, message: str) -> NoReturn:
        assert "arguments are required" in message or re.search(r"'[A-Z]+'", message), message
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "error", error)
    match shlex.split(mention):
        case ["make", target]:
            assert target in TARGETS
        case ["cargo", "run", *_] as words:
            assert rust_source(words).is_file()
        case ["python", "-m", module, *arguments]:
            read(source(module), arguments, monkeypatch)
        case ["keywright", *arguments]:
            needs = pytest.raises(UsageError, match=r" needs |expected one argument")
            with needs if mention in UNFINISHED else contextlib.nullcontext():
                parser().parse_args(arguments)
        case words:
            pytest.fail(f"nothing here reads {words}")


@pytest.mark.full
@pytest.mark.parametrize("name", LIGHT)
def test_a_light_command_runs_and_makes_its_record_again(name: str, tmp_path: Path) -> None:
    record, table = records()[name], LIGHT[name]
    command = record.command if table is None else f"{record.command} --out {shlex.quote(str(tmp_path))}"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if table is not None:
        assert (tmp_path / table).read_text(encoding="utf-8") == record.text
    else:
        assert done.stdout
