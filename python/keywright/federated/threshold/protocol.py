"""Messages between clients and server of a threshold run: the roster, sealed shares, and the claims of an
update."""

import hashlib
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from keywright._core import ThresholdParameters
from keywright.errors import AggregationError, FormatError, ParameterError
from keywright.federated.encoding import MIN_BITS, Encoding

JOIN, DEAL, OPEN, DECRYPT = "keywright_join", "keywright_deal", "keywright_open", "keywright_decrypt"
KEY_BYTES = 32
_CLAIMS = struct.Struct("<8s16sIQII")
_MAGIC = b"KWtsum\x00\x01"


def threshold_parameters(encoding: Encoding, parties: int, threshold: int, count: int) -> ThresholdParameters:
    """Return the parameters, which all parties derive from the declaration.

    Raises:
        ParameterError: a number is out of range, or no modulus is large enough for the sums; the error then
            says how many bits would fit.
    """

    def of(bits: int) -> ThresholdParameters:
        return ThresholdParameters(
            parties,
            threshold,
            max_inputs=encoding.max_clients,
            magnitude=(1 << (bits - 1)) - 1,
            max_values=count,
        )

    try:
        return of(encoding.bits)
    except ParameterError as error:
        if getattr(error, "what", None) != "bits of the modulus":
            raise
        refused = error
    for bits in range(encoding.bits - 1, MIN_BITS - 1, -1):
        try:
            of(bits)
        except ParameterError:
            continue
        raise ParameterError(
            f"sums of {encoding.max_clients} updates of {encoding.bits} bits, decrypted by {threshold} of "
            f"{parties} clients, need a modulus of {refused.value} bits, but at most {refused.maximum} "
            f"are available; declare Encoding(bits={bits}) or fewer",
            what="bits of the modulus",
            value=refused.value,
            maximum=refused.maximum,
        ) from None
    raise refused


@dataclass(frozen=True)
class Roster:
    """The participants, in the order of their numbers from 1: node numbers of Flower, exchange keys,
    contributions to the seed.

    Attributes:
        nodes: ascending.
        keys: X25519 public keys, 32 bytes each.
        nonces: 32 random bytes each.
    """

    nodes: tuple[int, ...]
    keys: tuple[bytes, ...]
    nonces: tuple[bytes, ...]

    @classmethod
    def of(cls, nodes: Sequence[int], keys: Sequence[bytes], nonces: Sequence[bytes]) -> Self:
        """Return a checked roster.

        Raises:
            FormatError: the lists do not match.
        """
        whole = (
            len(nodes) == len(keys) == len(nonces)
            and list(nodes) == sorted(set(nodes))
            and len(set(keys)) == len(keys)
        )
        if not whole or any(len(data) != KEY_BYTES for data in (*keys, *nonces)):
            raise FormatError(
                f"a roster of {len(nodes)} nodes, {len(keys)} keys and {len(nonces)} nonces",
                code="contents",
            )
        return cls(tuple(nodes), tuple(keys), tuple(nonces))

    def session(self, joint: bytes) -> bytes:
        """Return 16 bytes that name the run whose joint key has these bytes."""
        return hashlib.sha256(self.seed + joint).digest()[:16]

    @property
    def seed(self) -> bytes:
        """Return the seed of the uniform half of the joint key; no party alone determines it."""
        digest = hashlib.sha256(b"keywright joint key")
        for node, key, nonce in zip(self.nodes, self.keys, self.nonces, strict=True):
            digest.update(node.to_bytes(8, "little") + key + nonce)
        return digest.digest()

    def number(self, node: int) -> int:
        """Return the number of a node.

        Raises:
            ParameterError: it is not on the roster.
        """
        if node not in self.nodes:
            raise ParameterError(f"node {node} is not on the roster", what="node", value=node)
        return self.nodes.index(node) + 1


def _derive(own: X25519PrivateKey, other: bytes, salt: bytes | None, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, info).derive(own.exchange(X25519PublicKey.from_public_bytes(other)))


def mask_key(own: X25519PrivateKey, roster: Roster, number: int, other: int) -> bytes:
    """Return 32 bytes that only two parties know, equal for both."""
    info = b"keywright mask" + roster.seed + struct.pack("<II", *sorted((number, other)))
    return _derive(own, roster.keys[other - 1], None, info)


def _cipher(
    own: X25519PrivateKey, other: int, roster: Roster, sender: int, receiver: int, salt: bytes
) -> ChaCha20Poly1305:
    info = b"keywright share" + roster.seed + struct.pack("<II", sender, receiver)
    return ChaCha20Poly1305(_derive(own, roster.keys[other - 1], salt, info))


# Each key is used for one message: its derivation includes the roster, sender, receiver and a fresh salt.
_NONCE = bytes(12)
_SALT_BYTES = 32


def seal(
    own: X25519PrivateKey, roster: Roster, sender: int, receiver: int, share: bytes, half: bytes
) -> bytes:
    """Encrypt a share for one receiver, authenticated as from its sender and bound to the half of the joint
    key that the sender publishes. Returns a salt and the sealed bytes."""
    salt = os.urandom(_SALT_BYTES)
    return salt + _cipher(own, receiver, roster, sender, receiver, salt).encrypt(_NONCE, share, half)


def unseal(
    own: X25519PrivateKey, roster: Roster, sender: int, receiver: int, sealed: bytes, half: bytes
) -> bytes:
    """Decrypt the share that a sender sealed.

    Raises:
        FormatError: share or half was altered, or the share is for or from another party.
    """
    salt, share = sealed[:_SALT_BYTES], sealed[_SALT_BYTES:]
    try:
        return _cipher(own, sender, roster, sender, receiver, salt).decrypt(_NONCE, share, half)
    except InvalidTag:
        raise FormatError(
            f"the share or the public half of party {sender} was altered, or is not for this party",
            code="contents",
        ) from None


@dataclass(frozen=True)
class Claims:
    """The claims that a threshold update states before its ciphertexts.

    Attributes:
        session: 16 bytes that name the run and its keys.
        round: the round of the update.
        client: Flower's number of the node.
        weight: number of samples.
        count: number of values.
    """

    BYTES: ClassVar[int] = _CLAIMS.size

    session: bytes
    round: int
    client: int
    weight: int
    count: int

    def to_bytes(self) -> bytes:
        return _CLAIMS.pack(_MAGIC, self.session, self.round, self.client, self.weight, self.count)

    @classmethod
    def split(cls, data: bytes) -> tuple[Self, bytes]:
        """Split an update into its claims and ciphertexts.

        Raises:
            FormatError: the bytes do not begin with claims.
        """
        if len(data) < _CLAIMS.size or data[:8] != _MAGIC:
            raise FormatError(
                "the bytes are not a threshold update", code="foreign", found=data[:8], expected=_MAGIC
            )
        return cls(*_CLAIMS.unpack_from(data)[1:]), data[_CLAIMS.size :]

    def require(self, expected: "Claims") -> None:
        """Refuse claims that the sender may not make now.

        Raises:
            AggregationError: names the claim.
        """
        for what in ("round", "client", "count", "session", "weight"):
            result, due = getattr(self, what), getattr(expected, what)
            if result != due:
                raise AggregationError(
                    f"{what} of client {expected.client} is {result!r}, expected {due!r}",
                    code="number_of_values" if what == "count" else what,
                    client=expected.client,
                    found=result,
                    expected=due,
                )
