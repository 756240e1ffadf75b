"""A second reader of threshold objects, written from docs/reference/format.md and
docs/reference/conventions.md.

It reads their residues, the transform, and numbers modulo Q.
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from itertools import count, islice
from typing import Self

from keywright.federated import ThresholdParameters

CIPHERTEXT, POLYNOMIAL = 0x0005, 0x0007
MAGIC = b"\x89KWRT\r\n\x1a"
HEADER = struct.Struct("<8sHHBBBB16sIQ")

Limb = list[int]
Poly = tuple[Limb, ...]


def is_prime(n: int) -> bool:
    """Miller and Rabin, with bases that decide below 2^64."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n < 2 or any(n % p == 0 for p in bases):
        return n in bases
    twos = ((n - 1) & (1 - n)).bit_length() - 1
    odd = (n - 1) >> twos
    return all(pow(a, odd, n) == 1 or any(pow(a, odd << i, n) == n - 1 for i in range(twos)) for a in bases)


def largest_primes(log_n: int, bits: int) -> Iterable[int]:
    """The primes below `2^bits` that are 1 modulo `2N`, downwards."""
    step = 2 << log_n
    return filter(is_prime, ((1 << bits) - k * step + 1 for k in count(1)))


class Transform:
    """Evaluations modulo a prime in the order of docs/reference/conventions.md.

    Args:
        log_n: log2 of the ring degree.
        prime: 1 modulo `2N`.
    """

    def __init__(self, log_n: int, prime: int) -> None:
        self.prime = prime
        self.n = n = 1 << log_n
        self.order = [int(format(i, f"0{log_n}b")[::-1], 2) for i in range(n)]
        candidates = (pow(x, (prime - 1) >> (log_n + 1), prime) for x in count(2))
        self.root = next(psi for psi in candidates if pow(psi, n, prime) == prime - 1)
        powers = [1]
        for _ in range(2 * n - 1):
            powers.append(powers[-1] * self.root % prime)
        self._forward = [powers[i] for i in self.order]
        self._inverse = [powers[-i] for i in self.order]

    def forward(self, coefficients: Sequence[int]) -> Limb:
        """Entry `i` is the value at `psi^(2 brv(i) + 1)`."""
        q, values, half, blocks = self.prime, list(coefficients), self.n // 2, 1
        while half:
            for block in range(blocks):
                twiddle, start = self._forward[blocks + block], 2 * block * half
                low = values[start : start + half]
                high = [x * twiddle % q for x in values[start + half : start + 2 * half]]
                values[start : start + half] = [(x + y) % q for x, y in zip(low, high, strict=True)]
                values[start + half : start + 2 * half] = [
                    (x - y) % q for x, y in zip(low, high, strict=True)
                ]
            half, blocks = half // 2, 2 * blocks
        return values

    def inverse(self, evaluations: Sequence[int]) -> Limb:
        q, values, half, blocks = self.prime, list(evaluations), 1, self.n // 2
        while blocks:
            for block in range(blocks):
                twiddle, start = self._inverse[blocks + block], 2 * block * half
                low, high = values[start : start + half], values[start + half : start + 2 * half]
                values[start : start + half] = [(x + y) % q for x, y in zip(low, high, strict=True)]
                values[start + half : start + 2 * half] = [
                    (x - y) * twiddle % q for x, y in zip(low, high, strict=True)
                ]
            half, blocks = 2 * half, blocks // 2
        scale = pow(self.n, -1, q)
        return [value * scale % q for value in values]


