"""Two encrypted vectors that tests of their operations share."""

from __future__ import annotations

from dataclasses import dataclass

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray

SLOTS = 16
POWERS = [1, 2, 4, 8]
MATRIX = np.random.default_rng(5).normal(size=(12, 5))


Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """Two encrypted vectors and their contents."""

    parameters: kw.Parameters
    decryptor: kw.Decryptor
    x: kw.Encrypted
    y: kw.Encrypted
    v: Vector
    w: Vector
    encryptor: kw.Encryptor

    def encrypt(self, values: list[float], magnitude: float | None = None) -> kw.Ciphertext:
        return self.encryptor.encrypt(values, slots=SLOTS, magnitude=magnitude)

    def error(self, vector: kw.Encrypted, expected: Vector | float) -> float:
        return float(np.abs(self.decryptor.decrypt(vector) - expected).max())


@pytest.fixture(scope="module")
def pair() -> Pair:
    return encrypted_pair(kw.Parameters.from_bits(11, [52, *[42] * 10], [60], 42, insecure=True))


def encrypted_pair(parameters: kw.Parameters) -> Pair:
    secret = kw.SecretKey.generate(parameters)
    generator, rng = kw.KeyGenerator(secret), np.random.default_rng(6)
    rotations = kw.LinearTransform(parameters, MATRIX.T, SLOTS).rotations
    keys = generator.evaluation_keys(rotations=sorted({*rotations, *POWERS}))
    evaluator, encryptor = kw.Evaluator(parameters, keys), kw.Encryptor(generator.public_key())
    v, w = rng.uniform(-0.5, 0.5, (2, SLOTS))
    x, y = (evaluator(encryptor.encrypt(values, slots=SLOTS, magnitude=1)) for values in (v, w))
    return Pair(parameters, kw.Decryptor(secret), x, y, v, w, encryptor)
