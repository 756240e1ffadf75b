"""The digits, keys and a plan, which tests of commands share; models are compiled once for all of them."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright import compiler
from keywright.cli import main
from keywright.model import Model
from keywright.model.compilation import compilation

DATA = files("keywright") / "data"
COUNT = 3


@pytest.fixture(scope="package", autouse=True)
def _compiled_once() -> Iterator[None]:
    """What commands compile again for the same file, fit, preset and batch is what they compiled before."""
    approximate, compile_batch = compiler.approximate, compilation.Compilation._compile
    approximated: dict[tuple[object, ...], compiler.ApproximatedModel] = {}
    compiled: dict[tuple[object, ...], tuple[compiler.ApproximatedModel, Model]] = {}

    def approximate_once(model: Any, fit: compiler.Fit | None = None) -> compiler.ApproximatedModel:
        key = model.SerializeToString(), pickle.dumps(fit)
        if key not in approximated:
            approximated[key] = approximate(model, fit)
        return approximated[key]

    def compile_once(self: compilation.Compilation, batching: Any) -> Model:
        key = (
            id(self.approximated),
            self._ring,
            self._client,
            self.batch,
            self._name,
            self._labels,
            batching,
        )
        if key not in compiled:
            compiled[key] = self.approximated, compile_batch(self, batching)
        return compiled[key][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "approximate", approximate_once)
        patch.setattr(compilation.Compilation, "_compile", compile_once)
        yield


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
