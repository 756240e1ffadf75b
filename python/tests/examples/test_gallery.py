"""The gallery's own code: nothing is downloaded."""

from __future__ import annotations

import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a file of tensors names, which pickle looks up when it writes."""
    module: Any = ModuleType("torch")
    module._utils = ModuleType("torch._utils")
    module.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})

    def _rebuild_tensor_v2(*_: object) -> None: ...

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    module._utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setitem(sys.modules, "torch._utils", module._utils)
    return module


class Tensor:
    """Pickled as torch writes a tensor."""

    def __init__(self, torch: Any, offset: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
        self.torch, self.place = torch, (offset, shape, steps)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.torch._utils._rebuild_tensor_v2, (Storage(self.torch), *self.place, False, OrderedDict())


class Storage:
    def __init__(self, torch: Any) -> None:
        self.torch = torch


class Pickler(pickle.Pickler):
    def persistent_id(self, value: object) -> Any:
        return ("storage", value.torch.FloatStorage, "0", "cpu", 12) if isinstance(value, Storage) else None


def archive(path: Path, content: object) -> Path:
    """A file of torch with one storage, 0 to 11."""
    with zipfile.ZipFile(path, "w") as file:
        with file.open("archive/data.pkl", "w") as head:
            Pickler(head, protocol=2).dump(content)
        file.writestr("archive/data/0", np.arange(12, dtype="<f4").tobytes())
    return path


def test_tensors_are_read_without_torch(tmp_path: Path, torch: Any) -> None:
    from torch_files import read_tensors

    state = OrderedDict(
        {"rows": Tensor(torch, 2, (2, 3), (3, 1)), "module.columns": Tensor(torch, 0, (3, 4), (1, 3))}
    )
    tensors = read_tensors(archive(tmp_path / "weights.pth", {"state_dict": state}))
    assert tensors["rows"].tolist() == [[2, 3, 4], [5, 6, 7]]
    assert tensors["columns"].tolist() == np.arange(12).reshape(4, 3).T.tolist()


@pytest.mark.parametrize(
    ("offset", "shape", "steps"),
    [(7, (2, 3), (3, 1)), (-1, (2,), (1,)), (0, (2,), (-1,)), (0, (1 << 40, 1 << 40), (0, 0))],
)
def test_a_tensor_outside_its_storage_is_refused(
    tmp_path: Path, torch: Any, offset: int, shape: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    from torch_files import read_tensors

    path = archive(tmp_path / "weights.pth", OrderedDict({"w": Tensor(torch, offset, shape, steps)}))
    with pytest.raises(ValueError, match=r"exceeds its storage|at most"):
        read_tensors(path)


def test_a_file_that_names_code_is_refused_and_not_run(tmp_path: Path, torch: Any) -> None:
    from torch_files import read_tensors

    marker = tmp_path / "marker"

    class Call:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(marker),)

    with pytest.raises(ValueError, match="mkdir, which is not read"):
        read_tensors(archive(tmp_path / "weights.pth", OrderedDict({"w": Call()})))
    assert not marker.exists()
    with pytest.raises(ValueError, match="more than a dictionary of tensors"):
        read_tensors(archive(tmp_path / "weights.pth", OrderedDict({"w": "text"})))


def test_every_entry_is_pinned_by_version_and_digest() -> None:
    from gallery.entry import HERE, entry, names
    from gallery.packages import pinned

    pins = {path.stem for path in (HERE / "requirements").iterdir()}
    assert len(names()) >= 10
    assert pins == set(names())
    for name in names():
        path = next((HERE / "requirements").glob(f"{name}.*"))
        assert ("--hash=sha256:" if path.suffix == ".txt" else '"integrity": "sha512-') in path.read_text()
        assert "==" in pinned(name) or "@" in pinned(name)
        assert entry(name).licence


def test_trees_as_onnx_are_the_trees() -> None:
    from gallery.trees import Tree, regressor

    trees = [
        Tree([0, 1, 0, 0, 0], [0.5, 2.0, 0, 0, 0], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1],
             [True, False, False, False, False], [0, 0, 1.0, 2.0, 4.0]),
        Tree([1, 0, 0], [1.0, 0, 0], [1, -1, -1], [2, -1, -1], [False] * 3, [0, 0.25, 0.5]),
    ]  # fmt: skip
    model = regressor(trees, 2, -1.0, "BRANCH_LT")
    samples = np.array([[0, 0], [0, 1], [0, 2], [0.5, 0], [np.nan, 5], [0, np.nan]], np.float32)
    sums = np.array([0.25, 0.5, 1.5, 3.25, 1.5, 1.5])
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (outputs,) = session.run(None, {"x": samples})
    assert np.abs(outputs[:, 0] - 1 / (1 + np.exp(-sums))).max() < 1e-6


def test_the_page_is_that_of_its_record() -> None:
    from gallery import page

    assert page.PAGE.read_text() == page.text(page.RECORDS)
