"""Pools from Python: messages, choices, files, processes; and the insecure alternative."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest
from keywright.insecure import ChemDistinguisher, ChemEncryptor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tests.conftest import Party

ENTROPY = bytes(range(32))
ACKNOWLEDGEMENT = "Chem does not hide messages"


def whole(ciphertext: kw.Ciphertext | kw.SeededCiphertext) -> kw.Ciphertext:
    return ciphertext.expand() if isinstance(ciphertext, kw.SeededCiphertext) else ciphertext


@pytest.fixture(params=["public", "secret"])
def key(request: pytest.FixtureRequest, small: Party) -> kw.PublicKey | kw.SecretKey:
    return small.generator.public_key() if request.param == "public" else small.secret


def test_messages_decrypt_within_the_bound(small: Party, key: kw.PublicKey | kw.SecretKey) -> None:
    pool = kw.EncryptionPool(key, 8, threads=0, when_empty="error")
    assert pool.fill() == len(pool) == 8
    kind = kw.Ciphertext if isinstance(key, kw.PublicKey) else kw.SeededCiphertext
    values = np.linspace(-3, 3, 1024)
    cases: list[tuple[kw.Ciphertext | kw.SeededCiphertext, NDArray[np.float64]]] = [
        (pool.encrypt(values), values),
        (pool.encrypt(values[:16], slots=16), values[:16]),
        (pool.encrypt_coefficients(values), np.append(values, np.zeros(1024))),
        (pool.encrypt_scalar(0.1), np.full(1024, 0.1)),
        (pool.encrypt_scalar(-7, slots=1), np.array([-7.0])),
    ]
    scalars = [0.5, 1e-3, -0.0]
    several: Sequence[kw.Ciphertext | kw.SeededCiphertext] = pool.encrypt_scalars(scalars, slots=2)
    cases += [(ciphertext, np.full(2, x)) for ciphertext, x in zip(several, scalars, strict=True)]
    for ciphertext, expected in cases:
        assert isinstance(ciphertext, kind)
        assert ciphertext.bytes == pool.entry_bytes
        decrypted = small.decryptor.decrypt(whole(ciphertext))
        assert decrypted.shape == expected.shape
        assert np.abs(decrypted - expected).max() <= whole(ciphertext).error_bound
    complex_values = (values[:8] * (1 + 2j)).astype(np.complex128)
    pool.fill(1)
    small.assert_decrypts(whole(pool.encrypt(complex_values, slots=8)), complex_values)
    assert pool.metrics["hits"] == pool.metrics["taken"] == 9
    assert (pool.level, pool.capacity, pool.parameters) == (5, 8, small.parameters)


def test_ciphertexts_are_usable_beside_others(small: Party) -> None:
    with kw.EncryptionPool(small.generator.public_key(), 2, level=3) as pool:
        ciphertext = whole(pool.encrypt([1.0, 2.0], slots=2))
    product = small.evaluator(ciphertext) * small.evaluator(small.encryptor.encrypt([3.0, 4.0], 2, level=3))
    assert (
        np.abs(small.decryptor.decrypt(product.ciphertext) - [3, 8]).max() <= product.ciphertext.error_bound
    )


def test_an_empty_pool_does_what_it_was_told(small: Party) -> None:
    key = small.generator.public_key()
    errors = kw.EncryptionPool(key, 1, threads=0, when_empty="error")
    with pytest.raises(
        kw.errors.PoolError, match="empty", check=lambda error: error.code == "empty"
    ) as caught:
        errors.encrypt_scalar(1)
    assert (caught.value.made, caught.value.taken) == (0, 0)

    direct = kw.EncryptionPool(key, 1, threads=0)
    direct.fill(1)
    for _ in range(2):
        small.assert_decrypts(whole(direct.encrypt_scalar(2, slots=1)), np.array([2 + 0j]))
    assert direct.metrics["misses"] == 1
    assert direct.metrics["hit_rate"] == 0.5

    blocks = kw.EncryptionPool(key, 1, when_empty="block")
    assert len(blocks.encrypt_scalars(np.ones(20))) == 20
    blocks.close()
    with pytest.raises(kw.errors.PoolError, check=lambda error: error.code == "empty"):
        blocks.encrypt_scalars(np.ones(2))


def test_bad_input_takes_no_entry(small: Party) -> None:
    key = small.generator.public_key()
    pool = kw.EncryptionPool(key, 3, threads=0, when_empty="error")
    pool.fill()
    bad: list[Any] = [[np.nan], [1e300], np.ones((2, 2)), np.ones(1025), 1.0, ["a"]]
    for values in bad:
        with pytest.raises(kw.errors.EncodeError):
            pool.encrypt(values)
    with pytest.raises(kw.errors.EncodeError):
        pool.encrypt_scalar(float("inf"))
    with pytest.raises(kw.errors.EncodeError):
        pool.encrypt_scalars([1.0, np.nan, 1.0])
    with pytest.raises(kw.errors.ParameterError):
        pool.encrypt_scalar(1.0, slots=3)
    assert len(pool) == 3
    refused: list[dict[str, Any]] = [
        {"capacity": 0},
        {"threads": 1000},
        {"when_empty": "wait"},
        {"file": "x"},
        {"file_key": ENTROPY},
    ]
    for arguments in refused:
        with pytest.raises(kw.errors.ParameterError):
            kw.EncryptionPool(key, **{"capacity": 1, **arguments})
    with pytest.raises(kw.errors.PoolError, match="at least one", check=lambda error: error.code == "empty"):
        kw.EncryptionPool(key, 1, threads=0, when_empty="block")
    with pytest.raises(kw.errors.LevelError):
        kw.EncryptionPool(key, 1, level=6)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.EncryptionPool(key, 1).encrypt_integers(1)
    with pytest.raises(TypeError):
        kw.EncryptionPool(small.generator, 1)  # type: ignore[call-overload]


def test_threads_never_share_an_entry(small: Party) -> None:
    pool = kw.EncryptionPool(small.secret, 4, when_empty="block", level=0)
    entries: list[bytes] = []

    def draw() -> None:
        entries.extend(whole(pool.encrypt_scalar(0.0)).to_bytes() for _ in range(40))

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert len(set(entries)) == len(entries) == 120


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_is_refused(small: Party) -> None:
    pool = kw.EncryptionPool(small.secret, 2, threads=1, when_empty="block")
    pool.encrypt_scalar(1.0)

    def child(sender: multiprocessing.connection.Connection) -> None:
        try:
            pool.encrypt_scalar(1.0)
            sender.send("")
        except kw.errors.RandomnessError as error:
            sender.send(f"{error.owner} {error.process}" if error.code == "forked" else error.code)

    receiver, sender = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(sender,))
    process.start()
    assert receiver.recv() == f"{os.getpid()} {process.pid}"
    process.join()
    assert process.exitcode == 0


def test_a_file_keeps_entries_between_processes(small: Party, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "file": tmp_path / "pool",
        "file_key": ENTROPY,
        "register": tmp_path / "register",
    }
    with kw.EncryptionPool(small.secret, 3, threads=0, file_capacity=5, **arguments) as pool:
        pool.fill()
        pool.encrypt_scalar(1.0)
    with kw.EncryptionPool(small.secret, 3, threads=0, when_empty="error", **arguments) as pool:
        assert pool.metrics["in_file"] == 2
        pool.fill(2)
        assert pool.metrics["in_file"] == 0
        small.assert_decrypts(whole(pool.encrypt_scalar(0.25, slots=1)), np.array([0.25 + 0j]))

    def reason(**changes: object) -> str:
        with pytest.raises(kw.errors.PoolError) as caught:
            kw.EncryptionPool(small.secret, 1, threads=0, **{**arguments, **changes})
        assert caught.value.path == changes.get("file", arguments["file"])
        return caught.value.code

    assert reason(file_key=bytes(32)) == "file_key"
    assert reason(register=tmp_path / "elsewhere") == "unregistered"
    assert reason(level=1) == "entries"
    copy = tmp_path / "copy"
    shutil.copy(tmp_path / "pool", copy)
    assert reason(file=copy) == "copied"
    copy.write_bytes(b"not a pool" * 100)
    assert reason(file=copy) == "foreign"
    with pytest.raises(IsADirectoryError):
        kw.EncryptionPool(small.secret, 1, **{**arguments, "file": tmp_path})


def test_a_pool_ends_with_its_process() -> None:
    program = (
        "import keywright as kw\n"
        "p = kw.Parameters.from_bits(10, [50, 40], [50], 30, insecure=True)\n"
        "pool = kw.EncryptionPool(kw.SecretKey.generate(p), 4, when_empty='block')\n"
        "pool.encrypt_scalar(1.0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_integers_are_exact() -> None:
    parameters = kw.bfv.Parameters.from_bits(10, [50, 40], [50], 12289, insecure=True)
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    public = kw.KeyGenerator(secret, ENTROPY).public_key()
    decryptor = kw.bfv.Decryptor(secret)
    values = np.arange(-512, 512)
    for key in (public, secret):
        pool = kw.EncryptionPool(key, 4, threads=0)
        for message, packing, expected in (
            (values, "slots", values),
            (values, "coefficients", values),
            (7, "slots", np.full(1024, 7)),
        ):
            ciphertext = pool.encrypt_integers(message, packing)
            assert isinstance(ciphertext, kw.bfv.Ciphertext if key is public else kw.bfv.SeededCiphertext)
            whole = ciphertext.expand() if isinstance(ciphertext, kw.bfv.SeededCiphertext) else ciphertext
            assert (decryptor.decrypt(whole) == expected).all()
        assert pool.parameters == parameters
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
            pool.encrypt([1.0])
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
            pool.encrypt_scalar(1.0)
        with pytest.raises(kw.errors.EncodeError):
            pool.encrypt_integers([12289])
        with pytest.raises(kw.errors.EncodeError):
            pool.encrypt_integers([0.5])
        assert pool.metrics["taken"] == 3


def test_a_build_without_chem_says_how_to_get_it() -> None:
    program = """
