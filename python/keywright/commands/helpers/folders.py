"""The files of commands: their names in a folder, folders and files that appear whole."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .errors import CommandError

PARAMETERS = "parameters.kw"
SECRET_KEY = "secret.kw"
PUBLIC_KEY = "public.kw"
EVALUATION_KEYS = "keys.kw"
MASTER_KEYS = "masters.kw"
PROGRAM = "program.kwp"
PLAN = "plan.json"


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
