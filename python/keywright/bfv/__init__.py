"""BFV: exact integers modulo a plaintext modulus, with the keys of `keywright.KeyGenerator`."""

from keywright._core import BfvCiphertext as Ciphertext
from keywright._core import BfvDecryptor as Decryptor
from keywright._core import BfvEncryptor as Encryptor
from keywright._core import BfvEvaluator as Evaluator
from keywright._core import BfvParameters as Parameters
from keywright._core import BfvSeededCiphertext as SeededCiphertext
from keywright.values import EncryptedIntegers as Encrypted

__all__ = [
    "Ciphertext",
    "Decryptor",
    "Encrypted",
    "Encryptor",
    "Evaluator",
    "Parameters",
    "SeededCiphertext",
]