class Ring:
    """The ring of threshold sums: two primes of one width.

    Args:
        log_n: log2 of the ring degree.
        primes: the two.
    """

    def __init__(self, log_n: int, primes: Sequence[int]) -> None:
        self.log_n, self.n = log_n, 1 << log_n
        self.primes = tuple(primes)
        self.modulus = math.prod(primes)
        self.transforms = [Transform(log_n, prime) for prime in primes]
        first, second = self.primes
        self._garner = pow(first, -1, second)
        encoding = struct.pack("<BBIBB2Q", log_n, 0, 0, 2, 0, *primes)
        self.fingerprint = hashlib.sha256(b"keywright parameters" + encoding).digest()[:16]

    @classmethod
    def of(cls, parameters: ThresholdParameters) -> Self:
        """The largest primes of their width, of which `log_q` says which it is."""
        width = math.ceil(parameters.log_q / 2)
        return cls(parameters.log_n, list(islice(largest_primes(parameters.log_n, width), 2)))

    def coefficients(self, poly: Poly) -> list[int]:
        """The coefficients modulo Q of a polynomial in evaluation form."""
        first, second = (t.inverse(limb) for t, limb in zip(self.transforms, poly, strict=True))
        p, q = self.primes
        return [x + p * ((y - x) * self._garner % q) for x, y in zip(first, second, strict=True)]

    def evaluations(self, coefficients: Sequence[int]) -> Poly:
        """The inverse of `coefficients`."""
        return tuple(t.forward([x % t.prime for x in coefficients]) for t in self.transforms)

    def add(self, *polys: Poly) -> Poly:
        return tuple(
            [sum(values) % q for values in zip(*limbs, strict=True)]
            for q, *limbs in zip(self.primes, *polys, strict=True)
        )

    def multiply(self, left: Poly, right: Poly) -> Poly:
        return tuple(
            [x * y % q for x, y in zip(a, b, strict=True)]
            for q, a, b in zip(self.primes, left, right, strict=True)
        )

    def divide(self, left: Poly, right: Poly) -> Poly:
        """Divide, if every evaluation of `right` is invertible."""
        return tuple(
            [x * pow(y, -1, q) % q for x, y in zip(a, b, strict=True)]
            for q, a, b in zip(self.primes, left, right, strict=True)
        )

    def scale(self, poly: Poly, factor: int) -> Poly:
        return tuple([x * factor % q for x in limb] for q, limb in zip(self.primes, poly, strict=True))

    def polynomials(self, data: bytes) -> list[list[Poly]]:
        """Return the objects in a sequence of ciphertexts or of polynomials: the polynomials of each, in
        evaluation form. Checksums, fingerprint and lengths are checked."""
        objects = []
        while data:
            magic, version, kind, log_n, *counts, fingerprint, described, body_bytes = HEADER.unpack_from(
                data
            )
            assert (magic, version, log_n, *counts) == (MAGIC, 2, self.log_n, 2, 0, 0)
            assert fingerprint == self.fingerprint
            end = HEADER.size + described
            header, descriptor = data[:end], data[HEADER.size : end]
            body = data[end + 4 : end + 4 + body_bytes]
            checksums = zlib.crc32(header), zlib.crc32(body, zlib.crc32(header))
            after = end + 4 + body_bytes
            assert (data[end : end + 4], data[after : after + 4]) == tuple(
                checksum.to_bytes(4, "little") for checksum in checksums
            )
            if kind == CIPHERTEXT:
                # The key is a joint one, which has no identity.
                assert descriptor[:16] == bytes(16)
                level, polys = descriptor[16:]
                assert level == 1
            else:
                assert (kind, descriptor) == (POLYNOMIAL, bytes([1, 2]))
                polys = 1
            objects.append(self._unpack(body, polys))
            data = data[after + 4 :]
        return objects

    def _unpack(self, body: bytes, polys: int) -> list[Poly]:
        limbs = []
        for prime in self.primes * polys:
            width = prime.bit_length()
            packed, body = body[: self.n * width // 8], body[self.n * width // 8 :]
            groups = (int.from_bytes(packed[i : i + width], "little") for i in range(0, len(packed), width))
            mask = (1 << width) - 1
            limb = [group >> (width * i) & mask for group in groups for i in range(8)]
            assert len(limb) == self.n
            assert max(limb) < prime
            limbs.append(limb)
        assert not body
        return [tuple(limbs[i : i + len(self.primes)]) for i in range(0, len(limbs), len(self.primes))]
