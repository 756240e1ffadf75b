"""Authentication: tenants with static API keys, of which the server stores digests, or with tokens of an
issuer.

The accounts file lists the digests: ``{"format": "keywright-accounts-1", "tenants": {NAME: [SHA-256 of a key,
...]}}``. A key has 256 random bits, so its digest needs no salt and no slow hash.
``python -m keywright.serve.tenants.new_key FILE NAME`` makes a key, writes its digest into the file and
prints the key once.
"""

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from keywright._files import locked, replace
from keywright._reading.documents import Limits, object_of
from keywright.errors.service import ConfigurationError, UnauthorizedError

FORMAT = "keywright-accounts-1"
LIMITS = Limits(1 << 20, 1 << 16)
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
DIGEST = re.compile(r"[0-9a-f]{64}")
PREFIX = "kw_"

NOBODY = ""
"""The tenant of a server without accounts: anyone who knows an identifier may use it."""


class Tokens(Protocol):
    """Verifies tokens, see `keywright.serve.tenants.oidc.Issuer`."""

    def tenant(self, token: str, /) -> str:
        """Return the tenant to which a token belongs."""

    def asks(self, token: str, /) -> bool:
        """Whether `tenant` may wait for another server."""


class Accounts:
    """Tenants by the digests of their API keys, and the tenants of a token issuer.

    Thread safety: any number of threads may use one at the same time.

    Args:
        tenants: SHA-256 digests in hexadecimal, by tenant name.
        issuer: verifies credentials that are not one of these keys.
        admins: the tenants that may open the operator's page.

    Raises:
        ConfigurationError: a name or a digest is malformed, or two tenants share a key.
    """

    def __init__(
        self,
        tenants: Mapping[str, Sequence[str]],
        issuer: Tokens | None = None,
        admins: Iterable[str] = (),
    ) -> None:
        self._issuer, self._admins = issuer, frozenset(admins)
        self._tenants: dict[str, str] = {}
        for name, digests in tenants.items():
            if not NAME.fullmatch(name):
                raise ConfigurationError(
                    f"{name[:80]!r} is not a tenant name: use letters, digits and . _ -", code="accounts_file"
                )
            for digest in digests:
                if not DIGEST.fullmatch(digest) or digest in self._tenants:
                    raise ConfigurationError(
                        f"tenant {name} has a malformed or repeated digest; make its "
                        "key again with keywright.serve.tenants.new_key",
                        code="accounts_file",
                    )
                self._tenants[digest] = name

    @staticmethod
    def load(path: Path | None, issuer: Tokens | None = None, admins: Iterable[str] = ()) -> "Accounts":
        """Read the accounts of a file, if there is one, and add an issuer.

        Raises:
            ConfigurationError: the file is not an accounts file.
        """
        return Accounts({} if path is None else _tenants(object_of(path, LIMITS), path), issuer, admins)

    def known(self, authorization: str | None) -> str | None:
        """Return the tenant of a request's static key; None if no tenant has this key."""
        scheme, key = _credentials(authorization)
        return self._tenants.get(_digest(key)) if scheme == "bearer" else None

    def tenant(self, authorization: str | None) -> str:
        """Return the tenant of a request from its header ``Authorization: Bearer KEY``. This may wait for the
        issuer.

        Raises:
            UnauthorizedError: the key or token belongs to no tenant.
            BusyError: the issuer of the token does not answer.
        """
        name = self.known(authorization)
        if name is not None:
            return name
        scheme, key = _credentials(authorization)
        if self._issuer is None or scheme != "bearer" or not key:
            raise UnauthorizedError("send an API key of this server: Authorization: Bearer KEY")
        return self._issuer.tenant(key)

    def asks(self, authorization: str | None) -> bool:
        """Whether `tenant` or `admin` may wait for the issuer."""
        authorization = bearer(authorization)
        scheme, key = _credentials(authorization)
        if self._issuer is None or scheme != "bearer" or self.known(authorization) is not None:
            return False
        return self._issuer.asks(key)

    def admin(self, authorization: str | None) -> str:
        """Return the tenant of a request for the operator's page. A browser may send the key or the token as
        the password of ``Authorization: Basic``, with any user name.

        Raises:
            UnauthorizedError: the tenant is not an admin.
            UnauthorizedError, BusyError: see `tenant`.
        """
        name = self.tenant(bearer(authorization))
        if name not in self._admins:
            raise UnauthorizedError(
                "this page is for the operator; start the server with --admin NAME for others",
                code="forbidden",
            )
        return name


def bearer(authorization: str | None) -> str | None:
    """Return a header whose password, if it has one, is a key or a token: browsers send ``Basic``."""
    scheme, _, rest = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        password = ""
    return f"Bearer {password}"


def add(path: Path, name: str) -> str:
    """Return a new key of a tenant, and write its digest into a file that only its owner may read, which is
    created if it is missing.

    Raises:
        ConfigurationError: the file is not an accounts file, or the name is malformed.
    """
    key = PREFIX + secrets.token_urlsafe(32)
    with locked(path):
        entry = object_of(path, LIMITS) if path.exists() else {"format": FORMAT}
        tenants = _tenants(entry, path) if path.exists() else {}
        tenants.setdefault(name, []).append(_digest(key))
        Accounts(tenants)
        replace(path, (json.dumps({**entry, "tenants": tenants}, indent=1) + "\n").encode())
    return key


def _tenants(entry: Mapping[str, Any], path: Path) -> dict[str, list[str]]:
    """Return the digests of a file by tenant.

    Raises:
        ConfigurationError: the file lists no digests.
    """
    tenants = entry.get("tenants") if entry.get("format") == FORMAT else None
    lists = tenants.values() if isinstance(tenants, dict) else [None]
    if not all(isinstance(digests, list) and all(isinstance(x, str) for x in digests) for digests in lists):
        raise ConfigurationError(
            f"{path} lists no accounts; make it with python -m keywright.serve.tenants.new_key {path} NAME",
            code="accounts_file",
        )
    return dict(tenants or {})


def _credentials(authorization: str | None) -> tuple[str, str]:
    """Scheme, in small letters, and key of a header."""
    scheme, _, key = (authorization or "").partition(" ")
    return scheme.lower(), key.strip()


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
