"""Parameters and keys that tests share: making them once keeps the suite quick."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray

ENTROPY = bytes(range(32))
ROTATIONS = (1, 2, 4, 8, -1, 16, 32)


@dataclass(frozen=True)
class Party:
    """Everything that belongs to one secret key."""

    parameters: kw.Parameters
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    keys: kw.EvaluationKeys
    encryptor: kw.Encryptor
    decryptor: kw.Decryptor
    evaluator: kw.Evaluator

    @classmethod
    def make(cls, parameters: kw.Parameters, rotations: tuple[int, ...]) -> Self:
        secret = kw.SecretKey.generate(parameters, ENTROPY)
        generator = kw.KeyGenerator(secret, ENTROPY)
        keys = generator.evaluation_keys(rotations=rotations, conjugation=True)
        return cls(
            parameters,
            secret,
            generator,
            keys,
            kw.Encryptor(generator.public_key(), ENTROPY),
            kw.Decryptor(secret, ENTROPY),
            kw.Evaluator(parameters, keys),
        )

    def assert_decrypts(self, ciphertext: kw.Ciphertext, expected: NDArray[np.complex128]) -> None:
        """Check that the decryption is within the derived bound of the expected slots."""
        error = np.abs(self.decryptor.decrypt_complex(ciphertext) - expected).max()
        assert error <= ciphertext.error_bound, f"{error} above {ciphertext.error_bound}"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises `KeyboardInterrupt`, in processes started meanwhile too: a shell's background jobs
    inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def small() -> Party:
    """Five levels in a ring of degree 2^11, without security: quick."""
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45, 45, 45], [50, 50], 45, insecure=True)
    return Party.make(parameters, ROTATIONS)


@pytest.fixture(scope="session")
def other() -> Party:
    """Secure parameters that differ from those of `small`."""
    return Party.make(kw.Parameters.preset("N13_QP214_S38"), (1,))


@pytest.fixture
def slots(small: Party) -> NDArray[np.complex128]:
    """Random slots in the unit square around 0."""
    rng = np.random.default_rng(1)
    n = small.parameters.max_slots
    values: NDArray[np.complex128] = rng.uniform(-1, 1, n) + 1j * rng.uniform(-1, 1, n)
    return values
