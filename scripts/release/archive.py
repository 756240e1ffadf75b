"""Archives and checksums that depend on contents alone."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

SUMS = "SHA256SUMS"


def write_archive(path: Path, files: Mapping[str, Path], links: Mapping[str, str], epoch: int) -> None:
    """Write a tar.gz with `files` (name to source) and symbolic `links` (name to target), in order of names.

    Owner, times and permissions do not depend on the machine.
    """
    contents = io.BytesIO()
    with tarfile.open(fileobj=contents, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted({*files, *links}):
            entry = tarfile.TarInfo(name)
            entry.mtime = epoch
            if name in links:
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, links[name], 0o777
                archive.addfile(entry)
                continue
            data = files[name].read_bytes()
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch) as packed:
        packed.write(contents.getvalue())


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path) -> str:
    """Write the digests of all files in a folder as `sha256sum --check` reads them; returns the text."""
    names = sorted(path.name for path in folder.iterdir() if path.name != SUMS)
    text = "".join(f"{digest(folder / name)}  {name}\n" for name in names)
    (folder / SUMS).write_text(text, encoding="ascii")
    return text


def read_sums(folder: Path) -> dict[str, str]:
    """The digests of a folder's files that were written, by name."""
    return dict(line.split()[::-1] for line in (folder / SUMS).read_text(encoding="ascii").splitlines())
