"""Bearer tokens of an OpenID Connect issuer: signed claims, which PyJWT verifies with the issuer's keys.

Tokens must be signed with a private key of the issuer (`ALGORITHMS`); unsigned tokens and tokens with a
shared secret are refused. The issuer publishes the address of its public keys (OpenID Connect Discovery 1.0,
section 4), a key set of RFC 7517. The set is fetched when a token names an unknown key, or after `FRESH_S`.
It is used for up to `STALE_S` while the issuer does not answer. The issuer is asked at most once in
`PAUSE_S`, whatever tokens arrive, by a thread of its own: only a token with an unknown key waits for it.
"""

import contextlib
import hashlib
import http.client
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from keywright._reading.documents import Limits, read_json
from keywright.client.connection import Deadline, connected
from keywright.errors.service import BusyError, ConfigurationError, UnauthorizedError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
DISCOVERY = "/.well-known/openid-configuration"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

MAX_TOKEN = 8192
LIMITS = Limits(1 << 18, 1 << 13)
"""Maximum bytes of an issuer's document."""

MAX_KEYS = 64
MIN_RSA_BITS = 2048

FRESH_S, STALE_S, PAUSE_S, TIMEOUT_S = 300.0, 3600.0, 10.0, 5.0

PATIENCE_S = 0.5
"""How long a token whose key is known waits for keys that are being fetched."""

FAMILIES = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "OKP": ("EdDSA",),
}
"""The algorithms of a key that names none, by its type or curve."""

LEEWAY_S = 30.0
"""Allowed clock skew."""

NAME = re.compile(r"[A-Za-z0-9._-]{1,59}")


@dataclass(frozen=True)
class VerifyingKey:
    """A public key of an issuer, and the algorithms with which it may be used."""

    key: Any
    algorithms: tuple[str, ...]


class Issuer:
    """An issuer whose tokens the server accepts.

    Thread safety: any number of threads may use one at the same time.

    Args:
        url: the issuer's URL, as its tokens name it in ``iss``: https, or http on the loopback.
        audience: this server's name, which tokens carry in ``aud``.
        claim: the claim that names the tenant: ``sub``, or one of an organisation.
        clock: returns seconds.

    Raises:
        ConfigurationError: the address is neither of these, or a name is empty.
    """

    def __init__(
        self, url: str, audience: str, claim: str = "sub", clock: Callable[[], float] = time.monotonic
    ) -> None:
        _require_safe(url)
        if not audience or not claim:
            raise ConfigurationError(
                "an issuer needs the audience of this server and a claim; neither may be empty", code="issuer"
            )
        self.url, self._audience, self._claim, self._clock = url, audience, claim, clock
        self._keys: dict[str | None, VerifyingKey] = {}
        self._fetched = self._asked = -float("inf")
        self._lock = threading.Lock()
        self._fetch_ended: threading.Event | None = None
        self._fetch_began = 0.0

    def asks(self, token: str) -> bool:
        """Whether `tenant` may wait for the issuer, because its key is unknown or too old."""
        try:
            name = jwt.get_unverified_header(token[:MAX_TOKEN]).get("kid")
        except jwt.InvalidTokenError:
            return False
        return self._find(name) is None or self._clock() - self._fetched >= STALE_S

    def tenant(self, token: str) -> str:
        """Return the tenant of a token: ``oidc.`` and the claim. If the claim is too long for a name or does
        not match `NAME`, it is ``oidc-`` and 32 digits of its SHA-256.

        Raises:
            UnauthorizedError: the token is malformed, expired, for another audience, or of another issuer.
            BusyError: the issuer's keys are not cached, and it does not answer.
        """
        if len(token) > MAX_TOKEN:
            raise UnauthorizedError(f"the token has {len(token)} bytes; at most {MAX_TOKEN} are read")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError as error:
            raise UnauthorizedError(
                "send a token of this server's issuer: Authorization: Bearer TOKEN"
            ) from error
        if header.get("alg") not in ALGORITHMS:
            raise UnauthorizedError(f"the token must be signed with one of {', '.join(ALGORITHMS)}")
        try:
            key = self._key(header.get("kid"))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self.url,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", self._claim]},
            )
        except jwt.PyJWTError as error:
            raise UnauthorizedError(f"the token is not valid: {type(error).__name__}") from error
        value = claims[self._claim]
        if not isinstance(value, str) or not value:
            raise UnauthorizedError(f"the token's claim {self._claim!r} is not text")
        if NAME.fullmatch(value):
            return f"oidc.{value}"
        return f"oidc-{hashlib.sha256(value.encode(errors='surrogatepass')).hexdigest()[:32]}"

    def _key(self, name: str | None) -> VerifyingKey:
        """Return the key that signed a token; waits until it is fetched if it is not cached.

        Raises:
            UnauthorizedError: the issuer has no key of that name.
            BusyError: the issuer does not answer.
        """
        known, age = self._find(name), self._clock() - self._fetched
        if known is not None and age < FRESH_S:
            return known
        self._refresh(wait=known is None or age >= STALE_S)
        if self._clock() - self._fetched >= STALE_S:
            raise BusyError(
                f"the issuer of tokens does not answer; ask again in {PAUSE_S:.0f} s",
                code="issuer_unreachable",
            )
        key = self._find(name)
        if key is None:
            raise UnauthorizedError("the token is signed with a key that the issuer does not have")
        return key

    def _refresh(self, *, wait: bool) -> None:
        """Have the keys fetched, if they were not just now, and wait for them; but for a moment only if not
        ``wait``."""
        with self._lock:
            if self._fetch_ended is None and self._clock() - self._asked >= PAUSE_S:
                self._asked, self._fetch_began = self._clock(), time.monotonic()
                self._fetch_ended = threading.Event()
                threading.Thread(
                    target=self._fetch_all, args=(self._fetch_ended,), name="keywright-issuer", daemon=True
                ).start()
            ended, began = self._fetch_ended, self._fetch_began
        if ended is not None:
            left = 4 * TIMEOUT_S if wait else PATIENCE_S
            ended.wait(max(0.0, began + left - time.monotonic()))

    def _fetch_all(self, ended: threading.Event) -> None:
        try:
            # The keys of before stay if the issuer does not answer.
            with contextlib.suppress(BusyError):
                self._keys, self._fetched = _fetch_keys(self.url), self._clock()
        finally:
            with self._lock:
                self._fetch_ended = None
            ended.set()

    def _find(self, name: str | None) -> VerifyingKey | None:
        """Return a key by name; the only key for a token that names none."""
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(name)


