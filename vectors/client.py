"""Every byte that a thin client makes, by definition: keys and ciphertexts modulo one prime, in all forms.

Each line: log2(N), the prime, the scale, fraction bits, layout (0 coefficients, 1 real slots, 2 complex
slots), log2 of the slots, and for each object its length and CRC-32. The objects are: secret key, public key,
seeded ciphertext, compact seeded ciphertext (2 bits dropped) of a client whose entropy is the bytes 1 .. 32,
in this order; ciphertext and compact ciphertext (4 and 1 bits dropped) of an encryptor whose entropy is the
bytes 2 .. 33. Number `i` is `7919 i mod (2 max + 1) - max` with `max = 2^(fraction bits)`.
"""

import hashlib
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice

from chacha import block
from expander import residue
from files import finish
from gaussian import cumulative
from ntt import primitive_root

TABLE = cumulative("3.19", 63)
MAGIC = b"\x89KWRT\r\n\x1a"
PUBLIC_KEY, ENCRYPTION = 3 << 40, 4 << 40
SHIFT_ADD_30, SHIFT_ADD_60 = (1 << 30) - (1 << 18) + 1, (1 << 60) - (1 << 18) + 1
GENERIC_50 = (1 << 50) - 0x47FFFF


def words(first: int) -> Iterator[int]:
    """ChaCha20 in words of 64 bits, from the entropy `first .. first + 31`."""
    number, entropy = 0, bytes(range(first, first + 32))
    while True:
        out = block(entropy, [number & 0xFFFFFFFF, number >> 32, 0, 0], 20)
        yield from (low | high << 32 for low, high in zip(out[::2], out[1::2], strict=True))
        number += 1


def ternary(rng: Iterator[int], n: int) -> list[int]:
    """Uniform in -1, 0, 1."""
    return [(word * 3 >> 64) - 1 for word in islice(rng, n)]


def gaussian(rng: Iterator[int], n: int) -> list[int]:
    """Errors of deviation 3.19."""
    return [bisect_right(TABLE, word >> 1) * (-1 if word & 1 else 1) for word in islice(rng, n)]


def seed(rng: Iterator[int]) -> bytes:
    """Four words."""
    return b"".join(word.to_bytes(8, "little") for word in islice(rng, 4))


def reversed_bits(value: int, bits: int) -> int:
    """The bits of a number in the other order."""
    return int(format(value, f"0{bits}b")[::-1], 2) if bits else 0


