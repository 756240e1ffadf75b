"""Arbitrary arrays and images: they are read, or refused with one kind of error."""

import io
import os
import struct
import sys
import tracemalloc
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from keywright._reading.arrays import read_array, read_file
from keywright.cli import main
from keywright.commands.helpers import inputs
from keywright.commands.helpers.ciphertext_files import find_ciphertexts
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.inputs import load_array, load_image
from keywright.errors import FormatError

ARRAYS = [
    np.float64(3.5),
    np.arange(3, dtype=np.int16),
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    np.arange(4, dtype=">i4"),
    np.array([True, False]),
    np.zeros((0, 7)),
    np.array([[1, 2]], np.float16),
]


def npy(array: object, version: tuple[int, int] | None = None) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), version=version)
    return buffer.getvalue()


def with_header(text: str, data: bytes = b"") -> bytes:
    header = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def flipped(data: bytes, step: int = 1) -> Iterator[bytes]:
    """Yield the data with each bit changed, one after the other; with a step of 7, a bit of each byte."""
    for place in range(0, 8 * len(data), step):
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
def test_what_numpy_writes_is_read(array: np.ndarray, version: tuple[int, int]) -> None:
    matrix = read_array(npy(array, version), array.size)
    assert np.array_equal(matrix, array)
    assert matrix.shape == array.shape
    assert matrix.dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
def test_a_changed_bit_is_refused_or_makes_another_array(array: np.ndarray) -> None:
    """Accepted input is read as numpy, which accepts more, reads it."""
    refused = 0
    for data in flipped(npy(array)):
        try:
            matrix = read_array(data, 100)
        except FormatError:
            refused += 1
            continue
        theirs = np.load(io.BytesIO(data), allow_pickle=False)
        assert matrix.shape == theirs.shape
        assert matrix.dtype == theirs.dtype.newbyteorder("=")
        assert np.array_equal(matrix, theirs, equal_nan=True)
    assert refused > 8 * 60


@pytest.mark.parametrize("length", range(0, 150, 3))
def test_a_part_of_a_file_is_refused(length: int) -> None:
    with pytest.raises(FormatError):
        read_array(npy(np.arange(6.0))[:length], 100)
    with pytest.raises(FormatError, match="bytes of data"):
        read_array(npy(np.arange(6.0)) + bytes(1 + length), 100)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", "at most 100 numbers"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807), }", "numbers are read"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999999999, 2), }", "at most 100"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", "header"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (3), }", "shape"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 40 + "), }", "shape"),
        ("{'descr': '<f3', 'fortran_order': False, 'shape': (3,), }", "data type"),
        ("{'descr': '<i16', 'fortran_order': False, 'shape': (3,), }", "data type"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "header"),
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", "header"),
        ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }", "header"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': ((((((((((", "header"),
        ("", "header"),
    ],
)
def test_headers_are_refused_before_anything_is_allocated(header: str, message: str) -> None:
    data = with_header(header, bytes(16))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=message):
            read_array(data, 100)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_arrays_are_bounded() -> None:
    assert read_array(npy(np.zeros((10, 10))), 100).size == 100
    with pytest.raises(FormatError, match="at most 99 numbers"):
        read_array(npy(np.zeros((10, 10))), 99)
    with pytest.raises(FormatError, match="truth values"):
        read_array(npy(np.array([True]))[:-1] + b"\x02", 1)


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.zeros(100))
    size = path.stat().st_size
    assert len(read_file(path, size)) == size
    with pytest.raises(FormatError, match=f"at most {size - 1} are read"):
        read_file(path, size - 1)
    monkeypatch.setattr(inputs, "MAX_ARRAY_BYTES", size - 1)
    with pytest.raises(CommandError, match="are read"):
        load_array(path)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("name", ["pipe.npy", "pipe.png", "pipe.kwp"])
def test_what_may_never_end_is_not_opened(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    for file, what in ((path, "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path, "a folder")):
        assert main(["info", str(file)]) == 2
        assert what in capsys.readouterr().err
        with pytest.raises(FormatError, match=what):
            read_file(file, 100)
    load = load_image if path.suffix == ".png" else load_array
    with pytest.raises(CommandError, match="a pipe"):
        load(path)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
def test_a_pipe_among_ciphertexts_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "000000-0.kw")
    with pytest.raises(FormatError, match=r"000000-0\.kw is a pipe"):
        find_ciphertexts(tmp_path, 1, 1)


@pytest.mark.parametrize(
    ("kind", "step"),
    [("png", 1), ("jpeg", 7), pytest.param("jpeg", 1, marks=pytest.mark.full), ("bmp", 1)],
)
def test_a_changed_bit_of_an_image_is_refused_or_makes_another_image(
    kind: str, step: int, tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 256, (3, 4, 3), np.uint8)
    image.fromarray(pixels).save(buffer, kind)
    path, refused = tmp_path / f"image.{kind}", 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for data in flipped(buffer.getvalue(), step):
            path.write_bytes(data)
            try:
                array = load_image(path)
            except CommandError:
                refused += 1
                continue
            assert array.shape[0] in (1, 3)
            assert 0 <= array.min() <= array.max() <= 1
    assert refused > 8 * 10 // step


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@pytest.mark.parametrize("side", [1 << 13, 1 << 14, 1 << 20, (1 << 31) - 1])
def test_images_that_unpack_to_more_than_they_may_are_refused(side: int, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    path = tmp_path / "bomb.png"
    packed = zlib.compress(bytes(1 << 20))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", packed) + chunk(b"IEND", b""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CommandError, match=r"bomb\.png"):
            load_image(path)


def test_texts_that_unpack_to_more_than_they_may_are_refused(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.fromarray(np.zeros((2, 2), np.uint8)).save(buffer, "png")
    data, path = buffer.getvalue(), tmp_path / "text.png"
    text = chunk(b"zTXt", b"name\x00\x00" + zlib.compress(bytes(1 << 28)))
    path.write_bytes(data[:33] + text + data[33:])
    with pytest.raises(CommandError, match=r"text\.png is not an image"):
        load_image(path)