def _fetch_keys(issuer: str) -> dict[str | None, VerifyingKey]:
    """Fetch the public keys of an issuer, by name; keys that cannot sign tokens are left out."""
    described = _fetch(issuer.rstrip("/") + DISCOVERY)
    if described.get("issuer") != issuer or not isinstance(described.get("jwks_uri"), str):
        raise BusyError(
            "the issuer's description is of another issuer, or names no keys", code="issuer_unreachable"
        )
    try:
        _require_safe(described["jwks_uri"])
    except ConfigurationError as error:
        raise BusyError(str(error), code="issuer_unreachable") from error
    entries = _fetch(described["jwks_uri"]).get("keys")
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise BusyError(f"the issuer lists no keys, or more than {MAX_KEYS}", code="issuer_unreachable")
    keys: dict[str | None, VerifyingKey] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
            continue
        family = FAMILIES.get(str(entry.get("crv" if entry.get("kty") == "EC" else "kty")), ())
        named = entry.get("alg")
        usable = family if named is None else tuple(name for name in family if name == named)
        if not usable:
            continue
        try:
            key = jwt.PyJWK.from_dict(entry)
        except (jwt.PyJWTError, ValueError, TypeError, UnsupportedAlgorithm):
            continue
        weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < MIN_RSA_BITS
        if not weak and isinstance(key.key_id, str | None):
            keys[key.key_id] = VerifyingKey(key.key, usable)
    return keys


def _fetch(url: str) -> dict[str, Any]:
    """Fetch a JSON object of an issuer from its own address: redirects are refused.

    Raises:
        BusyError: there is none, or it is too long or too slow.
    """
    parts, until = urlsplit(url), Deadline(TIMEOUT_S)
    try:
        with closing(connected(parts.scheme, parts.hostname or "", parts.port, until)) as connection:
            connection.request("GET", urlunsplit(("", "", parts.path or "/", parts.query, "")))
            response = connection.getresponse()
            data = response.read(LIMITS.bytes + 1)
        if response.status != HTTPStatus.OK:
            raise ValueError(f"its status is {response.status}")
        entry = read_json(data, LIMITS)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise BusyError(
            f"the issuer of tokens does not answer with a document of at most {LIMITS.bytes} bytes within "
            f"{TIMEOUT_S:g} s; ask again later",
            code="issuer_unreachable",
        ) from error
    if not isinstance(entry, dict):
        raise BusyError("a document of the issuer is not a JSON object", code="issuer_unreachable")
    return entry


def _require_safe(url: str) -> None:
    parts = urlsplit(url)
    if not parts.hostname or (
        parts.scheme != "https" and (parts.scheme, parts.hostname in LOOPBACK) != ("http", True)
    ):
        raise ConfigurationError(
            f"{url[:200]!r} is not an issuer's address: use https://, or http:// on the loopback",
            code="issuer",
        )
