"""What a browser's client makes, by definition: the digests of `browser.txt`.

The first three lines of that file are what a server hands out: its parameters, the client's, the head of the
key set. From these bytes, and a client whose entropy is the bytes 1 .. 32, this program computes the digests
of the other three: the secret, the set of all keys, a ciphertext. A Rust test made the inputs.
"""

import hashlib
import hmac
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from chacha import block
from client import ENCRYPTION, MAGIC, Ring, double, gaussian, identity, pack, seed, ternary
from expander import residue
from files import finish


def words(entropy: bytes) -> Iterator[int]:
    """ChaCha20 in words of 64 bits."""
    number = 0
    while True:
        out = block(entropy, [number & 0xFFFFFFFF, number >> 32, 0, 0], 20)
        yield from (low | high << 32 for low, high in zip(out[::2], out[1::2], strict=True))
        number += 1


def numbers(*values: int) -> bytes:
    """Words of 64 bits."""
    return struct.pack(f"<{len(values)}Q", *values)


def sized(data: bytes) -> bytes:
    """Bytes behind their length."""
    return numbers(len(data)) + data


def listed(values: list[int]) -> bytes:
    """Words behind their number."""
    return numbers(len(values), *values)


def mac(key: bytes, *parts: bytes) -> bytes:
    """HMAC-SHA-256."""
    return hmac.new(key, b"".join(parts), "sha256").digest()


def frame(kind: int, identity: bytes, descriptor: bytes, body: bytes) -> bytes:
    """An object of docs/reference/format.md."""
    head = MAGIC + struct.pack("<HH", 2, kind) + identity
    head += struct.pack("<IQ", len(descriptor), len(body)) + descriptor
    both = [zlib.crc32(head), zlib.crc32(head + body)]
    return head + struct.pack("<I", both[0]) + body + struct.pack("<I", both[1])


class Keys:
    """The keys of a session.

    Attributes:
        q, p: primes.
        identity: of objects.
        key_identity: of the secret.
    """

    def __init__(self, parameters: bytes, secret: list[int], packed: bytes, session: bytes) -> None:
        log_n, insecure, weight, q_count, p_count = struct.unpack_from("<BBIBB", parameters, 44)
        primes = list(struct.unpack_from(f"<{q_count + p_count}Q", parameters, 52))
        self.q, self.p, self.identity = primes[:q_count], primes[q_count:], parameters[12:32]
        self.n, self.log_n, self.secret = 1 << log_n, log_n, secret
        self.key_identity = identity(packed)
        self.rings = [Ring(log_n, prime) for prime in primes]
        self.root = mac(
            session,
            sized(b"keywright session 1") + sized(self.identity) + numbers(log_n, insecure, weight),
            listed(self.q) + listed(self.p) + sized(packed),
        )

    def ephemeral(self, weight: int) -> list[int]:
        """The ephemeral secret of a weight: signs are sorted by the words that they come with."""
        rng = words(mac(self.root, sized(b"ephemeral secret"), numbers(weight)))
        drawn = list(islice(rng, self.n))
        tagged = [(w >> 3, (w >> 1 & 2) - 1 if i < weight else 0) for i, w in enumerate(drawn)]
        return [value for _, value in sorted(tagged)]

    def mapped(self, secret: list[int], element: int) -> list[int]:
        """The secret of X^(1/element)."""
        inverse, out = pow(element, -1, 2 * self.n), [0] * self.n
        for i, coefficient in enumerate(secret):
            turns, place = divmod(i * inverse % (2 * self.n), self.n)
            out[place] = -coefficient if turns else coefficient
        return out

    def key(self, spec: bytes) -> bytes:
        """The key of a spec, as an object."""
        tag, value, level, alpha, seeded, count = struct.unpack_from("<BQBBBB", spec)
        special = list(spec[13 : 13 + count])
        # One special prime as wide as any other: every prime is a digit. A key that raises has one digit.
        assert (alpha, count) == (1, 1)
        digits = [(0, level + 1)] if tag == 4 else [(i, i + 1) for i in range(level + 1)]
        question = numbers(tag, value, 0, level, alpha, seeded)
        ends = [end for digit in digits for end in digit]
        rng = words(mac(self.root, sized(b"switching key"), question + listed(special) + listed(ends)))
        own_seed = seed(rng)
        source = target = self.secret
        stream = 0
        if tag == 0:
            target, stream = self.mapped(self.secret, value), value
        elif tag == 1:
            stream = 1 << 40
        elif tag == 3:
            target, stream = self.ephemeral(value), 5 << 40 | value
        else:
            source, stream = self.ephemeral(value), 6 << 40 | value
        body = b""
        for row, (start, end) in enumerate(digits):
            error = gaussian(rng, self.n)
            for prime in [*range(level + 1), *special]:
                ring = self.rings[prime]
                limb = self.limb(ring, error, target, [own_seed, stream, row, prime])
                if start <= prime < end:
                    product = self.rings[special[0]].q
                    s = ring.forward(source)
                    message = [x * x for x in s] if tag == 1 else s
                    limb = [(b + product * m) % ring.q for b, m in zip(limb, message, strict=True)]
                body += pack(limb, ring.q.bit_length())
        return frame(0x0003, self.identity, self.key_identity + spec + bytes([len(digits)]) + own_seed, body)

    def limb(self, ring: Ring, error: list[int], target: list[int], stream: list) -> list[int]:
        """`e - a t`."""
        a = [residue(*stream, ring.q, i) for i in range(self.n)]
        parts = zip(ring.forward(error), a, ring.forward(target), strict=True)
        return [(e - u * t) % ring.q for e, u, t in parts]


