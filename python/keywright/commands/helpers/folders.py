"""The files of commands: their names in a folder, folders and files that appear whole."""

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .errors import CommandError

PARAMETERS = "parameters.kw"
SECRET_KEY = "secret.kw"
PUBLIC_KEY = "public.kw"
EVALUATION_KEYS = "keys.kw"
MASTER_KEYS = "masters.kw"
PROGRAM = "program.kwp"
PLAN = "plan.json"
CIPHERTEXT_NAME = re.compile(r"(\d{6,9})(?:\+(\d{1,9}))?-(\d{1,4})\.kw")


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
    remove = partial(shutil.rmtree, temporary, ignore_errors=True)
    atexit.register(remove)
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
        remove()
        raise
    finally:
        atexit.unregister(remove)


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


@dataclass(frozen=True)
class SampleFiles:
    """The files of samples that share ciphertexts.

    Attributes:
        first: number of the first of them.
        count: how many they are.
        paths: of their ciphertexts, in order.
    """

    first: int
    count: int
    paths: Sequence[Path]


def ciphertext_name(first: int, count: int, index: int) -> str:
    """Name of the file of one ciphertext of samples: ``000000-0.kw`` of one, ``000000+128-0.kw`` of many."""
    return f"{first:06}{f'+{count}' if count > 1 else ''}-{index}.kw"


def find_ciphertexts(folder: Path, ciphertexts: int, batch: int) -> list[SampleFiles]:
    """The ciphertext files of a folder, in the order of their samples.

    Args:
        ciphertexts: how many hold the samples.
        batch: how many samples these are at most.

    Raises:
        CommandError: there are none, or some have another number of ciphertexts or of samples.
    """
    groups: dict[tuple[int, int], int] = {}
    for path in folder.glob("*-*.kw"):
        match = CIPHERTEXT_NAME.fullmatch(path.name)
        if match is not None:
            key = int(match[1]), int(match[2] or 1)
            groups[key] = groups.get(key, 0) + 1
    if not groups:
        raise CommandError(f"{folder} holds no ciphertexts; make them with keywright encrypt")
    found = []
    for (first, count), number in sorted(groups.items()):
        paths = [folder / ciphertext_name(first, count, index) for index in range(ciphertexts)]
        if number != ciphertexts or not all(path.is_file() for path in paths):
            raise CommandError(
                f"{folder}: sample {first} has {number} ciphertexts, the program has {ciphertexts}"
            )
        if not 1 <= count <= batch:
            raise CommandError(
                f"{paths[0]} holds {count} samples, the program takes 1 to {batch} at a time; "
                "encrypt them for this program"
            )
        found.append(SampleFiles(first, count, paths))
    return found
