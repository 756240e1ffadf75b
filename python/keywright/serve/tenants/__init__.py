"""Accounts, their quotas, and the audit."""

from .accounts import Accounts
from .oidc import Issuer
from .quotas import Quotas

__all__ = ["Accounts", "Issuer", "Quotas"]
