"""The digits, keys and a plan, which tests of commands share; models are compiled once for all of them."""

from __future__ import annotations

import pickle
import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.cli import main
from keywright.compiler.approximating import ApproximatedModel
from keywright.model import Executable
from keywright.model.parameters.parameter_choice import Compilation

DATA = files("keywright") / "data"
COUNT = 3


APPROXIMATED: dict[tuple[object, ...], ApproximatedModel] = {}
COMPILED: dict[tuple[object, ...], tuple[ApproximatedModel, Executable]] = {}


@pytest.fixture(autouse=True)
def _compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands compile again for the same file, fit, preset and batch is what they compiled before.
    Tests of other folders, which run between those of this one, compile for themselves."""
    approximate, compile_batch = compiler.approximate, Compilation._compile

    def approximate_once(model: Any, fit: compiler.Fit | None = None) -> ApproximatedModel:
        key = model.SerializeToString(), pickle.dumps(fit)
        if key not in APPROXIMATED:
            APPROXIMATED[key] = approximate(model, fit)
        return APPROXIMATED[key]

    def compile_once(self: Compilation, batching: Any) -> Executable:
        key = (id(self.approximated), self._ring, self._client, self._name, self._labels, batching)
        if key not in COMPILED:
            COMPILED[key] = self.approximated, compile_batch(self, batching)
        return COMPILED[key][1]

    monkeypatch.setattr(compiler, "approximate", approximate_once)
    monkeypatch.setattr(Compilation, "_compile", compile_once)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, three samples, their labels."""
    folder = tmp_path_factory.mktemp("commands")
    with as_file(DATA / "digits.onnx") as model, as_file(DATA / "digits_test.npz") as digits:
        shutil.copyfile(model, folder / "digits.onnx")
        with np.load(digits) as archive:
            np.save(folder / "images.npy", archive["images"][:COUNT])
            np.save(folder / "labels.npy", archive["labels"][:COUNT])
    return folder


@pytest.fixture(scope="session")
def keys(folder: Path) -> Path:
    """The folders of keygen."""
    assert main(["keygen", str(folder / "digits.onnx"), "--out", str(folder / "keys")]) == 0
    return folder / "keys"


@pytest.fixture(scope="session")
def planned(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for the digits with one hop, which is quick."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    arguments = ["--time", "1.2x", "--hops", "1", "--out", str(path), "--json"]
    assert main(["plan", str(folder / "digits.onnx"), *arguments]) == 0
    return path
