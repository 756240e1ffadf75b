"""Who asks: tenants with static API keys, of which the server knows the digests.

A file has them: ``{"format": "keywright-accounts-1", "tenants": {NAME: [SHA-256 of a key, ...]}}``.
A key has 256 random bits, so that its digest needs neither salt nor many rounds. ``python -m
keywright.serve.accounts FILE NAME`` makes one, writes its digest into the file and prints it, once.
"""

import hashlib
import json
import os
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import AccountsFileError, UnauthorizedError

FORMAT = "keywright-accounts-1"
MAX_BYTES = 1 << 20
NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
DIGEST = re.compile(r"[0-9a-f]{64}")
PREFIX = "kw_"

NOBODY = ""
"""The tenant where there are no accounts: whoever knows an identifier is entitled to it."""


class Accounts:
    """Tenants by the digests of their keys.

    Args:
        tenants: digests, SHA-256 in hexadecimal, by name.

    Raises:
        AccountsFileError: a name or a digest is none, or two tenants have one key.
    """

    def __init__(self, tenants: Mapping[str, Sequence[str]]) -> None:
        self._tenants: dict[str, str] = {}
        for name, digests in tenants.items():
            if not NAME.fullmatch(name):
                raise AccountsFileError(f"{name[:80]!r} is no name of a tenant: letters, digits and . _ -")
            for digest in digests:
                if not DIGEST.fullmatch(digest) or digest in self._tenants:
                    raise AccountsFileError(f"tenant {name} has a digest that is none, or is there twice")
                self._tenants[digest] = name

    @staticmethod
    def load(path: Path) -> "Accounts":
        """Those of a file.

        Raises:
            AccountsFileError: it is none.
        """
        return Accounts(_read(path))

    def tenant(self, authorization: str | None) -> str:
        """Whose key a request has, in its header ``Authorization: Bearer KEY``.

        Raises:
            UnauthorizedError: nobody's.
        """
        scheme, _, key = (authorization or "").partition(" ")
        name = self._tenants.get(_digest(key.strip())) if scheme.lower() == "bearer" else None
        if name is None:
            raise UnauthorizedError("send an API key of this server: Authorization: Bearer KEY")
        return name


def add(path: Path, name: str) -> str:
    """A new key of a tenant, whose digest is written into a file; made if it is missing.

    Raises:
        AccountsFileError: the file is none, or the name.
    """
    tenants = _read(path) if path.exists() else {}
    key = PREFIX + secrets.token_urlsafe(32)
    tenants.setdefault(name, []).append(_digest(key))
    Accounts(tenants)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"format": FORMAT, "tenants": tenants}, indent=1) + "\n")
    temporary.replace(path)
    return key


def _read(path: Path) -> dict[str, list[str]]:
    entry: object = None
    if path.is_file() and path.stat().st_size <= MAX_BYTES:
        try:
            entry = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            entry = None
    tenants = entry.get("tenants") if isinstance(entry, dict) and entry.get("format") == FORMAT else None
    found = tenants.values() if isinstance(tenants, dict) else [None]
    if not all(isinstance(digests, list) and all(isinstance(x, str) for x in digests) for digests in found):
        raise AccountsFileError(
            f"{path} lists no accounts; make it with python -m keywright.serve.accounts {path} NAME"
        )
    return dict(tenants or {})


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(add(Path(sys.argv[1]), sys.argv[2]) + "\n")
