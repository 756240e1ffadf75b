"""Ciphertext files in a folder: their names and their samples."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keywright._reading.arrays import require_file
from keywright._units import quantity

from .errors import CommandError

CIPHERTEXT_NAME = re.compile(r"(\d{6,9})(?:\+(\d{1,9}))?-(\d{1,4})\.kw")


@dataclass(frozen=True)
class SampleFiles:
    """The files of samples that share ciphertexts.

    Attributes:
        first: number of the first sample.
        count: number of samples.
        paths: paths of the ciphertexts, in order.
    """

    first: int
    count: int
    paths: Sequence[Path]


def ciphertext_name(first: int, count: int, index: int) -> str:
    """Return the name of a ciphertext file: ``000000-0.kw`` for one sample, ``000000+128-0.kw`` for
    several."""
    return f"{first:06}{f'+{count}' if count > 1 else ''}-{index}.kw"


def find_ciphertexts(folder: Path, ciphertexts: int, batch: int) -> list[SampleFiles]:
    """Return the ciphertext files of a folder, in the order of their samples.

    Args:
        ciphertexts: number of ciphertexts per batch.
        batch: maximum number of samples per batch.

    Raises:
        CommandError: there are none, or some have another number of ciphertexts or of samples.
        FormatError: one is no regular file.
    """
    groups: dict[tuple[int, int], int] = {}
    for path in folder.glob("*-*.kw"):
        match = CIPHERTEXT_NAME.fullmatch(path.name)
        if match is not None:
            key = int(match[1]), int(match[2] or 1)
            groups[key] = groups.get(key, 0) + 1
    if not groups:
        raise CommandError(f"{folder} holds no ciphertexts; make them with keywright encrypt")
    results = []
    for (first, count), number in sorted(groups.items()):
        paths = [folder / ciphertext_name(first, count, index) for index in range(ciphertexts)]
        for path in paths:
            if path.exists():
                require_file(path)
        if number != ciphertexts or not all(path.is_file() for path in paths):
            raise CommandError(
                f"{folder}: sample {first} has {number} ciphertexts, but the program takes {ciphertexts}; "
                "encrypt for this program"
            )
        if not 1 <= count <= batch:
            raise CommandError(
                f"{paths[0]} holds {quantity(count, 'sample')}, but the program takes 1 to {batch} at a "
                "time; encrypt them for this program"
            )
        results.append(SampleFiles(first, count, paths))
    return results
