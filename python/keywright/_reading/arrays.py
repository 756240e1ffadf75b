r"""Reads numpy's file format for one array of numbers, strictly.

numpy parses the header with Python's own parser, and allocates the stated shape before it looks for the data.
This module accepts only headers that numpy writes for real numbers. It compares the stated shape with the
size of the file, and with a bound, before it allocates anything.

    magic       "\x93NUMPY", version 1.0 or 2.0
    length      of the header, 2 bytes or 4
    header      {'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), } and spaces to a line's end
    data        exactly product of shape times size of a number
"""

import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from keywright.errors import FormatError

MAGIC = b"\x93NUMPY"
PREFIXES = {b"\x01\x00": 2, b"\x02\x00": 4}
"""Bytes of the header's length field, by version."""
MAX_HEADER_BYTES = 4096
MAX_AXES = 32
MAX_NUMBERS = 1 << 40
"""Maximum product of the non-zero axes of an empty array."""
HEADER = re.compile(
    rb"\{'descr': '(\|b1|[|<>=]?[iuf]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,19}, )*(?:\d{1,19},?)?)\), \} *\n"
)
SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}
"""Sizes of a number in bytes, by kind."""


def read_array(data: bytes | memoryview, max_numbers: int) -> NDArray[Any]:
    """Read an array of real numbers, converted to native byte order.

    Args:
        data: a whole file.
        max_numbers: maximum number of elements.

    Returns:
        A read-only view of `data` if no conversion is necessary.

    Raises:
        FormatError: the bytes are malformed, or the array is larger.
    """
    view = memoryview(data)
    if bytes(view[:6]) != MAGIC:
        _refuse("foreign", "it does not begin with the magic bytes of numpy's format")
    width = PREFIXES.get(bytes(view[6:8]))
    if width is None:
        _refuse(
            "version", f"version {list(view[6:8])} of numpy's format is not supported; 1.0 and 2.0 are read"
        )
    length = int.from_bytes(view[8 : 8 + width], "little")
    if length > MAX_HEADER_BYTES:
        _refuse("length", f"its header states {length} bytes; at most {MAX_HEADER_BYTES} are read")
    start = 8 + width + length
    match = HEADER.fullmatch(bytes(view[8 + width : start]))
    if len(view) < start or match is None:
        _refuse("field", "its header is not one that numpy.save writes for real numbers")
    kind, shape = _dtype(match[1].decode()), _shape(match[3].decode())
    number = math.prod(shape)
    # An empty array may have long axes, too.
    if number > max_numbers or math.prod(axis for axis in shape if axis) > MAX_NUMBERS:
        _refuse("length", f"its shape is {shape}; at most {max_numbers} numbers are read")
    if len(view) - start != number * kind.itemsize:
        size = number * kind.itemsize
        _refuse("length", f"it has {len(view) - start} bytes of data; its shape {shape} needs {size}")
    values = np.frombuffer(view, kind, number, start)
    if kind.kind == "b" and not (values.view(np.uint8) <= 1).all():
        _refuse("contents", "it holds truth values other than 0 and 1")
    array = values.reshape(shape, order="F" if match[2] == b"True" else "C")
    return array if kind.isnative else array.astype(kind.newbyteorder("="))


PIECE = 1 << 16
"""Bytes that are read at a time beyond the file's stated size."""


def read_file(path: str | Path, max_bytes: int) -> bytes:
    """Read the bytes of a regular file: a pipe or a device may never end.

    Raises:
        FormatError: it is not a regular file, or exceeds ``max_bytes``.
        FileNotFoundError: there is no such file.
    """
    require_file(path)
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = b""
        # Allocate the size that the file reports, not the maximum. A growing file is read in pieces.
        while size <= max_bytes and len(data) <= max_bytes:
            more = file.read(max(size - len(data), PIECE))
            if not more:
                break
            data = data + more if data else more
    if size > max_bytes or len(data) > max_bytes:
        raise FormatError(
            f"{path} has {max(size, len(data))} bytes; at most {max_bytes} are read",
            code="length",
            found=size,
            expected=max_bytes,
        )
    return data


def require_file(path: str | Path) -> None:
    """Refuse anything but a regular file before it is opened: opening a pipe may block for ever.

    Raises:
        FormatError: it is not a regular file.
        FileNotFoundError: there is no such file.
    """
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        what = kinds.get(stat.S_IFMT(mode), "a device")
        raise FormatError(
            f"{path} is {what}; name a regular file", code="kind", found=what, expected="a file"
        )


def _dtype(text: str) -> np.dtype[Any]:
    kind, size = text.lstrip("|<>=")[0], int(text.lstrip("|<>=")[1:])
    if size not in SIZES[kind]:
        _refuse("field", f"its data type is {text!r}; integers and floats of at most 8 bytes are read")
    return np.dtype(text)


def _shape(text: str) -> tuple[int, ...]:
    axes = [axis for axis in text.split(",") if axis.strip()]
    if len(axes) > MAX_AXES or (len(axes) == 1) != text.endswith(","):
        _refuse("field", f"its shape is ({text[:40]}); at most {MAX_AXES} axes are read")
    return tuple(map(int, axes))


def _refuse(reason: str, message: str) -> NoReturn:
    raise FormatError(f"not a numpy file of real numbers: {message}", code=reason)
