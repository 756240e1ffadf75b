"""The corpus: one archive of inputs for each target, `fuzz/corpus/TARGET.zip`.

    python fuzz/python/corpus.py FOLDER

adds the files `FOLDER/TARGET/NAME`. Equal inputs give equal archives: names are sorted, dates fixed. Entries
are not compressed, so that `fuzz/src/corpus.rs` reads them without a library.
"""

import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "corpus"
SEED = "seed-"
"""Names of inputs that a generator wrote begin so; fuzzing added the others."""


def read(target: str) -> dict[str, bytes]:
    """Return the inputs of a target by name; none if it has no archive."""
    path = CORPUS / f"{target}.zip"
    if not path.is_file():
        return {}
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def add(target: str, inputs: Mapping[str, bytes]) -> None:
    """Add inputs to the archive of a target; one of the same name is replaced."""
    CORPUS.mkdir(exist_ok=True)
    inputs = read(target) | dict(inputs)
    with zipfile.ZipFile(CORPUS / f"{target}.zip", "w") as archive:
        for name in sorted(inputs):
            archive.writestr(zipfile.ZipInfo(name), inputs[name])


def main(folder: Path) -> None:
    """Add all files of a folder."""
    for target in sorted(path for path in folder.iterdir() if path.is_dir()):
        add(target.name, {path.name: path.read_bytes() for path in target.iterdir()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
