"""Keys beyond those of a generator: master keys, stored sets, and predictions of the errors that keys add."""

from keywright._core import Derivation, ErrorModel, MasterKeys, SwitchingKey, inspect
from keywright._core import key_set_head as set_head
from keywright._core import read_key_set_head as read_set_head

__all__ = [
    "Derivation",
    "ErrorModel",
    "MasterKeys",
    "SwitchingKey",
    "inspect",
    "read_set_head",
    "set_head",
]
