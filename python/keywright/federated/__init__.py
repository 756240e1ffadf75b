"""Federated averaging on encrypted updates: the server adds updates that it cannot read.

`Encoding` declares bounds and precision; `SumKey` is the secret key that the clients share. For Flower (``pip
install keywright[federated]``), use `EncryptionMod` in the ClientApp and `EncryptedFedAvg` in the ServerApp,
or `ThresholdMod` and `ThresholdFedAvg` for clients that share no key. See docs/how-to/federated.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keywright._core import (
    EncryptedSum,
    EncryptedUpdate,
    SumKey,
    SumParameters,
    ThresholdKey,
    ThresholdParameters,
    ThresholdParty,
    ThresholdShare,
)
from keywright.federated.array_layout import ArrayLayout
from keywright.federated.encoding import Encoding

if TYPE_CHECKING:
    from keywright.federated.encryption_mod import EncryptionMod, decrypt_arrays
    from keywright.federated.strategy import EncryptedFedAvg, Refusal

    from .threshold.client import ThresholdMod
    from .threshold.strategy import ThresholdFedAvg

__all__ = [
    "ArrayLayout",
    "Encoding",
    "EncryptedFedAvg",
    "EncryptedSum",
    "EncryptedUpdate",
    "EncryptionMod",
    "Refusal",
    "SumKey",
    "SumParameters",
    "ThresholdFedAvg",
    "ThresholdKey",
    "ThresholdMod",
    "ThresholdParameters",
    "ThresholdParty",
    "ThresholdShare",
    "decrypt_arrays",
]

_NEEDS_FLOWER = {
    "EncryptedFedAvg": "strategy",
    "EncryptionMod": "encryption_mod",
    "Refusal": "strategy",
    "ThresholdFedAvg": "threshold.strategy",
    "ThresholdMod": "threshold.client",
    "decrypt_arrays": "encryption_mod",
}


def __getattr__(name: str) -> Any:
    """Import what needs Flower on first use."""
    if name in _NEEDS_FLOWER:
        return getattr(import_module(f"keywright.federated.{_NEEDS_FLOWER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
