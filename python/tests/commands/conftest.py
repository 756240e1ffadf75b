"""The digits, keys and a plan, which tests of commands share."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest
from keywright.cli import main

DATA = files("keywright") / "data"
COUNT = 3


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
