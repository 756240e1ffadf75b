"""Keys and ciphertexts of different owners are distinguished; impossible decryptions are refused."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import keywright as kw
import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Party

# Offset of the identity in the header of an object of format version 2.
IDENTITY = slice(44, 60)


@pytest.fixture(scope="module")
def stranger(small: Party) -> Party:
    """Another owner with the same parameters."""
    secret = kw.SecretKey.generate(small.parameters, bytes(32 * [7]))
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(rotations=(1,))
    return type(small)(
        small.parameters,
        secret,
        generator,
        keys,
        kw.Encryptor(generator.public_key()),
        kw.Decryptor(secret),
        kw.Evaluator(small.parameters, keys),
    )


def forged(data: bytes, identity: bytes) -> bytes:
    """Return an object with another identity, and correct checksums."""
    end = 44 + int.from_bytes(data[32:36], "little")
    head = data[:44] + identity + data[60:end]
    body = data[end + 4 : -4]
    sums = (zlib.crc32(head), zlib.crc32(body, zlib.crc32(head)))
    return head + sums[0].to_bytes(4, "little") + body + sums[1].to_bytes(4, "little")


def test_an_identity_is_a_digest_of_the_secret(small: Party, stranger: Party) -> None:
    data = small.secret.to_bytes()
    packed = data[64:-4]
    expected = hashlib.sha256(b"keywright key identity" + packed).digest()[:16]
    assert data[IDENTITY] == expected
    assert small.secret.key_identity == expected.hex() != stranger.secret.key_identity
    ciphertext = small.encryptor.encrypt([1.0])
    seeded = small.decryptor.encrypt([1.0])
    for thing in (small.generator.public_key(), small.keys, ciphertext, seeded, seeded.expand()):
        assert thing.key_identity == expected.hex()
        assert kw.keys.inspect(thing.to_bytes())["key_identity"] == expected.hex()
    assert kw.EvaluationKeys(small.parameters).key_identity is None
    assert kw.keys.inspect(small.parameters.to_bytes())["key_identity"] is None
    for thing in (ciphertext, seeded):
        assert type(thing).from_bytes(thing.to_bytes(), small.parameters).key_identity == expected.hex()


def test_operations_of_two_owners_are_refused(small: Party, stranger: Party) -> None:
    a, b = small.encryptor.encrypt([0.5]), stranger.encryptor.encrypt([0.5])
    keyless = kw.Evaluator(small.parameters)
    for operation in (
        lambda: small.decryptor.decrypt(b),
        lambda: small.decryptor.decrypt_complex(b),
        lambda: small.evaluator.rotate(b, 1),
        lambda: small.evaluator.add(a, b),
        lambda: stranger.evaluator.add(a, b),
        lambda: keyless.add(a, b),
        lambda: keyless.multiply_lazy(a, b),
        lambda: small.evaluator(a) * small.evaluator(b),
        lambda: small.evaluator.linear_transform(
            b, kw.LinearTransform(small.parameters, {0: np.ones(small.parameters.max_slots)}, level=1)
        ),
        lambda: small.evaluator.polynomial(b, [0.0, 0.5, 0.5]),
    ):
        with pytest.raises(
            kw.errors.MismatchError,
            match="made with different secrets",
            check=lambda error: error.code == "key",
        ) as caught:
            operation()
        identities = {small.secret.key_identity, stranger.secret.key_identity}
        assert {caught.value.left, caught.value.right} == identities
        assert all(str(identity) in str(caught.value) for identity in identities)
    keys = kw.EvaluationKeys(small.parameters)
    keys.add(small.generator.relinearization_key())
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "key"):
        keys.add(stranger.generator.relinearization_key())


def test_bfv_tells_owners_apart() -> None:
    parameters = kw.bfv.Parameters.from_bits(11, [50, 40], [50], 65537, insecure=True)
    alice, bob = (kw.SecretKey.generate(parameters) for _ in range(2))
    a, b = (kw.bfv.Decryptor(secret).encrypt([1, 2]).expand() for secret in (alice, bob))
    assert kw.bfv.Decryptor(alice).decrypt(a)[:2].tolist() == [1, 2]
    for operation in (
        lambda: kw.bfv.Decryptor(alice).decrypt(b),
        lambda: kw.bfv.Decryptor(alice).noise_budget(b),
        lambda: kw.bfv.Evaluator(parameters).add(a, b),
    ):
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "key"):
            operation()


def test_a_forged_identity_gives_no_result(small: Party, stranger: Party, tmp_path: Path) -> None:
    theirs = stranger.encryptor.encrypt([0.5] * 8)
    mine = bytes.fromhex(str(small.secret.key_identity))
    # The victim's identity, and no identity: decryption sees garbage.
    for identity in (mine, bytes(16)):
        ciphertext = kw.Ciphertext.from_bytes(forged(theirs.to_bytes(), identity), small.parameters)
        with pytest.raises(
            kw.errors.NoiseError, match="another secret key", check=lambda error: error.code == "overflow"
        ) as caught:
            small.decryptor.decrypt(ciphertext)
        assert caught.value.log_value > caught.value.log_limit
    # A secret key's own identity is compared.
    with pytest.raises(
        kw.errors.MismatchError, match="header of the secret", check=lambda error: error.code == "key"
    ):
        kw.SecretKey.from_bytes(forged(stranger.secret.to_bytes(), mine), small.parameters)
    # Keys that are read on use have their identity before.
    stranger.keys.save(tmp_path / "keys.kw")
    assert kw.keys.inspect(tmp_path / "keys.kw")["key_identity"] == stranger.secret.key_identity


def test_an_overflow_has_no_bound(small: Party) -> None:
    fits = small.encryptor.encrypt([400.0], level=0, magnitude=400)
    assert fits.error_bound < 1e-6
    # q_0 is 2^55 at a scale of 2^45: 2^10 in all.
    wrapped = small.evaluator.add(fits, fits)
    assert wrapped.error_bound == np.inf
    assert wrapped.precision_bits == -np.inf
    near = small.encryptor.encrypt(np.full(small.parameters.max_slots, 505.0), level=0, magnitude=505)
    with pytest.raises(kw.errors.NoiseError, check=lambda error: error.code == "overflow"):
        small.decryptor.decrypt(near)
    with pytest.raises(kw.errors.EncodeError):
        small.encryptor.encrypt(np.full(small.parameters.max_slots, 600.0), level=0, magnitude=600)
