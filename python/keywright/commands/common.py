"""What commands share: reading arrays and models, output folders that appear whole, progress."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PARAMETERS = "parameters.kw"
SECRET_KEY = "secret.kw"
PUBLIC_KEY = "public.kw"
EVALUATION_KEYS = "keys.kw"
MASTER_KEYS = "masters.kw"
PROGRAM = "program.kwp"
PLAN = "plan.json"


IMAGE_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png")
MAX_PIXELS = 1 << 24
"""Pixels of the largest image that is read."""


UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class CommandError(Exception):
    """What the command line was asked for cannot be done; the text says what to do instead."""


def parse_bytes(text: str) -> int:
    """Bytes of an amount of memory with a unit, as 8GiB.

    Raises:
        CommandError: it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2] not in UNITS:
        raise CommandError(
            f"{text!r} is no amount of memory; write a number and one of {', '.join(UNITS)[2:]}"
        )
    return int(float(match[1]) * UNITS[match[2]])


def require_files(folder: Path, names: Sequence[str], origin: str) -> None:
    """Refuse a folder that lacks files.

    Raises:
        CommandError: naming the files, and the command that makes such a folder.
    """
    missing = [name for name in names if not (folder / name).is_file()]
    if missing == [PROGRAM]:
        raise CommandError(
            f"{folder} holds keys without a model, which are used from Python "
            '(docs/planning.md, "Without a model"); for a model name the '
            f"{origin}"
        )
    if missing:
        raise CommandError(f"{folder} holds no {', '.join(missing)}; name the {origin}")


def load_array(path: Path) -> NDArray[np.float64]:
    """A numpy file of numbers, without pickled objects.

    Raises:
        CommandError: the file is not one, or is not of finite real numbers.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise CommandError(
            f"{path} is not a numpy file of numbers ({error}); write it with numpy.save"
        ) from error
    if isinstance(array, Mapping):
        raise CommandError(f"{path} is an archive of {', '.join(array)}; save one array with numpy.save")
    if array.dtype.kind not in "biuf":
        raise CommandError(f"{path} has dtype {array.dtype}; real numbers are needed")
    values = np.asarray(array, np.float64)
    if not np.isfinite(values).all():
        count = int((~np.isfinite(values)).sum())
        raise CommandError(f"{path} holds {count} values that are not finite; give finite numbers")
    return values


def load_image(path: Path) -> NDArray[np.float64]:
    """An image as (channels, height, width) in [0, 1]: one channel if it is grey, otherwise three.

    Raises:
        CommandError: Pillow is not installed, the file is no image, or it is larger than `MAX_PIXELS`.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise CommandError("images need Pillow: pip install pillow; or give a .npy file") from error
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                raise CommandError(
                    f"{path} has {image.width} x {image.height} pixels; at most {MAX_PIXELS} are read"
                )
            pixels = np.asarray(image.convert("L" if image.mode in ("1", "L") else "RGB"), np.float64)
    except UnidentifiedImageError as error:
        raise CommandError(f"{path} is not an image that Pillow reads") from error
    return pixels.reshape(*pixels.shape[:2], -1).transpose(2, 0, 1) / 255.0


def load_inputs(path: Path, count: int | None = None) -> NDArray[np.float64]:
    """Inputs from a .npy file, an image, or a folder of images in the order of their names.

    Args:
        count: how many to read of a folder; all where not given.

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
    return load_array(path)[:count]


def load_samples(path: Path, shape: tuple[int, ...], count: int | None = None) -> NDArray[np.float64]:
    """Samples of a shape, from what `load_inputs` reads: one sample or many.

    Raises:
        CommandError: the array has another shape.
    """
    array = load_inputs(path, None if path.suffix == ".npy" else count)
    if array.shape == shape:
        return array[None]
    if array.shape[1:] != shape or len(array) == 0:
        raise CommandError(f"{path} has shape {array.shape}; the model takes {shape}, or many of them")
    return array[:count]


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that becomes ``path`` when the block ends, and disappears if it fails.

    Raises:
        CommandError: ``path`` exists.
    """
    if path.exists():
        raise CommandError(f"{path} exists; remove it or name another folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        try:
            temporary.rename(path)
        except OSError as error:
            # Something else made it meanwhile.
            if path.exists():
                raise CommandError(f"{path} exists by now; remove it or name another folder") from error
            raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def require_place(path: Path) -> None:
    """Refuse a file that cannot be written, before there is anything to write.

    Raises:
        CommandError: it is a folder, its folder does not exist, or that must not be written into.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CommandError(f"{path}: the folder {path.parent} must not be written into; name another one")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write that replaces ``path`` when the block ends, and disappears if it fails.

    Raises:
        CommandError: as of `require_place`.
    """
    require_place(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        temporary = Path(folder) / path.name
        yield temporary
        temporary.replace(path)


def ciphertext_name(sample: int, index: int) -> str:
    """Name of the file of one ciphertext of one sample."""
    return f"{sample:06}-{index}.kw"


def group_ciphertexts(folder: Path, count: int) -> list[list[Path]]:
    """The ciphertext files of a folder by sample, ``count`` for each.

    Raises:
        CommandError: there are none, or a sample has another number.
    """
    samples: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*-*.kw")):
        samples.setdefault(path.name.partition("-")[0], []).append(path)
    if not samples:
        raise CommandError(f"{folder} holds no ciphertexts; make them with keywright encrypt")
    for sample, paths in samples.items():
        expected = [f"{sample}-{index}.kw" for index in range(count)]
        if sorted(path.name for path in paths) != sorted(expected):
            raise CommandError(
                f"{folder}: sample {sample} has {len(paths)} ciphertexts, the program has {count}"
            )
    return [[folder / f"{sample}-{index}.kw" for index in range(count)] for sample in sorted(samples)]
