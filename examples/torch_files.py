"""Tensors of a torch file, read without torch and without executing code from the file.

Both formats are read: the zip archive of torch 1.6 and later, and the stream of pickles before it.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
MAX_VALUES = 1 << 24
KINDS: dict[str, np.dtype[Any]] = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Storage:
    """The location of values: their type and the key of the storage."""

    def __init__(self, kind: str, key: str) -> None:
        self.kind, self.key = kind, key


class _Tensor:
    """The location of a tensor: its storage, the offset of its first value, its shape, steps in values."""

    def __init__(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], steps: tuple[int, ...], *_: object
    ) -> None:
        self.storage, self.offset, self.shape, self.steps = storage, offset, tuple(shape), tuple(steps)

    def of(self, values: NDArray[Any]) -> Array:
        """The tensor, from the values of its storage. Raises ValueError where it exceeds them."""
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.steps, strict=True))
        if min((self.offset, *self.shape, *self.steps)) < 0 or not last < len(values):
            raise ValueError(f"a tensor of shape {self.shape} exceeds its storage of {len(values)} values")
        _require(int(np.prod(self.shape, dtype=object)))
        steps = [step * values.itemsize for step in self.steps]
        tensor = np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, steps, writeable=False)
        return np.array(tensor, np.float32)


class _Unpickler(pickle.Unpickler):
    """Accepts ordered dictionaries and tensors; everything else that a file names is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the object for a name in the file."""
        known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): OrderedDict,  # with an attribute, which a dict has no place for
            ("torch._utils", "_rebuild_tensor"): _Tensor,
            ("torch._utils", "_rebuild_tensor_v2"): _Tensor,
            **{("torch", kind): kind for kind in KINDS},
        }
        if (module, name) not in known:
            raise ValueError(f"the file names {module}.{name}, which is not read")
        return known[module, name]

    def persistent_load(self, identifier: Any) -> _Storage:
        """The location of a storage."""
        kind, storage, key = identifier[:3]
        if kind != "storage" or storage not in KINDS:
            raise ValueError(f"the file refers to {kind!r} of {storage!r}, which is not read")
        return _Storage(storage, key)


def read_tensors(path: Path) -> dict[str, Array]:
    """The float tensors of a torch file by name, also of a checkpoint with a ``state_dict``.

    Raises:
        ValueError: the file names anything but tensors, is larger than `MAX_VALUES` or has another format.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return _read_archive(archive)
    with path.open("rb") as file:
        return _read_stream(file, path)


def _read_archive(archive: zipfile.ZipFile) -> dict[str, Array]:
    (head,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
    folder = head.removesuffix("data.pkl") + "data/"

    def storage(location: _Storage) -> NDArray[Any]:
        entry = archive.getinfo(folder + location.key)
        _require(entry.file_size // KINDS[location.kind].itemsize)
        return np.frombuffer(archive.read(entry), KINDS[location.kind])

    with archive.open(head) as file:
        return _tensors(_Unpickler(file).load(), storage)


def _read_stream(file: BinaryIO, path: Path) -> dict[str, Array]:
    if _Unpickler(file).load() != MAGIC or _Unpickler(file).load() != PROTOCOL:
        raise ValueError(f"{path} is not a torch file")
    _Unpickler(file).load()  # about the machine that wrote it
    content = _Unpickler(file).load()
    kinds = {tensor.storage.key: tensor.storage.kind for tensor in _state(content).values()}
    values = {key: _read_storage(file, KINDS[kinds[key]]) for key in _Unpickler(file).load()}
    return _tensors(content, lambda location: values[location.key])


def _read_storage(file: BinaryIO, kind: np.dtype[Any]) -> NDArray[Any]:
    count = int(np.frombuffer(file.read(8), "<i8")[0])
    _require(count)
    return np.frombuffer(file.read(count * kind.itemsize), kind)


def _require(count: int) -> None:
    if not 0 <= count <= MAX_VALUES:
        raise ValueError(f"a storage of {count} values; at most {MAX_VALUES} are read")


def _state(content: Any) -> dict[str, _Tensor]:
    if not isinstance(content, dict):
        raise ValueError(f"the file has a {type(content).__name__} instead of a dictionary of tensors")
    state = content.get("state_dict", content)
    if not isinstance(state, dict) or not all(isinstance(tensor, _Tensor) for tensor in state.values()):
        raise ValueError("the file has more than a dictionary of tensors")
    return state


def _tensors(content: Any, storage: Callable[[_Storage], NDArray[Any]]) -> dict[str, Array]:
    tensors = {}
    for name, tensor in _state(content).items():
        if tensor.storage.kind == "FloatStorage":
            tensors[name.removeprefix("module.")] = tensor.of(storage(tensor.storage))
    return tensors
