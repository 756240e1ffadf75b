"""Nothing follows the end of an object: whatever the package reads is refused with bytes behind it.

Formats in Python are read by the readers of the fuzzer, whose registry `fuzz/python` tests in the same way.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import _core, compiler
from keywright.cli import main
from keywright.errors import KeywrightError
from keywright.errors.engine import FormatError
from keywright.federated import EncryptedSum, SumKey, ThresholdKey, ThresholdParameters, ThresholdParty
from tests.engine.randomness import test_bytes_tell_nothing as examples
from tests.serve.network import make_full

VECTORS = Path(__file__).parents[3] / "vectors" / "wire" / "v2"
TRAILING = (b"\0", b"x", bytes(22), b"PK\5\6" + bytes(18))

Read = Callable[[bytes], object]


def of_classes() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """An object of each class of the engine that is read, and further arguments of its readers."""
    ckks, message = examples.CKKS, np.arange(3)
    generator, specs = (
        kw.KeyGenerator(examples.SECRET),
        [kw.KeySpec.rotation(examples.CKKS, step) for step in (1, 2)],
    )
    small = kw.Parameters.from_bits(10, [40, 30], [45], 30, insecure=True)
    secret = kw.SecretKey.generate(small)
    key = SumKey.generate(examples.SUMS, examples.ENTROPY)
    update = key.encrypt(message, session=bytes(16), round=1, client=1, weight=3)
    threshold = ThresholdParameters(3, 2, max_inputs=3, magnitude=8, max_values=5)
    parties = [ThresholdParty.generate(threshold, examples.ENTROPY) for _ in range(3)]
    halves, dealt = [party.public_half() for party in parties], [party.deal() for party in parties]
    masks = [bytes([number]) * 32 for number in range(3)]
    share = _core.ThresholdShare.combine(threshold, 1, [each[0] for each in dealt], masks)
    return {
        "Parameters": (ckks, ()),
        "BfvParameters": (examples.BFV, ()),
        "ClientParameters": (examples.THIN, ()),
        "SecretKey": (examples.SECRET, (ckks,)),
        "PublicKey": (examples.PUBLIC, (ckks,)),
        "SwitchingKey": (generator.switching_key(specs[0]), (ckks,)),
        "EvaluationKeys": (generator.evaluation_keys(relinearization=False, specs=specs), (ckks,)),
        "MasterKeys": (_core.MasterKeys.generate(secret, [1], [50]), (small,)),
        "Ciphertext": (kw.Encryptor(examples.PUBLIC).encrypt([1.0]), (ckks,)),
        "SeededCiphertext": (kw.Decryptor(examples.SECRET).encrypt([1.0]), (ckks,)),
        "BfvCiphertext": (kw.bfv.Encryptor(examples.BFV_PUBLIC).encrypt([1]), (examples.BFV,)),
        "BfvSeededCiphertext": (kw.bfv.Decryptor(examples.BFV_SECRET).encrypt([1]), (examples.BFV,)),
        "SumKey": (key, (examples.SUMS,)),
        "EncryptedUpdate": (update, (examples.SUMS,)),
        "EncryptedSum": (EncryptedSum.of([update], examples.SUMS), (examples.SUMS,)),
        "ThresholdKey": (ThresholdKey.combine(threshold, examples.ENTROPY, halves), (threshold,)),
        "ThresholdShare": (share, (threshold, 1, masks)),
        "SearchAnswer": (examples.searches(np.arange(examples.COUNT))[1], (examples.SEARCH,)),
        "Client": (examples.THIN_CLIENT, (examples.THIN,)),
    }


READERS = ("from_bytes", "load", "from_secret_bytes")


def readers(folder: Path) -> Iterator[tuple[str, bytes, Read]]:
    """What reads the objects, by name, with the bytes of one."""
    for name, (thing, arguments) in of_classes().items():
        kind = getattr(_core, name)
        data = bytes(thing.secret_bytes() if name == "Client" else thing.to_bytes())
        for reader in READERS:
            if hasattr(kind, reader):
                yield f"{name}.{reader}", data, partial(_read, getattr(kind, reader), arguments, folder)
    yield "thin.Client.decrypt", examples.THIN_CLIENT.encrypt(np.arange(3)), examples.THIN_CLIENT.decrypt
    yield "thin.Encryptor", examples.THIN_PUBLIC, lambda data: kw.thin.Encryptor(data, examples.THIN)


def _read(read: Callable[..., object], arguments: tuple[Any, ...], folder: Path, data: bytes) -> object:
    if read.__name__ != "load":
        return read(data, *arguments)
    (folder / "object").write_bytes(data)
    return read(folder / "object", *arguments)


def refuses(read: Read, data: bytes) -> bool:
    """Whether a reader refuses bytes with an error of the package."""
    try:
        read(data)
    except KeywrightError:
        return True
    return False


def test_every_class_of_the_engine_that_is_read_refuses_trailing_bytes(tmp_path: Path) -> None:
    tried = set()
    for name, data, read in readers(tmp_path):
        tried.add(name)
        # An encryption is no answer, which alone is decrypted.
        assert name == "thin.Client.decrypt" or not refuses(read, data)
        for trailing in TRAILING:
            assert refuses(read, data + trailing), f"{name} reads bytes behind its object"
    known = {
        f"{name}.{reader}"
        for name, kind in vars(_core).items()
        if isinstance(kind, type)
        for reader in READERS
        if hasattr(kind, reader) and not issubclass(kind, int)
    }
    assert known <= tried


@pytest.mark.parametrize("file", sorted(path.name for path in VECTORS.glob("*.kw")))
def test_info_refuses_trailing_bytes(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / file
    path.write_bytes((VECTORS / file).read_bytes())
    assert main(["info", str(path), "--json"]) == 0
    path.write_bytes(path.read_bytes() + b"\0")
    assert main(["info", str(path), "--json"]) != 0
    assert "its header states" in capsys.readouterr().err


def test_a_program_file_has_nothing_before_behind_or_beside_it(tmp_path: Path) -> None:
    path, program = tmp_path / "program.kwp", make_full().program
    compiler.save(program, path)
    data = path.read_bytes()
    for other in (*(data + trailing for trailing in TRAILING), data + data, b"x" + data, bytes(30) + data):
        path.write_bytes(other)
        with pytest.raises(FormatError, match="program"):
            compiler.load(path)
    path.write_bytes(data)
    with zipfile.ZipFile(path) as archive:
        entries = {"more.npy": b"", "input.npy": archive.read("input.npy")}
    for name in entries:
        path.write_bytes(data)
        with zipfile.ZipFile(path, "a") as archive, pytest.warns() if name == "input.npy" else nullcontext():
            archive.writestr(name, entries[name])
        with pytest.raises(FormatError, match="entry"):
            compiler.load(path)
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"comment"
    with pytest.raises(FormatError, match="behind"):
        compiler.load(path)
    path.write_bytes(data)
    compiler.load(path)
