"""No refusal names a folder of the server, whatever is wrong with its files; the operator reads all of it."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keywright import search
from keywright.errors import FormatError, KeywrightError, MismatchError, ServeError
from keywright.serve import load_served
from keywright.serve.http.request_checks import refused
from keywright.serve.workers import worker
from tests.serve.network import make_full

SECRET = "tenant-acme"


def _other(make: Callable[[Path], object], path: Path) -> None:
    path.unlink()
    make(path)


FAULTS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "another document": lambda path: path.write_bytes(b"{}"),
    "changed": lambda path: path.write_bytes(path.read_bytes()[:-9] + b"123456789"),
    "a folder": partial(_other, Path.mkdir),
    "a pipe": partial(_other, os.mkfifo),
}


def outcome(order: dict[str, Any], engine: worker.Engine | None = None) -> dict[str, Any]:
    """The answer of a worker to an order."""
    answers = io.BytesIO()
    engine = worker.Engine(answers, None) if engine is None else engine
    engine._answers = answers
    engine.execute(order)
    return json.loads(answers.getvalue().splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("what", ["model", "index"])
def test_no_fault_of_a_served_folder_names_it(what: str, fault: str, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / SECRET
    if what == "model":
        make_full().save(whole)
    else:
        search.Index.of(np.eye(4)).save(whole)
    order: dict[str, Any] = {"folder": str(folder), "model": load_served(whole).hash, "budget": None}
    order |= {"shared": False, "job": "job", "bodies": [b""]}
    names = sorted(path.name for path in whole.iterdir())
    for name in names:
        shutil.copytree(whole, folder)
        FAULTS[fault](folder / name)
        answer = outcome({"do": "evaluate", **order})
        assert SECRET not in json.dumps(answer["refused"]), (name, answer)
        shutil.rmtree(folder)
    # The operator reads what the client does not.
    shutil.copytree(whole, folder)
    order["model"] = "0" * 64
    assert SECRET in outcome({"do": "evaluate", **order})["unforeseen"]
    assert SECRET in outcome({"do": "load", **order})["refused"]["message"]


TEXT = f"/srv/{SECRET}/program.kwp is damaged"

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "OutOfRangeError": (TEXT, 0.0, 0.0, 1.0),
    "PackageMissingError": (TEXT, TEXT),
    "ModelRefusedError": ([FormatError(TEXT)],),
}


TOLD = (ServeError, MismatchError)
"""Whose text is about what the client has sent."""


def _kinds(base: type[KeywrightError] = KeywrightError) -> Iterator[type[KeywrightError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


@pytest.mark.parametrize(
    "kind",
    sorted({kind for kind in _kinds() if not issubclass(kind, TOLD)}, key=repr),
)
def test_no_error_of_an_evaluation_names_a_folder(
    kind: type[KeywrightError], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = kind(*ARGUMENTS.get(kind.__name__, (TEXT,)))

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(worker, "KeyLoading", lambda *_: SimpleNamespace(keys=None, wait=lambda: None))
    runner = SimpleNamespace(read=lambda bodies: bodies, evaluate=fail)
    order = {"do": "evaluate", "model": "m", "shared": False, "job": "job", "bodies": [b""]}
    for part in ("evaluate", "read"):
        setattr(runner, part, fail)
        engine = worker.Engine(io.BytesIO(), None)
        engine._runners["m"] = (None, runner)  # type: ignore[assignment]
        answer = outcome(order, engine)
        assert SECRET not in json.dumps(answer["refused"])
        # Whose text is for the operator; the system's error says what is wrong with a disk.
        assert isinstance(error, OSError) or SECRET in answer["unforeseen"]
    assert SECRET not in str(refused(error))
