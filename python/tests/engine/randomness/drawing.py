"""Everything that uses randomness, with a way to use it and to read the random values."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
from keywright._core import SumKey, SumParameters, ThresholdKey, ThresholdParameters, ThresholdParty
from keywright.insecure import ChemEncryptor
from tests.oracle import Oracle, known_public_key

if TYPE_CHECKING:
    from collections.abc import Callable


ENTROPY = bytes(range(32))
WEIGHT = 32

# ---- sources ----


@cache
def ckks() -> kw.Parameters:
    return kw.Parameters.from_bits(10, [31, 30], [31], 20, insecure=True)


@cache
def secret() -> kw.SecretKey:
    return kw.SecretKey.generate(ckks(), ENTROPY)


@cache
def bfv_secret() -> kw.SecretKey:
    return kw.SecretKey.generate(
        kw.bfv.Parameters.from_bits(10, [31, 30], [31], 12289, insecure=True), ENTROPY
    )


@cache
def public_key(secret: kw.SecretKey) -> kw.PublicKey:
    """Return a key that reveals the masks and errors of ciphertexts encrypted with it."""
    key, q = kw.KeyGenerator(secret, ENTROPY).public_key(), secret.parameters.q
    return kw.PublicKey.from_bytes(known_public_key(key.to_bytes(), q), secret.parameters)


@cache
def thin() -> kw.thin.Parameters:
    return kw.thin.Parameters(ckks(), scale=1 << 20, fraction_bits=10, slots=512)


def client(entropy: bytes | None) -> kw.thin.Client:
    """Return a thin client with a known secret."""
    return kw.thin.Client.from_secret_bytes(secret().to_bytes(), thin(), entropy)


@cache
def thin_key() -> bytes:
    return known_public_key(client(ENTROPY).public_key(), ckks().q[:1])


@cache
def sums() -> SumParameters:
    return SumParameters(1, 1)


def sum_key(entropy: bytes | None) -> SumKey:
    """Return a key with a known secret; given entropy determines the secret as well."""
    key = SumKey.generate(sums(), ENTROPY)
    return SumKey.generate(sums(), entropy) if entropy else SumKey.from_bytes(key.to_bytes(), sums())


def update(key: SumKey) -> bytes:
    zeros = np.zeros(1 << sums().log_n, np.int64)
    return key.encrypt(zeros, session=bytes(16), round=1, client=1, weight=1).to_bytes()


@cache
def threshold() -> ThresholdParameters:
    return ThresholdParameters(2, 2, max_inputs=2, magnitude=1, max_values=1)


def party(entropy: bytes | None) -> ThresholdParty:
    return ThresholdParty.generate(threshold(), ENTROPY, entropy)


@cache
def joint_key() -> ThresholdKey:
    halves = [party(None).public_half() for _ in range(2)]
    return ThresholdKey.combine(threshold(), ENTROPY, halves)


def encapsulation() -> list[kw.KeySpec]:
    """Return keys to an ephemeral secret and back: a set's head with two other elements."""
    head = bytearray(kw.keys.set_head([kw.KeySpec.rotation(ckks(), steps, 0) for steps in (1, 2)]))
    start, stop = 48, len(head) - 4
    size = (stop - start) // 2
    for place, kind in ((start, 3), (start + size, 4)):
        head[place : place + 9] = struct.pack("<BQ", kind, WEIGHT)
    head[stop:] = struct.pack("<I", zlib.crc32(head[:stop]))
    return kw.keys.read_set_head(bytes(head), ckks())


def saved(generator: kw.KeyGenerator) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "keys"
        generator.save_evaluation_keys(path, encapsulation())
        return path.read_bytes()


# ---- random values ----


@cache
def of_ckks() -> Oracle:
    return Oracle.of(secret().to_bytes(), ckks().q, ckks().p, public_key(secret()).to_bytes())


@cache
def of_bfv() -> Oracle:
    return Oracle.of(bfv_secret().to_bytes(), ckks().q, ckks().p, public_key(bfv_secret()).to_bytes())


@cache
def of_thin() -> Oracle:
    return Oracle.of(secret().to_bytes(), ckks().q[:1], [], thin_key())


@cache
def of_sums() -> Oracle:
    return Oracle.of(sum_key(ENTROPY).to_bytes(), [sums().modulus], [])


@dataclass(frozen=True)
class Source:
    """Something that uses randomness.

    Args:
        name: class and method, and what else distinguishes it.
        make: makes the object, from the system's randomness or from given entropy.
        draw: returns its output as bytes.
        oracle: computes seeds, errors and masks; without one, the bytes themselves must differ.
        copied: whether a child may use the object that its parent made from the system's randomness.
        entropy: what given entropy determines: "object", all output; "call", one call; or "none".
    """

    name: str
    make: Callable[[bytes | None], Any]
    draw: Callable[[Any], bytes]
    oracle: Callable[[], Oracle] | None = None
    copied: bool = True
    entropy: str = "object"

    def drawn(self, data: bytes) -> list[bytes]:
        return self.oracle().drawn(data) if self.oracle else [data]

    def __str__(self) -> str:
        return self.name


def call(name: str, make: Callable[[bytes | None], bytes], oracle: Any = None) -> Source:
    """Return a source without an object: the entropy of the call decides."""
    return Source(name, lambda entropy: entropy, make, oracle, entropy="call")