import keywright._core as core
del core.ChemEncryptor, core.ChemDistinguisher
import keywright.insecure
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: this build of Keywright lacks the insecure scheme" in done.stderr
    assert "--features insecure" in done.stderr


@pytest.mark.parametrize("bits", [16, 40])
def test_chem_is_told_apart(small: Party, bits: int) -> None:
    key = small.generator.public_key()
    chem = ChemEncryptor(key, bits, acknowledge=ACKNOWLEDGEMENT, unit=2.0**-8)
    small.assert_decrypts(chem.encrypt([300])[0], np.full(1024, 300 / 256 + 0j))
    attacker = ChemDistinguisher(chem.encrypt([5] * (bits + 32)))
    assert attacker.rank == bits
    assert [attacker.recognises(c) for c in chem.encrypt([5, 4, 5, 7, 0])] == [
        True,
        False,
        True,
        False,
        False,
    ]
    pool = kw.EncryptionPool(key, 1, threads=0)
    attacker = ChemDistinguisher([whole(pool.encrypt_scalar(5)) for _ in range(bits + 32)])
    assert attacker.rank == bits + 31
    assert not attacker.recognises(whole(pool.encrypt_scalar(5)))


def test_chem_is_told_apart_in_bfv() -> None:
    parameters = kw.bfv.Parameters.from_bits(10, [50, 40], [50], 12289, insecure=True)
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    key = kw.KeyGenerator(secret, ENTROPY).public_key()
    decryptor = kw.bfv.Decryptor(secret)
    chem = ChemEncryptor(key, 16, acknowledge=ACKNOWLEDGEMENT)
    for cache in (chem, ChemEncryptor(key, 16, 7, acknowledge=ACKNOWLEDGEMENT)):
        for message, ciphertext in zip(
            [0, 1, 300, 65535], cache.encrypt_integers([0, 1, 300, 65535]), strict=True
        ):
            assert ((decryptor.decrypt(ciphertext) - message) % 12289 == 0).all()
    attacker = ChemDistinguisher(chem.encrypt_integers([5] * 48))
    assert attacker.rank == 16
    assert [attacker.recognises(c) for c in chem.encrypt_integers([5, 4, 5, 0])] == [True, False, True, False]
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        chem.encrypt([1])
    with pytest.raises(kw.errors.ParameterError):
        ChemEncryptor(key, 16, acknowledge=ACKNOWLEDGEMENT, unit=0.5)
    with pytest.raises(kw.errors.EncodeError):
        chem.encrypt_integers([1 << 16])


