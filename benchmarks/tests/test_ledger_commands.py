"""Commands of the ledger's records are read as their programs read them, from the repository's root."""

from __future__ import annotations

import argparse
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
from studies.ledger.records import ROOT, records

COMMANDS = sorted({record.command for record in records().values()})
LIGHT = {
    "key_extension": "key_extension.jsonl",
    "weights": "weights.jsonl",
    "bounds": None,
    "frontier": None,
}
"""Records whose commands need no data and little time, and the file that each makes again to the last byte;
None where a program prints its figures."""

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
    """Run a program up to the end of `parse_args`; a study may not come without a model that it asks for."""
    whole = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, args: list[str] | None = None) -> NoReturn:
        whole(self, args)
        raise Parsed

    if importlib.util.find_spec("torch") is None:  # arguments are read without it
        monkeypatch.setitem(sys.modules, "torch", MagicMock())
        monkeypatch.setitem(sys.modules, "torch.nn", MagicMock())
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    with pytest.raises(Parsed):
        runpy.run_path(str(path), run_name="__main__")
    asks = "--model names the ONNX file" in path.read_text(encoding="utf-8")
    assert not asks or "--model" in words or {"gru", "lenet-mnist", "vit-mnist"} & set(words), (
        "it asks for --model after it read the arguments"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_read_by_its_program(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, words in programs(command):
        match words:
            case ["make", target]:
                assert target in TARGETS
            case ["cargo", "run", *_]:
                crate, example = (words[words.index(name) + 1] for name in ("-p", "--example"))
                assert (
                    ROOT / "crates" / crate.removeprefix("keywright-") / "examples" / f"{example}.rs"
                ).exists()
            case ["python", "-m", "gallery", name]:
                assert folder == ROOT / "examples"
                assert list((folder / "gallery").rglob(f"{name}.py"))
            case ["python", "-m", module, *arguments]:
                assert folder == ROOT / "benchmarks"
                spec = importlib.util.find_spec(module)
                assert spec is not None, f"there is no {module}"
                path = Path(spec.origin or "")
                read(
                    path.with_name("__main__.py") if path.name == "__init__.py" else path,
                    arguments,
                    monkeypatch,
                )
            case ["python", script, *arguments]:
                assert (folder / script).is_file()
                monkeypatch.syspath_prepend((folder / script).parent)
                read(folder / script, arguments, monkeypatch)
            case ["keywright", *arguments]:
                parser().parse_args(arguments)
            case _:
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