def keys(name: str, *arguments: Any, **options: Any) -> Source:
    """Return a method of `KeyGenerator`."""

    def draw(generator: kw.KeyGenerator) -> bytes:
        return getattr(generator, name.split()[0])(*arguments, **options).to_bytes()  # type: ignore[no-any-return]

    return Source(f"KeyGenerator.{name}", lambda entropy: kw.KeyGenerator(secret(), entropy), draw, of_ckks)


def encrypts(
    name: str, make: Callable[[bytes | None], Any], oracle: Any = None, *, copied: bool = True
) -> Source:
    """Return a method that encrypts a vector, here 0."""

    def draw(instance: Any) -> bytes:
        out = getattr(instance, name.partition(".")[2])(0 if name.endswith("scalar") else [0])
        return (out[0] if isinstance(out, list) else out).to_bytes()  # type: ignore[no-any-return]

    return Source(name, make, draw, oracle, copied)


def pool(key: Callable[[], Any]) -> Callable[[bytes | None], Any]:
    return lambda entropy: kw.EncryptionPool(key(), 2, threads=0, entropy=entropy)


def chem(secret: Callable[[], kw.SecretKey], unit: float) -> Callable[[bytes | None], ChemEncryptor]:
    """Use so many coins that no two outputs are equal."""
    say = "Chem does not hide messages"
    return lambda entropy: ChemEncryptor(
        public_key(secret()), 48, acknowledge=say, unit=unit, entropy=entropy
    )


SOURCES = [
    call("SecretKey.generate", lambda entropy: kw.SecretKey.generate(ckks(), entropy).to_bytes(), of_ckks),
    keys("public_key"),
    keys("relinearization_key"),
    keys("rotation_key", 1),
    keys("rotation_key stored", 1, seeded=False),
    keys("conjugation_key"),
    Source(
        "KeyGenerator.switching_key",
        lambda entropy: kw.KeyGenerator(secret(), entropy),
        lambda instance: instance.switching_key(kw.KeySpec.rotation(ckks(), 3)).to_bytes(),
        of_ckks,
    ),
    keys("evaluation_keys", [1, 2], conjugation=True),
    Source(
        "KeyGenerator.save_evaluation_keys",
        lambda entropy: kw.KeyGenerator(secret(), entropy),
        saved,
        of_ckks,
    ),
    call(
        "MasterKeys.generate",
        lambda entropy: kw.keys.MasterKeys.generate(secret(), [1], [31, 31], entropy=entropy).to_bytes(),
        of_ckks,
    ),
    encrypts("Encryptor.encrypt", lambda e: kw.Encryptor(public_key(secret()), e), of_ckks),
    encrypts("Encryptor.encrypt_coefficients", lambda e: kw.Encryptor(public_key(secret()), e), of_ckks),
    encrypts("Decryptor.encrypt", lambda e: kw.Decryptor(secret(), e), of_ckks),
    encrypts("Decryptor.encrypt_coefficients", lambda e: kw.Decryptor(secret(), e), of_ckks),
    encrypts("BfvEncryptor.encrypt", lambda e: kw.bfv.Encryptor(public_key(bfv_secret()), e), of_bfv),
    encrypts("BfvDecryptor.encrypt", lambda e: kw.bfv.Decryptor(bfv_secret(), e), of_bfv),
    *(
        encrypts(f"EncryptionPool.{name}", pool(key), of_ckks, copied=False)
        for name in ("encrypt", "encrypt_coefficients", "encrypt_scalar", "encrypt_scalars")
        for key in (secret, lambda: public_key(secret()))
    ),
    encrypts("EncryptionPool.encrypt_integers", pool(bfv_secret), of_bfv, copied=False),
    Source(
        "EncryptionPool.fill",
        pool(secret),
        lambda instance: bytes([instance.fill(1)]) and instance.encrypt([0]).to_bytes(),
        of_ckks,
        copied=False,
    ),
    encrypts("ChemEncryptor.encrypt", chem(secret, 2.0**-20)),
    encrypts("ChemEncryptor.encrypt_integers", chem(bfv_secret, 1.0)),
    call("Client", lambda entropy: kw.thin.Client(thin(), entropy).secret_bytes(), of_thin),
    Source("Client.public_key", client, lambda instance: instance.public_key(), of_thin),
    Source("Client.encrypt", client, lambda instance: instance.encrypt([0]), of_thin),
    Source("Client.encrypt compact", client, lambda instance: instance.encrypt([0], dropped=0), of_thin),
    Source("Client.session", client, lambda instance: instance.session()),
    Source(
        "ClientEncryptor.encrypt",
        lambda entropy: kw.thin.Encryptor(thin_key(), thin(), entropy),
        lambda instance: instance.encrypt([0]),
        of_thin,
    ),
    Source(
        "ClientEncryptor.encrypt compact",
        lambda entropy: kw.thin.Encryptor(thin_key(), thin(), entropy),
        lambda instance: instance.encrypt([0], dropped=(0, 0)),
        of_thin,
    ),
    call("SumKey.generate", lambda entropy: SumKey.generate(sums(), entropy).to_bytes(), of_sums),
    Source("SumKey.encrypt", sum_key, update, of_sums),
    # The threshold protocol reveals no secret: halves, shares and ciphertexts must differ.
    call("ThresholdParty.generate", lambda entropy: party(entropy).public_half()),
    Source("ThresholdParty.deal", party, lambda instance: b"".join(instance.deal()), entropy="none"),
    Source(
        "ThresholdKey.encrypt",
        lambda _: joint_key(),
        lambda instance: instance.encrypt(np.zeros(1, np.int64)),
        entropy="none",
    ),
]
