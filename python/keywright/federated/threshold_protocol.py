"""What clients and server of a threshold run exchange: the roster, sealed shares, and the claims of an
update."""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from keywright._core import ThresholdParameters
from keywright.errors import AggregationError, FormatError, ParameterError
from keywright.federated.encoding import Encoding

STATE = "keywright.threshold"
JOIN, DEAL, OPEN, DECRYPT = "keywright_join", "keywright_deal", "keywright_open", "keywright_decrypt"
KEY_BYTES = 32
_CLAIMS = struct.Struct("<8s16sIQII")
_MAGIC = b"KWtsum\x00\x01"


def threshold_parameters(encoding: Encoding, parties: int, threshold: int, count: int) -> ThresholdParameters:
    """The parameters that all derive from the declaration."""
    return ThresholdParameters(
        parties, threshold, max_inputs=encoding.max_clients, magnitude=encoding.magnitude, max_values=count
    )


@dataclass(frozen=True)
class Roster:
    """Who takes part, in the order of their numbers from 1: node numbers of Flower, exchange keys,
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
        """A roster, checked.

        Raises:
            FormatError: the lists do not fit together.
        """
        whole = (
            len(nodes) == len(keys) == len(nonces)
            and list(nodes) == sorted(set(nodes))
            and len(set(keys)) == len(keys)
        )
        if not whole or any(len(data) != KEY_BYTES for data in (*keys, *nonces)):
            raise FormatError(
                f"a roster of {len(nodes)} nodes, {len(keys)} keys and {len(nonces)} nonces",
                reason="contents",
            )
        return cls(tuple(nodes), tuple(keys), tuple(nonces))

    @property
    def seed(self) -> bytes:
        """Seed of the uniform half of the joint key: nobody alone decides it."""
        digest = hashlib.sha256(b"keywright joint key")
        for node, key, nonce in zip(self.nodes, self.keys, self.nonces, strict=True):
            digest.update(node.to_bytes(8, "little") + key + nonce)
        return digest.digest()

    def number(self, node: int) -> int:
        """The number of a node.

        Raises:
            ParameterError: it is not on the roster.
        """
        if node not in self.nodes:
            raise ParameterError(f"node {node} is not on the roster", what="node", value=node)
        return self.nodes.index(node) + 1


def _cipher(
    own: X25519PrivateKey, other: bytes, roster: Roster, sender: int, receiver: int
) -> ChaCha20Poly1305:
    info = b"keywright share" + roster.seed + struct.pack("<II", sender, receiver)
    shared = own.exchange(X25519PublicKey.from_public_bytes(other))
    return ChaCha20Poly1305(HKDF(SHA256(), 32, None, info).derive(shared))


# The key is used for one message: roster, sender and receiver are in its derivation.
_NONCE = bytes(12)


def seal(own: X25519PrivateKey, roster: Roster, sender: int, receiver: int, share: bytes) -> bytes:
    """A share for the eyes of one receiver, authenticated as of its sender."""
    return _cipher(own, roster.keys[receiver - 1], roster, sender, receiver).encrypt(_NONCE, share, None)


def unseal(own: X25519PrivateKey, roster: Roster, sender: int, receiver: int, sealed: bytes) -> bytes:
    """The share that a sender sealed.

    Raises:
        FormatError: it was altered, or sealed for or by somebody else.
    """
    try:
        return _cipher(own, roster.keys[sender - 1], roster, sender, receiver).decrypt(_NONCE, sealed, None)
    except InvalidTag:
        raise FormatError(
            f"the share of party {sender} was altered or is not for this party", reason="contents"
        ) from None


@dataclass(frozen=True)
class Claims:
    """What a threshold update says of itself, before its ciphertexts.

    Attributes:
        session: 16 bytes that name the run and its keys.
        round: the round it was made in.
        client: Flower's number of the node.
        weight: number of samples.
        count: number of values.
    """

    session: bytes
    round: int
    client: int
    weight: int
    count: int

    def to_bytes(self) -> bytes:
        """48 bytes."""
        return _CLAIMS.pack(_MAGIC, self.session, self.round, self.client, self.weight, self.count)

    @classmethod
    def split(cls, data: bytes) -> tuple[Self, bytes]:
        """The claims and the ciphertexts of an update.

        Raises:
            FormatError: the bytes do not begin with claims.
        """
        if len(data) < _CLAIMS.size or data[:8] != _MAGIC:
            raise FormatError(
                "the bytes are no threshold update", reason="foreign", found=data[:8], expected=_MAGIC
            )
        return cls(*_CLAIMS.unpack_from(data)[1:]), data[_CLAIMS.size :]

    def require(self, expected: "Claims") -> None:
        """Refuse claims that are not what the sender may make now.

        Raises:
            AggregationError: naming the claim.
        """
        for what in ("round", "client", "count", "session", "weight"):
            found, due = getattr(self, what), getattr(expected, what)
            if found != due:
                raise AggregationError(
                    f"{what} of client {expected.client} is {found!r}, expected {due!r}",
                    reason="number of values" if what == "count" else what,
                    client=expected.client,
                    found=found,
                    expected=due,
                )