def specs(head: bytes) -> list[bytes]:
    """The specs of a key set's directory."""
    (count,) = struct.unpack_from("<I", head, 44)
    place, out = 48, []
    for _ in range(count):
        end = place + 13 + head[place + 12]
        out.append(head[place:end])
        # Behind it the length of the key.
        place = end + 8
    return out


def main() -> None:
    """Checks the file."""
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines()
    given = lines[:3]
    parameters, client, head = (bytes.fromhex(line.split()[1]) for line in given)
    rng = words(bytes(range(1, 33)))
    n = 1 << parameters[44]
    secret = ternary(rng, n)
    codes = [c & 3 for c in secret]
    packed = bytes(sum(code << (2 * i) for i, code in enumerate(codes[k : k + 4])) for k in range(0, n, 4))
    stored = frame(0x8001, parameters[12:32], identity(packed), packed)

    keys = Keys(parameters, secret, packed, seed(rng))
    whole = head + b"".join(keys.key(spec) for spec in specs(head))
    whole += struct.pack("<I", zlib.crc32(head[:-4] + whole[len(head) :]))

    # The client's parameters: fraction bits, scale, and the estimate of a ciphertext made with the secret.
    fraction_bits, (scale,) = client[47], struct.unpack_from("<Q", client, 60)
    estimate = client[84:92] + client[92:100]
    own_seed = seed(rng)
    values = [(i * 7919 % 20001 - 10000) << 10 for i in range(n)]
    half = 1 << (fraction_bits - 1)
    noisy = [
        e + (value * scale + half >> fraction_bits) for e, value in zip(gaussian(rng, n), values, strict=True)
    ]
    ring = keys.rings[0]
    mask = zip(ring.forward(noisy), ring.uniform(own_seed, ENCRYPTION), ring.forward(secret), strict=True)
    body = pack(((m - a * s) % ring.q for m, a, s in mask), ring.q.bit_length())
    descriptor = bytes([0]) + own_seed + bytes([1, 0]) + double(scale) + estimate
    ciphertext = frame(0x0104, parameters[12:32], identity(packed) + descriptor, body)

    made = {"secret": stored, "keys": whole, "ciphertext": ciphertext}
    digests = [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in made.items()]
    finish(__file__, "".join(line + "\n" for line in [*given, *digests]))


if __name__ == "__main__":
    main()