def test_chem_keeps_schemes_and_parameters_apart(small: Party) -> None:
    key = small.generator.public_key()
    chem = ChemEncryptor(key, 8, acknowledge=ACKNOWLEDGEMENT)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        chem.encrypt_integers([1])
    other = kw.bfv.Parameters.from_bits(11, [50, 40], [50], 12289, insecure=True)
    others = kw.bfv.Encryptor(kw.KeyGenerator(kw.SecretKey.generate(other, ENTROPY), ENTROPY).public_key())
    attacker = ChemDistinguisher(chem.encrypt([5] * 20))
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        attacker.recognises(others.encrypt([1]))
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        ChemDistinguisher([*chem.encrypt([5]), others.encrypt([1])])  # type: ignore[arg-type]


def test_chem_wants_an_acknowledgement(small: Party) -> None:
    key = small.generator.public_key()
    with pytest.raises(kw.errors.SecurityError, match=ACKNOWLEDGEMENT):
        ChemEncryptor(key, 8, acknowledge="")
    with pytest.raises(kw.errors.ParameterError):
        ChemEncryptor(key, 0, acknowledge=ACKNOWLEDGEMENT)
    with pytest.raises(kw.errors.ParameterError):
        ChemEncryptor(key, 8, 1, acknowledge=ACKNOWLEDGEMENT)
    with pytest.raises(kw.errors.ParameterError):
        ChemEncryptor(key, 8, acknowledge=ACKNOWLEDGEMENT, unit=2.0**-46)
    with pytest.raises(kw.errors.EncodeError):
        ChemEncryptor(key, 8, acknowledge=ACKNOWLEDGEMENT).encrypt([256])
    with pytest.raises(kw.errors.ParameterError):
        ChemEncryptor(key, 8, acknowledge=ACKNOWLEDGEMENT).encrypt([-1])
    with pytest.raises(kw.errors.EncodeError):
        ChemDistinguisher([])
