"""The fields of a server's messages, each checked for type and range before a client uses it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from keywright.errors import FormatError, ParameterError

from .protocol import KEY_BYTES, Roster

MAX_NUMBER = 2**32 - 1
"""Largest round, and largest number of values."""

MAX_NODE = 2**64 - 1
MAX_PARTIES = 1 << 16
"""Length above which a list is refused unread; parameters have a lower bound."""

Item = TypeVar("Item", int, bytes)


def whole(record: Mapping[str, Any], name: str, minimum: int, maximum: int) -> int:
    """Return a whole number within bounds.

    Raises:
        ParameterError: it is something else.
    """
    value = record.get(name)
    if type(value) is not int or not minimum <= value <= maximum:
        raise ParameterError(
            f"{name} is missing or not a number from {minimum} to {maximum}",
            what=name,
            minimum=minimum,
            maximum=maximum,
        )
    return value


def content(record: Mapping[str, Any], name: str) -> bytes:
    """Return bytes.

    Raises:
        ParameterError: they are something else.
    """
    value = record.get(name)
    if not isinstance(value, bytes):
        raise ParameterError(f"{name} is missing or not bytes", what=name)
    return value


def items(record: Mapping[str, Any], name: str, kind: type[Item]) -> list[Item]:
    """Return a list of nodes' numbers, or of bytes.

    Raises:
        ParameterError: it is something else.
    """
    value = record.get(name)
    if (
        not isinstance(value, list)
        or len(value) > MAX_PARTIES
        or any(type(each) is not kind for each in value)
    ):
        raise ParameterError(f"{name} is missing or not a list of {kind.__name__}", what=name)
    if kind is int and not all(0 <= each <= MAX_NODE for each in value):
        raise ParameterError(f"{name} has a number that no node has", what=name, minimum=0, maximum=MAX_NODE)
    return list(value)


@dataclass(frozen=True)
class Terms:
    """The message that asks for shares.

    Attributes:
        roster: participants, with keys that all of them can agree with.
        threshold: clients that decrypt together.
        count: number of values.
    """

    roster: Roster
    threshold: int
    count: int

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Read a message.

        Raises:
            ParameterError: a field has another type or range.
            FormatError: the lists do not match, or a key or nonce is of no use.
        """
        keys, nonces = items(record, "keys", bytes), items(record, "nonces", bytes)
        roster = Roster.of(items(record, "nodes", int), keys, nonces)
        if len(set(nonces)) < len(nonces) or not all(map(is_agreement_key, keys)):
            raise FormatError(
                "the roster has a nonce twice, or a key of low order", code="contents", found=len(keys)
            )
        threshold = whole(record, "threshold", 1, MAX_PARTIES)
        return cls(roster, threshold, whole(record, "count", 1, MAX_NUMBER))

    def to_state(self) -> dict[str, Any]:
        """Return the part that a client keeps."""
        roster = self.roster
        lists = {"nodes": list(roster.nodes), "keys": list(roster.keys), "nonces": list(roster.nonces)}
        return lists | {"count": self.count}


@dataclass(frozen=True)
class Deal:
    """The message with the shares for one client.

    Attributes:
        halves: of the joint key, by party.
        shares: sealed, by party.
    """

    halves: list[bytes]
    shares: list[bytes]

    @classmethod
    def read(cls, record: Mapping[str, Any], parties: int) -> Self:
        """Read a message to a group.

        Raises:
            ParameterError: a field is not a list of bytes with one for each party.
        """
        lists = [items(record, name, bytes) for name in ("halves", "shares")]
        for name, each in zip(("halves", "shares"), lists, strict=True):
            if len(each) != parties:
                raise ParameterError(
                    f"{name} has {len(each)} entries for {parties} clients", what=name, value=len(each)
                )
        return cls(*lists)


@dataclass(frozen=True)
class Request:
    """The message that asks for a part of a decryption.

    Attributes:
        total: the sum.
        round: from 1.
        contributors: nodes whose updates it has.
        active: nodes that decrypt it.
    """

    total: bytes
    round: int
    contributors: frozenset[int]
    active: tuple[int, ...]

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """Read a message.

        Raises:
            ParameterError: a field has another type or range, or a node decrypts twice.
        """
        active = items(record, "active", int)
        if len(set(active)) < len(active):
            raise ParameterError("active has a node twice", what="active")
        # Nodes that are listed twice count once.
        contributors = frozenset(items(record, "contributors", int))
        number = whole(record, "round", 1, MAX_NUMBER)
        total = content(record, "sum")
        return cls(total, number, contributors, tuple(active))


def is_agreement_key(key: object) -> bool:
    """Whether bytes are a valid X25519 key: not a point of low order."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        return False
    try:
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        return False
    return True
