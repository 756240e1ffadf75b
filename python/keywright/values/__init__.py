"""Ciphertexts with operators, functions on declared ranges, and statistics."""

from .encrypted import Encrypted
from .groups import Group
from .integers import EncryptedIntegers

__all__ = ["Encrypted", "EncryptedIntegers", "Group"]
