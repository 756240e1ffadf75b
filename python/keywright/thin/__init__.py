"""Thin clients: they encrypt integers with one prime, without floating-point numbers."""

from keywright._core import Client
from keywright._core import ClientEncryptor as Encryptor
from keywright._core import ClientKeyStream as KeyStream
from keywright._core import ClientParameters as Parameters

__all__ = [
    "Client",
    "Encryptor",
    "KeyStream",
    "Parameters",
]
