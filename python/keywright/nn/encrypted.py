"""The back end that computes on ciphertexts: an adapter of `keywright.Evaluator`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

import keywright as kw

from .backend import LinearTransform, PolynomialSpec
from .program import Program
from .sparse import Vector


class EncryptedBackend:
    """Runs programs on ciphertexts; see `Backend` for the operations.

    Diagonals are encoded when a program first uses them and kept, so a second run takes less time. One
    encoded diagonal takes 8 N (level + 1 + special primes) bytes.

    Args:
        evaluator: holds the evaluation keys: `key_specs` says which a program needs.
    """

    def __init__(self, evaluator: kw.Evaluator) -> None:
        self.evaluator = evaluator
        self._encoded: dict[tuple[int, int], list[kw.LinearTransform]] = {}
        self._sources: list[LinearTransform] = []  # alive as long as they are known by identity

    def level(self, ct: kw.Ciphertext) -> int:
        """See `Backend.level`."""
        return ct.level

    def linear_transform(self, cts: list[kw.Ciphertext], transform: LinearTransform) -> kw.Ciphertext:
        """See `Backend.linear_transform`."""
        return self.evaluator.linear_transform(cts, self._encode(transform, cts[0].level))

    def rotate(self, ct: kw.Ciphertext, step: int) -> kw.Ciphertext:
        """See `Backend.rotate`."""
        return self.evaluator.rotate(ct, step)

    def add(self, left: kw.Ciphertext, right: kw.Ciphertext) -> kw.Ciphertext:
        """See `Backend.add`."""
        return self.evaluator.add(left, right)

    def add_plain(self, ct: kw.Ciphertext, vector: Vector) -> kw.Ciphertext:
        """See `Backend.add_plain`."""
        return self.evaluator.add(ct, vector)

    def mul(self, left: kw.Ciphertext, right: kw.Ciphertext) -> kw.Ciphertext:
        """See `Backend.mul`."""
        if left is right:
            return self.evaluator.square(left)
        return self.evaluator.multiply(left, right)

    def polynomial(self, ct: kw.Ciphertext, polynomial: PolynomialSpec) -> kw.Ciphertext:
        """See `Backend.polynomial`."""
        return self.evaluator.polynomial(ct, polynomial.coefficients, polynomial.basis)

    def drop_level(self, ct: kw.Ciphertext, level: int) -> kw.Ciphertext:
        """See `Backend.drop_level`."""
        return self.evaluator.drop_to_level(ct, level)

    def _encode(self, transform: LinearTransform, level: int) -> list[kw.LinearTransform]:
        key = (id(transform), level)
        if key not in self._encoded:
            self._sources.append(transform)
            self._encoded[key] = [
                kw.LinearTransform(
                    self.evaluator.parameters,
                    {r: transform.full_diagonal(operand, r) for r in diagonals},
                    slots=transform.slots,
                    level=level,
                    n1=transform.n1,
                )
                for operand, diagonals in enumerate(transform.diagonals)
            ]
        return self._encoded[key]


def key_specs(program: Program, parameters: kw.Parameters, *, seeded: bool = True) -> list[kw.KeySpec]:
    """One key for each of a program's `Program.required_keys`, at the level where it is needed."""
    specs = []
    for key in program.required_keys:
        if key.kind == "rotation":
            specs.append(kw.KeySpec.rotation(parameters, key.step, level=key.level, seeded=seeded))
        else:
            specs.append(kw.KeySpec.relinearization(parameters, level=key.level, seeded=seeded))
    return specs


def encrypt_sample(program: Program, encryptor: kw.Encryptor, sample: ArrayLike) -> list[kw.Ciphertext]:
    """One sample as the ciphertexts that `Program.run` takes, at the program's input level."""
    return [
        encryptor.encrypt(row, level=program.input_level, slots=program.slots) for row in program.pack(sample)
    ]


def decrypt_result(program: Program, decryptor: kw.Decryptor, cts: Sequence[kw.Ciphertext]) -> Vector:
    """The output tensor in the ciphertexts that `Program.run` returned."""
    return program.unpack(np.asarray([decryptor.decrypt(ct) for ct in cts]))
