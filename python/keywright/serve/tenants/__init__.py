"""Accounts, their quotas, and the audit."""

from typing import TYPE_CHECKING, Any

from keywright.errors import PackageMissingError

from .accounts import Accounts
from .quotas import Quotas

if TYPE_CHECKING:
    from .oidc import Issuer

__all__ = ["Accounts", "Issuer", "Quotas"]


def __getattr__(name: str) -> Any:
    """Import PyJWT on first use: it takes a fifth of a worker's start."""
    if name == "Issuer":
        try:
            from .oidc import Issuer
        except ModuleNotFoundError as error:
            raise PackageMissingError(str(error.name), "serve") from error
        return Issuer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
