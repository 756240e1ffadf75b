"""Runs every input of `fuzz/corpus` and `fuzz/crashes` through its reader, without atheris."""

import contextlib
import io
import json
import random
import struct
import zipfile
import zlib
from pathlib import Path

import corpus
import pytest
from keywright.errors import KeywrightError
from mutations import PNG, mutate_json, mutate_png, mutate_sealed, mutate_zip
from readers import READERS, FaultError, Reader, limited_memory

FUZZ = Path(__file__).parents[1]
DRAW = random.Random(1)


def stored(name: str) -> dict[str, bytes]:
    crashes = {path.name: path.read_bytes() for path in (FUZZ / "crashes" / name).glob("*")}
    return corpus.read(name) | crashes


def change(data: bytes, most: int) -> bytes:
    """Replace or insert a byte: what libFuzzer does, on a small scale."""
    place = DRAW.randrange(len(data) + 1)
    return (data[:place] + bytes([DRAW.randrange(256)]) + data[place + DRAW.randrange(2) :])[:most]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", READERS)
def test_what_is_stored_is_read_or_refused(name: str) -> None:
    accepted = 0
    for file, data in stored(name).items():
        try:
            with limited_memory():
                accepted += READERS[name].run(data)
        except Exception as error:
            raise AssertionError(f"{name}, {file}: {error!r}") from error
    assert accepted > 0


BLANKS = frozenset(name for name, reader in READERS.items() if reader.mutate in (mutate_json, mutate_sealed))
"""Readers of JSON, behind which blanks mean nothing."""

UNCHECKED = {
    "program": "an archive, which has checksums; the dates of its entries mean nothing",
    "manifest": "a request names its SHA-256, and a server refuses other names",
    "plan": "keys of another plan are refused",
    "workload": "of its user, for plans",
    "calibration": "of this machine, for predictions",
    "array": "numpy's",
    "image": "of its user",
    "onnx_model": "of its user",
    "array_layout": "a digest of it is in the session of every update",
    "search_parts": "the client compares tag, index and revision, and the rest has a checksum",
    "accounts": "of the operator",
}
"""Readers of formats without a checksum, and why a changed bit gives no other result."""


@pytest.mark.parametrize("name", sorted(READERS.keys() - UNCHECKED))
def test_every_changed_bit_is_found(name: str) -> None:
    for file, data in stored(name).items():
        if not _accepts(name, data):
            continue
        for bit in range(8 * len(data)):
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            assert not _accepts(name, bytes(changed)), f"{name}, {file}: bit {bit}"


OTHERS_FORMATS = {"image": "PNG ends with a chunk of its own, and programs write others behind it"}


@pytest.mark.parametrize("name", sorted(READERS.keys() - OTHERS_FORMATS))
def test_nothing_follows_the_end_of_what_is_read(name: str) -> None:
    for file, data in stored(name).items():
        if not _accepts(name, data):
            continue
        for trailing in (b"\0", b"x", bytes(22), *([] if name in BLANKS else [b"\n"])):
            assert not _accepts(name, data + trailing), f"{name}, {file}: {trailing!r}"


def _accepts(name: str, data: bytes) -> bool:
    """Whether a reader accepts an input. Faults do not count here."""
    with contextlib.suppress(FaultError):
        return READERS[name].run(data)
    return False


def test_equal_inputs_give_equal_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"b": b"two", "a": b"one"}
    monkeypatch.setattr(corpus, "CORPUS", tmp_path)
    corpus.add("first", inputs)
    corpus.add("second", {"a": b"other"})
    corpus.add("second", {"b": b"two"})
    corpus.add("second", {"a": b"one"})
    first, second = (tmp_path / f"{name}.zip" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert corpus.read("second") == inputs


def test_stored_archives_are_as_they_would_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_archives = {path.stem: corpus.read(path.stem) for path in sorted(corpus.CORPUS.iterdir())}
    originals = {name: (corpus.CORPUS / f"{name}.zip").read_bytes() for name in stored_archives}
    monkeypatch.setattr(corpus, "CORPUS", tmp_path)
    for name, inputs in stored_archives.items():
        corpus.add(name, inputs)
        assert (tmp_path / f"{name}.zip").read_bytes() == originals[name], name


def test_files_elsewhere_and_refusals_without_words_are_faults() -> None:
    def silent(_: bytes) -> bool:
        raise KeywrightError("")

    def read(path: str, mode: str) -> Reader:
        return Reader(lambda _: Path(path).open(mode) is not None)

    for reader, word in (
        (read("/etc/hostname", "rb"), "open"),
        (read("/etc/hostname", "r+b"), "open"),
        (Reader(silent), "without a message"),
    ):
        with pytest.raises(FaultError, match=word):
            reader.run(b"")
    with (FUZZ / "run.py").open("rb"):
        assert not Reader(lambda _: False).run(b"")


def test_mutations_keep_what_readers_check_first() -> None:
    """For archives and JSON in more than half of the inputs, for an image's chunks in some."""
    program, image, plan = (
        corpus.read(name)[f"seed-{kind}"]
        for name, kind in (("program", "sigmoid"), ("image", "rgb"), ("plan", "direct"))
    )
    whole, chunks, parsed, different = 0, 0, 0, set()
    for seed in range(200):
        archive = mutate_zip(program, 1 << 14, seed, change)
        different.add(archive)
        with (
            contextlib.suppress(zipfile.BadZipFile, zlib.error),
            zipfile.ZipFile(io.BytesIO(archive)) as opened,
        ):
            whole += opened.testzip() is None
        with contextlib.suppress(ValueError):
            parsed += isinstance(json.loads(mutate_json(plan, 1 << 14, seed, change)), dict)
        chunks += _checksums(mutate_png(image, 1 << 12, seed, change))
    assert min(whole, parsed) > 100
    assert len(different) > 150
    assert chunks > 20


def _checksums(image: bytes) -> bool:
    place, right = len(PNG), image.startswith(PNG)
    while right and place + 12 <= len(image):
        (length,) = struct.unpack_from(">I", image, place)
        chunk = image[place + 4 : place + 8 + length]
        right = image[place + 8 + length : place + 12 + length] == struct.pack(">I", zlib.crc32(chunk))
        place += 12 + length
    return right