class Ring:
    """Polynomials modulo X^N + 1 and one prime; evaluations by a recursive transform."""

    def __init__(self, log_n: int, q: int) -> None:
        self.log_n, self.n, self.q = log_n, 1 << log_n, q
        psi = primitive_root(log_n, q)
        self.powers = [1]
        for _ in range(2 * self.n - 1):
            self.powers.append(self.powers[-1] * psi % q)

    def values(self, coefficients: list[int], root: int) -> list[int]:
        """Values at the roots of X^n = psi^(n root), in bit-reversed order, for n coefficients."""
        n = len(coefficients)
        if n == 1:
            return [coefficients[0] % self.q]
        half, q = n // 2, self.q
        # X^n - c^2 = (X^half - c) (X^half + c) with c = psi^(half root).
        c = self.powers[half * root % (2 * self.n)]
        pairs = list(zip(coefficients[:half], coefficients[half:], strict=True))
        low = [(a + c * b) % q for a, b in pairs]
        high = [(a - c * b) % q for a, b in pairs]
        # -c = psi^(half (root + 2 N / n)): N is half the order of psi.
        return self.values(low, root) + self.values(high, root + 2 * self.n // n)

    def forward(self, coefficients: list[int]) -> list[int]:
        """Evaluations: entry i at psi^(2 brv(i) + 1)."""
        return self.values(coefficients, 1)

    def inverse(self, evaluations: list[int]) -> list[int]:
        """Coefficients: the transform of the transform, read backwards."""
        n, q, bits = self.n, self.q, self.log_n
        # sum_i v_i psi^(-(2 brv(i) + 1) k): a cyclic transform of v in natural order, by the negacyclic one
        # of v_j psi^j.
        natural = [evaluations[reversed_bits(i, bits)] for i in range(n)]
        twisted = [v * self.powers[(2 * n - i) % (2 * n)] % q for i, v in enumerate(natural)]
        sums = self.forward(twisted)
        # Entry brv(k) has sum_i natural_i psi^(2 k i).
        scale = pow(n, -1, q)
        cyclic = [sums[reversed_bits(k, bits)] for k in range(n)]
        return [cyclic[-k % n] * self.powers[(2 * n - k) % (2 * n)] * scale % q for k in range(n)]

    def uniform(self, seed: bytes, stream: int) -> list[int]:
        """The residues of a stream."""
        return [residue(seed, stream, 0, 0, self.q, i) for i in range(self.n)]


def pack(values: Iterable[int], width: int) -> bytes:
    """Residues as one little-endian bit string, filled up to a multiple of eight of them."""
    values = list(values)
    values += [0] * (-len(values) % 8)
    parts = []
    for start in range(0, len(values), 8):
        string = sum(value << (width * i) for i, value in enumerate(values[start : start + 8]))
        parts.append(string.to_bytes(width, "little"))
    return b"".join(parts)


def identity(packed: bytes) -> bytes:
    """That of a packed secret."""
    return hashlib.sha256(b"keywright key identity" + packed).digest()[:16]


def frame(kind: int, log_n: int, descriptor: bytes, body: bytes) -> bytes:
    """An object of docs/reference/format.md; the fingerprint of its parameters is made up."""
    head = MAGIC + (2).to_bytes(2, "little") + kind.to_bytes(2, "little")
    head += bytes([log_n, 1, 0, 1]) + bytes([0xA5] * 16)
    head += len(descriptor).to_bytes(4, "little") + len(body).to_bytes(8, "little") + descriptor
    return (
        head + zlib.crc32(head).to_bytes(4, "little") + body + zlib.crc32(head + body).to_bytes(4, "little")
    )


def double(value: int) -> bytes:
    """An integer as an IEEE double."""
    return struct.pack("<d", float(value))


def objects(log_n: int, q: int, scale: int, fraction_bits: int, form: int, log_slots: int) -> list[bytes]:
    """The six objects of a line."""
    ring, n, width = Ring(log_n, q), 1 << log_n, q.bit_length()
    capacity = n if form == 0 else 1 << (log_slots + form - 1)
    if form == 0:
        places = list(range(n))
    else:
        slots = [reversed_bits(j, log_slots) * (n >> (log_slots + 1)) for j in range(1 << log_slots)]
        places = [part * n // 2 + slot for part in range(form) for slot in slots]
    top = 1 << fraction_bits
    message = [0] * n
    for i, place in enumerate(places):
        number = 7919 * i % (2 * top + 1) - top
        message[place] = (number * scale + (top >> 1)) >> fraction_bits
    # The estimates are made up: 1, 2 and 3.
    public_message = bytes([1, 0]) + double(scale) + double(1) + double(3)
    seeded_message = bytes([1, 0]) + double(scale) + double(2) + double(3)

    def times(a: list[int], b: list[int]) -> list[int]:
        return [x * y % q for x, y in zip(a, b, strict=True)]

    def plus(a: list[int], b: list[int]) -> list[int]:
        return [(x + y) % q for x, y in zip(a, b, strict=True)]

    def minus(a: list[int], b: list[int]) -> list[int]:
        return [(x - y) % q for x, y in zip(a, b, strict=True)]

    owner = words(1)
    secret = ternary(owner, n)
    codes = [c & 3 for c in secret]
    packed = bytes(sum(code << (2 * i) for i, code in enumerate(codes[k : k + 4])) for k in range(0, n, 4))
    evaluations = ring.forward(secret)
    key = identity(packed)
    out = [frame(0x8001, log_n, key, packed)]

    public_seed = seed(owner)
    a = ring.uniform(public_seed, PUBLIC_KEY)
    b = minus(ring.forward(gaussian(owner, n)), times(a, evaluations))
    out.append(frame(0x0002, log_n, key + public_seed, pack(b, width)))

    own_seed = seed(owner)
    mask = times(ring.uniform(own_seed, ENCRYPTION), evaluations)
    noisy = [e + m for e, m in zip(gaussian(owner, n), message, strict=True)]
    c0 = minus(ring.forward(noisy), mask)
    out.append(frame(0x0104, log_n, key + bytes([0]) + own_seed + seeded_message, pack(c0, width)))

    layout = bytes([form, log_slots if form else 0])
    own_seed = seed(owner)
    mask = ring.inverse(times(ring.uniform(own_seed, ENCRYPTION), evaluations))
    noisy = [e + m for e, m in zip(gaussian(owner, n), message, strict=True)]
    c0 = minus(noisy, mask)
    body = pack((c0[place] >> 2 for place in places), width - 2)
    out.append(frame(0x0105, log_n, key + layout + bytes([2, 0, 1]) + own_seed + seeded_message, body))

    sender = words(2)
    u = ring.forward(ternary(sender, n))
    noisy = [e + m for e, m in zip(gaussian(sender, n), message, strict=True)]
    c0 = plus(ring.forward(noisy), times(b, u))
    c1 = plus(ring.forward(gaussian(sender, n)), times(a, u))
    body = pack(c0, width) + pack(c1, width)
    out.append(frame(0x0103, log_n, key + bytes([0, 2]) + public_message, body))

    u = ring.forward(ternary(sender, n))
    noisy = [e + m for e, m in zip(gaussian(sender, n), message, strict=True)]
    c0 = plus(ring.inverse(times(b, u)), noisy)
    c1 = plus(ring.inverse(times(a, u)), gaussian(sender, n))
    body = pack((c0[place] >> 4 for place in places), width - 4) + pack((c >> 1 for c in c1), width - 1)
    out.append(frame(0x0105, log_n, key + layout + bytes([4, 1, 0]) + public_message, body))
    assert len(places) == capacity
    return out


CASES = [
    (10, SHIFT_ADD_30, 1 << 20, 8, 2, 9),
    (10, SHIFT_ADD_60, 1 << 54, 40, 0, 0),
    (11, SHIFT_ADD_60, (1 << 50) + 12345, 30, 1, 4),
    (12, GENERIC_50, (1 << 44) - 7, 20, 2, 1),
    (14, SHIFT_ADD_30, 1 << 20, 8, 1, 13),
    (16, SHIFT_ADD_30, 1 << 20, 8, 2, 15),
]


def main() -> None:
    """Writes or checks the file."""
    lines = []
    for case in CASES:
        fields = [*case]
        for data in objects(*case):
            fields += [len(data), zlib.crc32(data)]
        lines.append(" ".join(map(str, fields)) + "\n")
    finish(__file__, "".join(lines))


if __name__ == "__main__":
    main()
