"""Tags that show whether a server altered a sum of updates.

Without them, a client's error tells a server that altered a sum whether the result was still in range. With
them, every alteration has the same answer: the tag of an altered sum does not fit, whether the sum is in
range or not.

The tag of an update ``m`` under claims ``c`` is ``sum_j r_j m_j + f(c)`` modulo four primes. ``r`` is
pseudorandom and the same for all clients of a session; ``f(c)`` hides the tag and is used once, because a
claim contains 16 random bytes. Tags add up as updates do, and the server, which has no key, adds them. An
altered sum whose values differ by any ``d`` fits if ``sum_j r_j d_j`` is what the server added to the tag. At
most one of the primes divides a ``d_j`` that is not 0, so this has a probability below 2^-90.
"""

import hashlib
import os
import struct
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from keywright._core import EncryptedSum, EncryptedUpdate, SumKey
from keywright.errors import AggregationError, FormatError

PRIMES = (4294967291, 4294967279, 4294967231, 4294967197)
"""The largest primes below 2^32."""

NONCE_BYTES = 16
_ENTRY = struct.Struct(f"<Q{NONCE_BYTES}s")
_TOTAL = struct.Struct("<4I")
_AT_ONCE = 1 << 18
_MAX_BYTES = (1 << 20) * _ENTRY.size + _TOTAL.size

ALTERED = "the sum is not one of updates that clients sent with this key: it was altered, or one of them was"


def tag_update(key: SumKey, integers: NDArray[np.int64], update: EncryptedUpdate) -> bytes:
    """Return the tag of an update with these integers: its client, random bytes, and the tag."""
    nonce = os.urandom(NONCE_BYTES)
    claims = _claims(update.session, update.round, update.client, update.weight, nonce)
    hidden = _mask(_secret(key, update.session), claims)
    sums = (a + b for a, b in zip(_product(key, update.session, integers), hidden, strict=True))
    return _ENTRY.pack(update.client, nonce) + _TOTAL.pack(*(_reduced(sums)))


def add_tags(tags: Sequence[bytes]) -> bytes:
    """Add the tags of updates of different clients. Needs no key.

    Raises:
        FormatError: a tag is malformed.
    """
    parsed = [_split(tag, 1) for tag in tags]
    entries = sorted(entry for _, (entry,) in parsed)
    totals = (sum(column) for column in zip(*(total for total, _ in parsed), strict=True))
    return b"".join(_ENTRY.pack(*entry) for entry in entries) + _TOTAL.pack(*_reduced(totals))


def require_tag(tag: bytes, client: int) -> None:
    """Check the form of a client's tag.

    Raises:
        FormatError: it is malformed.
        AggregationError: it is of another client.
    """
    _, ((result, _),) = _split(tag, 1)
    if result != client:
        raise AggregationError(
            f"the tag is of client {result}, expected {client}",
            reason="client",
            client=client,
            found=result,
            expected=client,
        )


def require_form(tag: bytes, updates: int) -> None:
    """Check the form of the tag of a sum, which needs no key.

    Raises:
        FormatError: it is not a tag of this number of updates.
    """
    _split(tag, updates)


def open_sum(key: SumKey, total: EncryptedSum, tag: bytes) -> NDArray[np.int64]:
    """Decrypt a sum whose tag fits. The work is the same whether the sum decrypts or not.

    Raises:
        AggregationError: it was altered; the error says nothing else.
        FormatError: the tag is malformed.
    """
    result, entries = _split(tag, len(total.contributors))
    integers, whole = np.zeros(total.count, np.int64), True
    try:
        integers = key.decrypt(total)
    except AggregationError:
        whole = False
    nonces, secret = dict(entries), _secret(key, total.session)
    sums = _product(key, total.session, integers)
    for client, weight in total.contributors:
        claims = _claims(total.session, total.round, client, weight, nonces.get(client, b""))
        sums = [a + b for a, b in zip(sums, _mask(secret, claims), strict=True)]
    if not whole or _reduced(sums) != result:
        raise AggregationError(ALTERED, reason="undecodable") from None
    return integers


def _split(tag: bytes, count: int) -> tuple[list[int], list[tuple[int, bytes]]]:
    """Return the total, and the clients with their random bytes.

    Raises:
        FormatError: it is not a tag of this number of updates.
    """
    if len(tag) != count * _ENTRY.size + _TOTAL.size or len(tag) > _MAX_BYTES:
        raise FormatError(f"a tag of {count} updates has {len(tag)} bytes", reason="contents")
    entries = [(client, nonce) for client, nonce in _ENTRY.iter_unpack(tag[: -_TOTAL.size])]
    if len(dict(entries)) < count:
        raise FormatError("a tag names a client twice", reason="contents")
    return list(_TOTAL.unpack(tag[-_TOTAL.size :])), entries


def _claims(session: bytes, number: int, client: int, weight: int, nonce: bytes) -> bytes:
    return session + struct.pack("<IQI", number, client, weight) + nonce


def _secret(key: SumKey, session: bytes) -> bytes:
    return hashlib.sha256(b"keywright tags" + hashlib.sha256(key.to_bytes()).digest() + session).digest()


def _mask(secret: bytes, claims: bytes) -> list[int]:
    digest = hashlib.sha512(b"keywright tag mask" + secret + claims).digest()
    words = struct.unpack("<4Q", digest[:32])
    return [word % prime for word, prime in zip(words, PRIMES, strict=True)]


def _product(key: SumKey, session: bytes, integers: NDArray[np.int64]) -> list[int]:
    """Return ``sum_j r_j m_j`` modulo each prime."""
    stream = Cipher(ChaCha20(_secret(key, session), bytes(16)), mode=None).encryptor()
    sums = [0] * len(PRIMES)
    for begin in range(0, len(integers), _AT_ONCE):
        values = integers[begin : begin + _AT_ONCE]
        words = np.frombuffer(stream.update(bytes(16 * len(values))), "<u4").reshape(-1, 4)
        for place, prime in enumerate(PRIMES):
            factors = words[:, place].astype(np.uint64) % np.uint64(prime)
            products = factors * (values % prime).astype(np.uint64) % np.uint64(prime)
            sums[place] += int(products.sum())
    return sums


def _reduced(sums: object) -> list[int]:
    return [value % prime for value, prime in zip(sums, PRIMES, strict=True)]  # type: ignore[call-overload]
