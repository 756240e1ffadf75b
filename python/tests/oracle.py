"""Reads keys and ciphertexts as docs/reference/format.md describes and computes their errors with the secret
key.

Primes are below 2^32: NumPy multiplies residues without overflow.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Signed = NDArray[np.int64]

HEADER = struct.Struct("<8sHHBBBB16sIQ")
# Kinds whose descriptor begins with the identity of a key.
KEYED = {2, 3, 5, 6, 0x103, 0x104, 0x105, 0x203, 0x204, 0x8001}
PUBLIC_KEY_STREAM, ENCRYPTION_STREAM, UPDATE_STREAM = 3 << 40, 4 << 40, 7 << 40
B = 1 << 20
BOUND = 64
"""No error is larger: 20 deviations."""

# ---- residues ----


@cache
def powers(n: int, q: int) -> Words:
    """All powers of the smallest `x^((q-1)/2N)` whose order is `2N`."""
    psi = next(psi for x in range(2, q) if pow(psi := pow(x, (q - 1) // (2 * n), q), n, q) == q - 1)
    return np.array([pow(psi, k, q) for k in range(2 * n)], np.uint64)


@cache
def places(n: int) -> Signed:
    """Entry `i` of an evaluation form is the value at psi to the power of `places(n)[i]`."""
    bits = n.bit_length() - 1
    return np.array([2 * int(f"{i:0{bits}b}"[::-1], 2) + 1 for i in range(n)])


@cache
def table(n: int, q: int) -> Signed:
    """`psi^(p j)`: a row for each coefficient `j`, a column for each place `p`."""
    return powers(n, q)[np.outer(np.arange(n), places(n)) % (2 * n)].astype(np.int64)


def evaluations(coefficients: Signed, q: int) -> Words:
    """Evaluation form of a polynomial of small coefficients."""
    n = len(coefficients)
    sums = np.einsum("j,jp->p", coefficients, table(n, q))  # six times faster than `@` on integers
    residues: Words = (sums % q).astype(np.uint64)
    return residues


def coefficients(limb: Words, q: int) -> Signed:
    """Coefficients of an evaluation form, the absolutely smallest."""
    n = len(limb)
    high, low = ((table(n, q) @ part.astype(np.int64)) % q for part in (limb >> 16, limb & 0xFFFF))
    # The table has psi^(p j) where the sum has psi^(-p j): X^j for X^-j = -X^(N-j).
    sums = ((((high << 16) + low) % q).astype(np.uint64) * pow(n, -1, q) % q).astype(np.int64)
    return centred(-np.roll(sums[::-1], 1) * np.where(np.arange(n) == 0, -1, 1) % q, q)


def centred(residues: Words | Signed, q: int) -> Signed:
    signed = residues.astype(np.int64)
    return np.where(signed > q // 2, signed - q, signed)


def automorphism(polynomial: Signed, element: int) -> Signed:
    """`p(X^element)`."""
    n = len(polynomial)
    target = np.arange(n) * element % (2 * n)
    out = np.zeros_like(polynomial)
    out[target % n] = np.where(target < n, polynomial, -polynomial)
    return out


def uniform(seed: bytes, stream: int, digit: int, limb: int, q: int, n: int) -> Words:
    """Expand a seed as docs/reference/format.md describes."""
    out, missing = np.zeros(n, np.uint64), np.ones(n, bool)
    attempt, mask = 0, (1 << q.bit_length()) - 1
    while missing.any():
        blocks = chacha(seed, stream, digit << 24 | attempt << 16 | limb, n // 8)
        halves = blocks.reshape(-1, 8, 2, 16).transpose(0, 3, 1, 2).reshape(n, 2).astype(np.uint64)
        words = (halves[:, 0] | halves[:, 1] << 32) & mask
        taken = missing & (words < q)
        out[taken], missing = words[taken], missing & ~taken
        attempt += 1
    return out


def chacha(seed: bytes, stream: int, last: int, count: int) -> NDArray[np.uint32]:
    """Blocks of ChaCha8, one a row."""
    key = np.frombuffer(b"expand 32-byte k" + seed, "<u4")
    start = np.empty((16, count), np.uint32)
    start[:12] = key[:, None]
    start[12], start[13], start[14], start[15] = np.arange(count), stream & 0xFFFFFFFF, stream >> 32, last
    state = start.copy()
    rounds = [[(k, 4 + k, 8 + k, 12 + k) for k in range(4)]]
    rounds.append([(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4) for k in range(4)])
    for quarters in rounds * 4:
        for a, b, c, d in quarters:
            for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                state[x] += state[y]
                mixed = state[z] ^ state[x]
                state[z] = mixed << bits | mixed >> (32 - bits)
    return (state + start).T


# ---- objects ----


@dataclass
class Object:
    """A decoded frame. `take` and `limb` consume the next bytes."""

    kind: int
    log_n: int
    descriptor: bytes
    body: bytes
    rest: bytes

    @classmethod
    def read(cls, data: bytes) -> Self:
        _, _, kind, log_n, *_, fields, length = HEADER.unpack_from(data)
        start, end = HEADER.size + fields + 4, HEADER.size + fields + 4 + length
        first = HEADER.size + (16 if kind in KEYED else 0)
        return cls(kind, log_n, data[first : start - 4], data[start:end], data[end + 4 :])

    @property
    def n(self) -> int:
        return 1 << self.log_n

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.descriptor)
        self.descriptor = self.descriptor[struct.calcsize("<" + layout) :]
        return values

    def limb(self, q: int, count: int | None = None, dropped: int = 0) -> Words:
        """Residues modulo `q`, or so many numbers without their low bits."""
        count, width = self.n if count is None else count, q.bit_length() - dropped
        data, self.body = self.body[: count * width // 8], self.body[count * width // 8 :]
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(count, width)
        return bits.astype(np.uint64) @ (np.uint64(1) << np.arange(width, dtype=np.uint64))


def known_public_key(public_key: bytes, q: list[int]) -> bytes:
    """Return a public key whose `b` is the constant `B`: ciphertexts encrypted with it reveal all of their
    randomness."""
    read = Object.read(public_key)
    head = public_key[: HEADER.size + 16 + 36]
    bits = [np.tile(B >> np.arange(p.bit_length()) & 1, read.n).astype(np.uint8) for p in q]
    body = b"".join(np.packbits(limb, bitorder="little").tobytes() for limb in bits)
    assert len(body) == len(read.body)
    return head + body + struct.pack("<I", zlib.crc32(body, zlib.crc32(head[:-4])))


@dataclass
class Oracle:
    """Computes the random values of an object.

    Args:
        q: the ciphertext primes.
        p: the special primes.
        secret: coefficients.
        seed: seed of the `known_public_key` with which ciphertexts were made.
    """

    q: list[int]
    p: list[int]
    secret: Signed
    seed: bytes = b""

    @classmethod
    def of(cls, secret: bytes, q: list[int], p: list[int], public_key: bytes = b"") -> Self:
        """Create it with the coefficients of a stored secret key, and the seed of a public key."""
        codes = np.frombuffer(Object.read(secret).body, np.uint8)[:, None] >> np.array([0, 2, 4, 6]) & 3
        seed = Object.read(public_key).descriptor if public_key else b""
        return cls(q, p, (codes.reshape(-1).astype(np.int64) ^ 2) - 2, seed)

    def drawn(self, data: bytes) -> list[bytes]:
        """Return what no other object may share: seeds, errors, masks, secrets. Messages are 0."""
        read = Object.read(data)
        match read.kind:
            case 0x8001:
                return [read.body]
            case 0x4:
                return [one for key in split(read.body) for one in self.drawn(key)]
            case 0x8:
                (extra,) = read.take("B")
                chain = Oracle([*self.p, *self.q], list(read.take(f"{extra}Q")), self.secret)
                return [one for key in split(read.body) for one in chain.drawn(key)]
            case 0x2:
                (seed,) = read.take("32s")
                return [seed, self.error(read.limb(self.q[0]), seed, PUBLIC_KEY_STREAM)]
            case 0x3:
                return self.switching_key(read)
            case 0x103 | 0x203:
                level, _ = read.take("BB")
                c0, *_, c1 = [read.limb(q) for q in [*self.q[: level + 1], self.q[0]]]
                return self.unmask(coefficients(c0, self.q[0]), coefficients(c1, self.q[0]))
            case 0x104 | 0x204:
                _, seed = read.take("B32s")
                return [seed, self.error(read.limb(self.q[0]), seed, ENCRYPTION_STREAM)]
            case 0x105:
                return self.compact(read)
            case 0x301:
                return self.update(read)
        raise AssertionError(f"kind {read.kind:x}")

    def error(self, b: Words, seed: bytes, stream: int) -> bytes:
        """`b + a s`."""
        q = self.q[0]
        product = uniform(seed, stream, 0, 0, q, len(b)) * evaluations(self.secret, q) % q
        return small(coefficients((b + product) % q, q))

    def unmask(self, c0: Signed, c1: Signed) -> list[bytes]:
        """Mask and errors of `(B u + e_0, a u + e_1)`."""
        q, u = self.q[0], np.rint(c0 / B).astype(np.int64)
        assert set(np.unique(u)) == {-1, 0, 1}, "no ternary mask"
        a = uniform(self.seed, PUBLIC_KEY_STREAM, 0, 0, q, len(u))
        product = coefficients(a * evaluations(u, q) % q, q)
        return [u.astype(np.int8).tobytes(), small(c0 - B * u), small(centred((c1 - product) % q, q))]

    def compact(self, read: Object) -> list[bytes]:
        """Nothing dropped, all slots."""
        q, n = self.q[0], read.n
        _, bits, *dropped, seeded = read.take("BBBBB")
        assert (1 << bits, dropped) == (n // 2, [0, 0]), "not all coefficients"
        order = places(n // 2) // 2
        c0 = np.empty(n, np.uint64)
        c0[np.concatenate([order, order + n // 2])] = read.limb(q)
        if not seeded:
            return self.unmask(centred(c0, q), centred(read.limb(q), q))
        (seed,) = read.take("32s")
        a = uniform(seed, ENCRYPTION_STREAM, 0, 0, q, n)
        product = coefficients(a * evaluations(self.secret, q) % q, q)
        return [seed, small(centred((centred(c0, q) + product) % q, q))]

    def switching_key(self, read: Object) -> list[bytes]:
        """At the last special prime, where `P` is 0, a row is `-a_j t + e_j`."""
        primes = [*self.q, *self.p]
        tag, element, level, _, seeded, count = read.take("BQBBBB")
        indices = [*range(level + 1), *read.take(f"{count}B")]
        (digits,), at = read.take("B"), indices[-1]
        seed = read.take("32s")[0] if seeded else b""
        target = self.secret
        if tag == 0:
            target = automorphism(target, pow(element, -1, 2 * read.n))
        stream = {0: element, 1: 1 << 40, 3: 5 << 40 | element, 4: 6 << 40 | element}[tag]
        out = [seed] if seeded else []
        for digit in range(digits):
            first, *_, b = [read.limb(primes[i]) for i in indices]
            if seeded:
                a = uniform(seed, stream, digit, at, primes[at], read.n)
            else:
                *_, a = [read.limb(primes[i]) for i in indices]
                out.append(a.tobytes())
            if tag == 3:
                continue  # to an unknown secret
            product = a * evaluations(target, primes[at]) % primes[at]
            error = small(coefficients((b + product) % primes[at], primes[at]))
            out.append(error)
            if tag == 4 and digit == 0:
                out.append(
                    self.source(
                        first, seed, stream, error, math.prod(primes[i] for i in indices[level + 1 :])
                    )
                )
        return out

    def source(self, b: Words, seed: bytes, stream: int, error: bytes, p: int) -> bytes:
        """The ephemeral secret `s'` of `b = -a s + e + P s'`."""
        q = self.q[0]
        product = uniform(seed, stream, 0, 0, q, len(b)) * evaluations(self.secret, q) % q
        scaled = coefficients((b + product) % q, q) - np.frombuffer(error, np.int8)
        residue = centred(scaled * pow(p, -1, q) % q, q)
        assert set(np.unique(residue)) == {-1, 0, 1}, "no ternary secret"
        return residue.astype(np.int8).tobytes()

    def update(self, read: Object) -> list[bytes]:
        """Of N zeros: the planes are coefficients of `-a s + e`."""
        (_, magnitude), (session,), (round_, count) = read.take("IQ"), read.take("16s"), read.take("II")
        client, weight, seed = read.take("QI32s")
        q, n, width = self.q[0], read.n, len(read.body) // count
        assert count == n
        parts = struct.pack("<IQII", round_, client, weight, count)
        bound = hashlib.sha256(b"keywright encrypted update" + session + parts + seed).digest()
        words = np.frombuffer(read.body[: 4 * n], "<u4").astype(np.uint64)
        assert (width, magnitude > 0) == (4, True)
        a = uniform(bound, UPDATE_STREAM, 0, 0, q, n)
        product = coefficients(a * evaluations(self.secret, q) % q, q)
        phase = centred((words.astype(np.int64) + product) % q, q)
        return [seed, small(phase)]


def split(body: bytes) -> list[bytes]:
    """Return consecutive objects."""
    out = []
    while body:
        rest = Object.read(body).rest
        out.append(body[: len(body) - len(rest)])
        body = rest
    return out


def small(error: Signed) -> bytes:
    """Return the coefficients of an error, which are small and not all 0."""
    assert 0 < np.abs(error).max() <= BOUND, "no error of an encryption"
    return error.astype(np.int8).tobytes()
