"""Parses inputs of commands: amounts of memory, arrays, images."""

import io
import re
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keywright._reading.arrays import read_array, read_file
from keywright.compiler import Program
from keywright.compiler.front_ends import load_model, sample_shape
from keywright.errors import FormatError, RefusalError

from .errors import CommandError

IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png")
MAX_PIXELS = 1 << 24
"""Maximum pixels of an image."""
MAX_IMAGE_BYTES = 64 << 20
MAX_ARRAY_BYTES = 4 << 30
"""Maximum bytes of an array, as float64."""
IMAGE_FORMATS = ("BMP", "JPEG", "PNG")
UNREADABLE_IMAGE = (
    OSError,
    ValueError,
    SyntaxError,
    LookupError,
    TypeError,
    ArithmeticError,
    struct.error,
    zlib.error,
)
"""Exceptions that Pillow raises for damaged images."""

UNITS = {"": 1} | {
    f"{prefix}{suffix}".lower(): base**power
    for power, prefix in enumerate(("", "K", "M", "G", "T"))
    for suffix, base in (("", 1024), ("B", 1000), ("iB", 1024))
}
"""Bytes of the units, in lower case. K, M and G alone are binary, as in the tools of GNU."""


def parse_bytes(text: str) -> int:
    """Parse an amount of memory with a unit in any case, e.g. 8GB, 8 GiB or 8g, into bytes.

    Raises:
        CommandError: the text is malformed.
    """
    match = re.fullmatch(r"(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].lower() not in UNITS:
        raise CommandError(f"{text!r} is not an amount of memory; write, e.g., 8GB, 600MB or 4096")
    return int(float(match[1]) * UNITS[match[2].lower()])


def load_array(path: Path, *, finite: bool = True) -> NDArray[np.float64]:
    """Read a numpy file of numbers, without pickled objects.

    Raises:
        CommandError: the file is malformed, exceeds `MAX_ARRAY_BYTES`, or has values that are not real
            numbers, or not finite.
    """
    data = _read_file(path, MAX_ARRAY_BYTES)
    if data.startswith(b"PK"):
        raise CommandError(f"{path} is an archive; save one array with numpy.save")
    try:
        values = read_array(data, MAX_ARRAY_BYTES // 8).astype(np.float64)
    except FormatError as error:
        raise CommandError(f"{path} is {error}; write it with numpy.save") from error
    if finite and not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise CommandError(f"{path} holds {count} values that are not finite; give finite numbers")
    return values


def load_image(path: Path) -> NDArray[np.float64]:
    """Read an image as (channels, height, width) in [0, 1]: one channel if it is grey, otherwise three.

    Raises:
        CommandError: Pillow is not installed, the file is not an image, or it exceeds `MAX_PIXELS`.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise CommandError(
            "images need Pillow: pip install 'keywright[images]'; or give a .npy file"
        ) from error
    data = _read_file(path, MAX_IMAGE_BYTES)
    try:
        with warnings.catch_warnings():
            # Pillow warns of sizes far above `MAX_PIXELS`, and raises an error at still larger ones.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=IMAGE_FORMATS) as image:
                if image.width * image.height > MAX_PIXELS:
                    raise CommandError(
                        f"{path} has {image.width} x {image.height} pixels; at most {MAX_PIXELS} are read"
                    )
                pixels = np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"), np.float64)
    except (Image.DecompressionBombError, *UNREADABLE_IMAGE) as error:
        raise CommandError(f"{path} is not an image that Pillow reads ({error})") from error
    return pixels.reshape(*pixels.shape[:2], -1).transpose(2, 0, 1) / 255.0


def _read_file(path: Path, most: int) -> bytes:
    try:
        return read_file(path, most)
    except FormatError as error:
        raise CommandError(str(error)) from error


def load_inputs(path: Path, count: int | None = None, *, finite: bool = True) -> NDArray[np.float64]:
    """Read inputs from a .npy file, an image, or a folder of images in the order of their names.

    Args:
        count: how many images of a folder to read; all by default.
        finite: whether numbers must be.

    Raises:
        CommandError: the file is neither, the folder is empty, or its images differ in size.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)[:count]
        if not files:
            raise CommandError(f"{path} holds no images ({', '.join(IMAGE_SUFFIXES)})")
        images = [load_image(file) for file in files]
        for file, image in zip(files, images, strict=True):
            if image.shape != images[0].shape:
                raise CommandError(f"{file} is {image.shape}, {files[0]} is {images[0].shape}")
        return np.stack(images)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return load_image(path)[None]
    values = load_array(path, finite=finite)
    if values.ndim == 0 or len(values) == 0:
        raise CommandError(
            f"{path} has shape {values.shape}, which is not a sample; give one, or (count, ...)"
        )
    return values[:count]


def load_typical(
    path: Path, model: Path, count: int | None = None, *, finite: bool = True
) -> NDArray[np.float64]:
    """Read samples for a model that is not compiled yet, (count, ...), from any input that `load_inputs`
    accepts; one sample gets a batch axis. Compiling refuses another shape, and a model that cannot be read.

    Raises:
        CommandError: as for `load_inputs`.
    """
    try:
        axes = len(sample_shape(load_model(model)))
    except RefusalError:
        axes = None
    array = load_inputs(path, None if path.suffix == ".npy" else count, finite=finite)
    return array[None] if array.ndim == axes else array[:count]


def load_samples(path: Path, shape: tuple[int, ...], count: int | None = None) -> NDArray[np.float64]:
    """Read one sample or several of a shape, from any input that `load_inputs` accepts.

    Raises:
        CommandError: the array has another shape.
    """
    array = load_inputs(path, None if path.suffix == ".npy" else count)
    if array.shape == shape:
        return array[None]
    if array.shape[1:] != shape or len(array) == 0:
        raise CommandError(f"{path} has shape {array.shape}; the model takes {shape}, or several of them")
    return array[:count]


def load_features(path: Path, program: Program, count: int | None = None) -> NDArray[np.float64]:
    """Read one sample or several of a model, and return what its first steps give for them, (count,
    *input_shape). These may take missing values, and other shapes.

    Raises:
        CommandError: as for `load_samples`.
        EncodeError: the first steps do not take the samples.
    """
    if program.input.steps.first is None:
        return load_samples(path, program.input.shape, count)
    array = load_inputs(path, None if path.suffix == ".npy" else count, finite=False)
    return program.features(array)[0][:count]
