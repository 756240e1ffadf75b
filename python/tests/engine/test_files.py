from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import Party

KINDS = ["secret", "public", "keys", "ciphertext", "seeded", "parameters"]


def objects(party: Party) -> dict[str, tuple[Any, Callable[[bytes], Any], Callable[[Path], Any]]]:
    """One object of each kind that has files, with its from_bytes and load for the party's parameters."""
    p = party.parameters
    return {
        "secret": (
            party.secret,
            lambda data: kw.SecretKey.from_bytes(data, p),
            lambda path: kw.SecretKey.load(path, p),
        ),
        "public": (
            party.generator.public_key(),
            lambda data: kw.PublicKey.from_bytes(data, p),
            lambda path: kw.PublicKey.load(path, p),
        ),
        "keys": (
            party.generator.evaluation_keys(rotations=[1], level=1),
            lambda data: kw.EvaluationKeys.from_bytes(data, p),
            lambda path: kw.EvaluationKeys.load(path, p),
        ),
        "ciphertext": (
            party.encryptor.encrypt([0.25, 0.5], slots=2, level=1),
            lambda data: kw.Ciphertext.from_bytes(data, p),
            lambda path: kw.Ciphertext.load(path, p),
        ),
        "seeded": (
            party.decryptor.encrypt([0.25, 0.5], slots=2, level=1),
            lambda data: kw.SeededCiphertext.from_bytes(data, p),
            lambda path: kw.SeededCiphertext.load(path, p),
        ),
        "parameters": (
            party.parameters,
            lambda data: kw.Parameters.from_bytes(data, insecure=True),
            lambda path: kw.Parameters.load(path, insecure=True),
        ),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(small: Party, tmp_path: Path, kind: str) -> None:
    thing, from_bytes, load = objects(small)[kind]
    data = thing.to_bytes()
    assert from_bytes(data).to_bytes() == data
    path = tmp_path / "file.kw"
    thing.save(path)
    assert path.read_bytes() == data
    assert load(path).to_bytes() == data
    assert kw.keys.inspect(path)["bytes"] == len(data)
    assert kw.keys.inspect(path)["secret"] == (kind == "secret")


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_damaged_and_foreign_bytes(small: Party, kind: str) -> None:
    thing, from_bytes, _ = objects(small)[kind]
    data = thing.to_bytes()
    for cut in (0, 3, 8, 40, len(data) // 2, len(data) - 1):
        with pytest.raises(kw.errors.FormatError) as caught:
            from_bytes(data[:cut])
        assert caught.value.code
    for extra in (b"\0", data):
        with pytest.raises(kw.errors.FormatError):
            from_bytes(data + extra)
    for place in {0, 9, 12, 60, len(data) // 2, len(data) - 1}:
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        with pytest.raises((kw.errors.FormatError, kw.errors.MismatchError)):
            from_bytes(bytes(damaged))
    for foreign in (b"PK\x03\x04" + bytes(100), b"\x93NUMPY" + bytes(100)):
        with pytest.raises(kw.errors.FormatError) as caught:
            from_bytes(foreign)
        assert caught.value.code == "foreign"


def test_every_byte_of_a_head_may_be_any_other(small: Party) -> None:
    """A head says how much work describing it takes: none takes long, or ends otherwise than by a refusal."""
    head = kw.keys.set_head(list(small.generator.evaluation_keys(rotations=[1], level=1)))
    (length,) = struct.unpack_from("<I", head, 32)
    end = 44 + length
    assert zlib.crc32(head[:end]) == struct.unpack_from("<I", head, end)[0]
    described = 0
    for place in range(end):
        for value in (0, 1, 7, 18, 30, 62, 63, 64, 127, 191, 254, 255):
            changed = bytearray(head)
            changed[place] = value
            struct.pack_into("<I", changed, end, zlib.crc32(changed[:end]))
            with contextlib.suppress(kw.errors.KeywrightError):
                described += kw.keys.inspect(bytes(changed))["kind"] == "a set of switching keys"
    assert described > 100


def test_another_kind_is_refused_by_name(small: Party) -> None:
    with pytest.raises(kw.errors.FormatError, match="a public key") as caught:
        kw.Ciphertext.from_bytes(small.generator.public_key().to_bytes(), small.parameters)
    assert caught.value.code == "kind"
    with pytest.raises(kw.errors.FormatError, match="secret"):
        kw.EvaluationKeys.from_bytes(small.secret.to_bytes(), small.parameters)


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_files_of_other_parameters_are_refused(small: Party, other: Party, kind: str) -> None:
    data = objects(small)[kind][0].to_bytes()
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        objects(other)[kind][1](data)


def test_missing_files_are_named(small: Party, tmp_path: Path) -> None:
    path = tmp_path / "absent.kw"
    for load in [functions[2] for functions in objects(small).values()] + [kw.keys.inspect]:
        with pytest.raises(FileNotFoundError) as caught:
            load(path)
        assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError):
        small.secret.save(tmp_path / "absent" / "file.kw")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_secrets_are_readable_by_their_owner_only(small: Party, tmp_path: Path) -> None:
    path = tmp_path / "secret.kw"
    small.secret.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file limits")
def test_an_interrupted_write_leaves_the_old_file(small: Party, tmp_path: Path) -> None:
    import resource
    import signal

    path = tmp_path / "ciphertext.kw"
    path.write_bytes(b"before")
    ciphertext = small.encryptor.encrypt([0.5])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="large") as caught:
            ciphertext.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208
    ciphertext.save(path)
    loaded = kw.Ciphertext.load(path, small.parameters)
    assert np.abs(small.decryptor.decrypt(loaded)[0] - 0.5) <= loaded.error_bound


def test_a_ciphertext_keeps_its_scale_and_estimate(small: Party) -> None:
    squared = small.evaluator.square(small.encryptor.encrypt([0.5, 0.25], slots=2))
    loaded = kw.Ciphertext.from_bytes(squared.to_bytes(), small.parameters)
    assert loaded.scale == squared.scale
    assert loaded.level == squared.level
    assert loaded.slots == 2
    assert loaded.error_bound >= squared.error_bound * (1 - 1e-9)
    lazy = small.evaluator.multiply_lazy(squared, squared)
    assert kw.Ciphertext.from_bytes(lazy.to_bytes(), small.parameters).degree == 2


def test_a_path_is_text(tmp_path: Path) -> None:
    """Of bytes, the refusal says how they become a path."""
    parameters = kw.Parameters.preset("N13_QP214_S38")
    uses: list[Any] = [parameters.save, kw.Parameters.load, kw.SecretKey.generate(parameters).save]
    for path in (bytes(tmp_path / "p.kw"), os.DirEntry):
        for use in uses:
            with pytest.raises(
                TypeError, match=r"os\.fsdecode" if isinstance(path, bytes) else "os.PathLike"
            ):
                use(path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing counts what a process reads")
def test_what_a_file_holds_is_told_without_reading_its_secret(tmp_path: Path) -> None:
    """A buffer had the whole key, and kept it after its end."""

    def read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    path = tmp_path / "secret.kw"
    kw.SecretKey.generate(kw.Parameters.preset("N13_QP214_S38")).save(path)
    assert kw.keys.inspect(path)["secret"]
    before = read()
    own = read() - before
    before = read()
    kw.keys.inspect(path)
    assert read() - before - own < path.stat().st_size / 10
