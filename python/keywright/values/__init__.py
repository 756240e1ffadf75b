"""Ciphertexts with operators, functions on declared ranges, and statistics."""

from .encrypted import Encrypted, EncryptedIntegers
from .groups import Group

__all__ = ["Encrypted", "EncryptedIntegers", "Group"]
