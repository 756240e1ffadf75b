"""Ciphertexts of a program for its back end, in tests without a model: with a public or a secret key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keywright as kw
import numpy as np
from keywright.compiler import Program
from numpy.typing import NDArray


def encrypt_sample(program: Program, encryptor: kw.Encryptor, sample: Any) -> list[kw.Ciphertext]:
    """Encrypt a sample, or up to a batch of them, with a public key of the input's ring."""
    level, magnitude = program.input.level, program.input.magnitude
    return [encryptor.encrypt(row, len(row), level, magnitude) for row in program.pack(sample)]


def encrypt_sample_seeded(
    program: Program, decryptor: kw.Decryptor, sample: Any
) -> list[kw.SeededCiphertext]:
    """Encrypt a sample, or up to a batch of them, with the secret key."""
    level, ring, magnitude = program.input.level, program.input.log_n or None, program.input.magnitude
    return [decryptor.encrypt(row, len(row), level, ring, magnitude) for row in program.pack(sample)]


def decrypt_result(
    program: Program, decryptor: kw.Decryptor, outputs: Sequence[kw.Ciphertext], count: int | None = None
) -> NDArray[np.float64]:
    """Decrypt a program's outputs: of ``count`` samples, or of one without a batch axis."""
    return program.unpack(np.asarray([decryptor.decrypt(output) for output in outputs]), count)
