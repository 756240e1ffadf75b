"""Read every file of v2/ from docs/reference/format.md alone, compare contents with definitions.

Standard library only, nothing of Keywright. The definition of the contents is in README.md beside this file.
"""

import functools
import hashlib
import struct
import sys
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

N = 1024
FILLER = bytes([0x5A]) * 32
HALF = bytes([0xA5]) * 32
KEY = bytes([0xC3]) * 16
KEYED = {2, 3, 5, 6, 0x103, 0x104, 0x105, 0x203, 0x204, 0x401, 0x8001}
PUBLIC_KEY_STREAM, ENCRYPTION_STREAM = 3 << 40, 4 << 40
MASK = 0xFFFFFFFF
VERSION = 2
FIXED = struct.Struct("<8sHHBBBB16sIQ")

# ---- the expander ----


def quarter_round(s: list[int], a: int, b: int, c: int, d: int) -> None:
    """ChaCha's quarter round (RFC 8439, section 2.1)."""
    for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & MASK
        mixed = s[z] ^ s[x]
        s[z] = (mixed << bits | mixed >> (32 - bits)) & MASK


def block(seed: bytes, number: int, object_: int, digit: int, attempt: int, limb: int) -> list[int]:
    """One ChaCha8 block."""
    last = digit << 24 | attempt << 16 | limb
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", seed)]
    start += [number, object_ & MASK, object_ >> 32, last]
    state = list(start)
    for _ in range(4):
        for k in range(4):
            quarter_round(state, k, 4 + k, 8 + k, 12 + k)
        for k in range(4):
            quarter_round(state, k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    return [(x + y) & MASK for x, y in zip(state, start, strict=True)]


@functools.cache
def uniform(seed: bytes, object_: int, digit: int, limb: int, q: int) -> list[int]:
    """N residues modulo q: rejection sampling, position by position."""
    mask = (1 << q.bit_length()) - 1
    residues: list[int | None] = [None] * N
    for attempt in range(256):
        missing = [i for i, value in enumerate(residues) if value is None]
        if not missing:
            break
        blocks: dict[int, list[int]] = {}
        for i in missing:
            chunk, position = divmod(i, 128)
            word, pair = divmod(position, 8)
            halves = []
            for number in (16 * chunk + 2 * pair, 16 * chunk + 2 * pair + 1):
                if number not in blocks:
                    blocks[number] = block(seed, number, object_, digit, attempt, limb)
                halves.append(blocks[number][word])
            candidate = (halves[0] | halves[1] << 32) & mask
            if candidate < q:
                residues[i] = candidate
    return [value for value in residues if value is not None]


# ---- the format ----


class Fields:
    """Little-endian fields, taken in order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str) -> list:
        """The next fields of a struct layout."""
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return list(values)

    def end(self) -> None:
        """All of the data was taken."""
        assert self.at == len(self.data), "left-over bytes"


@dataclass
class Object:
    """One decoded frame."""

    kind: int
    summary: tuple[int, ...]
    fingerprint: bytes
    key: bytes | None
    descriptor: Fields
    body: bytes


def frame(data: bytes) -> tuple[Object, bytes]:
    """One object and what follows it."""
    magic, version, kind, *summary, fingerprint, descriptor_len, body_len = FIXED.unpack_from(data)
    assert magic == b"\x89KWRT\r\n\x1a"
    assert version == VERSION
    end = FIXED.size + descriptor_len
    assert struct.unpack_from("<I", data, end)[0] == zlib.crc32(data[:end]), "header checksum"
    body = data[end + 4 : end + 4 + body_len]
    (stored,) = struct.unpack_from("<I", data, end + 4 + body_len)
    assert stored == zlib.crc32(body, zlib.crc32(data[:end])), "body checksum"
    descriptor = Fields(data[FIXED.size : end])
    key = bytes(descriptor.take("16B")) if kind in KEYED else None
    return Object(kind, tuple(summary), fingerprint, key, descriptor, body), data[end + 8 + body_len :]


@dataclass
class Literal:
    """Decoded parameters."""

    log_n: int
    security: int
    weight: int
    q: list[int]
    p: list[int]

    @property
    def primes(self) -> list[int]:
        """Ciphertext primes, then special primes."""
        return self.q + self.p


def literal(fields: Fields) -> tuple[Literal, bytes]:
    """Parameters and their fingerprint."""
    start = fields.at
    log_n, security, weight, q_count, p_count = fields.take("BBIBB")
    decoded = Literal(log_n, security, weight, fields.take(f"{q_count}Q"), fields.take(f"{p_count}Q"))
    encoding = fields.data[start : fields.at]
    return decoded, hashlib.sha256(b"keywright parameters" + encoding).digest()[:16]


def is_prime(n: int) -> bool:
    """Miller and Rabin, with bases that decide below 2^64."""
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, d, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(s - 1)):
            return False
    return True


class Body:
    """Packed limbs, taken in order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def limb(self, q: int) -> list[int]:
        """N residues modulo q."""
        width = q.bit_length()
        size = N * width // 8
        bits = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        residues = [bits >> (width * i) & ((1 << width) - 1) for i in range(N)]
        assert max(residues) < q, "not canonical"
        return residues

    def end(self) -> None:
        """All of the data was taken."""
        assert self.at == len(self.data), "left-over body"


# ---- the contents ----


class Checker:
    """Compares decoded objects with their definition."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        parameters, rest = frame((directory / "parameters.kw").read_bytes())
        assert rest == b""
        self.literal, self.fingerprint = literal(parameters.descriptor)
        assert parameters.kind == 1
        assert parameters.fingerprint == self.fingerprint
        assert self.literal.log_n == 10
        assert [q.bit_length() for q in self.literal.primes] == [50, 40, 61, 61]
        assert (len(self.literal.q), self.literal.security, self.literal.weight) == (3, 1, 0)
        for q in self.literal.primes:
            assert q % (2 * N) == 1
            assert pow(2, q - 1, q) == 1
        sums = (directory / "EXPANDED_SHA256SUMS").read_text().split("\n")
        self.expanded = {line.split("  ")[1]: line.split("  ")[0] for line in sums if line}

    def open(self, name: str, kind: int, *, private: bool = False) -> Object:
        """One file, with the header checked."""
        found, rest = frame((self.directory / name).read_bytes())
        assert rest == b""
        self.owned(found, kind)
        assert found.kind >> 15 == private
        return found

    def owned(self, found: Object, kind: int) -> None:
        """The object is of the kind and belongs to the parameters."""
        assert found.kind == kind
        assert found.summary == (10, 3, 1, 1)
        assert found.fingerprint == self.fingerprint
        assert found.key == (KEY if kind in KEYED and kind != 0x8001 else found.key)

    def fillers(self, body: Body, object_: int, digit: int, primes: list[int]) -> None:
        """A polynomial of the body is the filler of a stream."""
        for index in primes:
            q = self.literal.primes[index]
            assert body.limb(q) == uniform(FILLER, object_, digit, index, q), "contents"

    def half(self, name: str, seed: bytes, stream: int, limbs: int) -> None:
        """The digest of the half that is expanded from a seed."""
        assert seed == HALF
        digest = hashlib.sha256()
        for index in range(limbs):
            digest.update(struct.pack(f"<{N}Q", *uniform(seed, stream, 0, index, self.literal.q[index])))
        assert digest.hexdigest() == self.expanded[name], "expanded half"

    def switching_key(self, found: Object, element: tuple[int, int], level: int, objects: list[int]) -> None:
        """A switching key whose rows are fillers, of `objects[0]` for b and of `objects[1]` for a."""
        self.owned(found, 3)
        fields = found.descriptor
        tag, value, key_level, alpha, seeded, special_count = fields.take("BQBBBB")
        special = fields.take(f"{special_count}B")
        (digits,) = fields.take("B")
        assert (tag, value, key_level, alpha) == (*element, level, 1)
        assert special == [3]
        assert digits == level + 1
        assert seeded == (len(objects) == 1)
        if seeded:
            assert bytes(fields.take("32B")) == HALF
        fields.end()
        body = Body(found.body)
        for digit in range(digits):
            for object_ in objects:
                self.fillers(body, object_, digit, [*range(level + 1), *special])
        body.end()

    def message(self, fields: Fields, packing: tuple[int, int], deviation: float) -> None:
        """Packing, scale, deviation, magnitude."""
        assert fields.take("BBddd") == [*packing, 184_717_954_048.5, deviation, 3.25]
        fields.end()

    def run(self) -> int:
        """Check all files and count them."""
        parameters, _ = frame((self.directory / "parameters_sparse.kw").read_bytes())
        sparse, fingerprint = literal(parameters.descriptor)
        parameters.descriptor.end()
        assert parameters.summary == (15, 3, 2, 0)
        assert parameters.fingerprint == fingerprint
        assert (sparse.log_n, sparse.weight, sparse.security) == (15, 192, 0)
        assert [q.bit_length() for q in sparse.primes] == [60, 50, 50, 60, 60]

        ckks, _ = frame((self.directory / "ckks_parameters.kw").read_bytes())
        self.owned(ckks, 0x101)
        assert literal(ckks.descriptor)[0] == self.literal
        assert ckks.descriptor.take("d") == [37.5]
        ckks.descriptor.end()

        secret = self.open("secret_key.kw", 0x8001, private=True)
        secret.descriptor.end()
        assert secret.key == hashlib.sha256(b"keywright key identity" + secret.body).digest()[:16]
        codes = [byte >> shift & 3 for byte in secret.body for shift in (0, 2, 4, 6)]
        assert [(code ^ 2) - 2 for code in codes] == [(i * i + i // 7) % 3 - 1 for i in range(N)]

        public = self.open("public_key.kw", 2)
        seed = bytes(public.descriptor.take("32B"))
        body = Body(public.body)
        self.fillers(body, 1, 0, [0, 1, 2])
        body.end()
        self.half("public_key.kw", seed, PUBLIC_KEY_STREAM, 3)

        self.switching_key(self.open("switching_key_seeded.kw", 3), (0, 5), 1, [2])
        self.switching_key(self.open("switching_key_stored.kw", 3), (1, 0), 0, [3, 4])
        self.key_set()
        self.master_keys()

        ciphertext = self.open("rlwe_ciphertext.kw", 5)
        assert ciphertext.descriptor.take("BB") == [1, 2]
        body = Body(ciphertext.body)
        for digit in range(2):
            self.fillers(body, 7, digit, [0, 1])
        body.end()

        seeded = self.open("rlwe_ciphertext_seeded.kw", 6)
        level, *seed_bytes = seeded.descriptor.take("B32B")
        assert level == 1
        body = Body(seeded.body)
        self.fillers(body, 8, 0, [0, 1])
        body.end()
        self.half("rlwe_ciphertext_seeded.kw", bytes(seed_bytes), ENCRYPTION_STREAM, 2)

        for name, form, digit, limbs in (("coefficients", 0, 0, 4), ("evaluations", 1, 1, 1)):
            polynomial = self.open(f"polynomial_{name}.kw", 7)
            assert polynomial.descriptor.take("BB") == [form, limbs]
            body = Body(polynomial.body)
            self.fillers(body, 9, digit, list(range(limbs)))
            body.end()

        plaintext = self.open("ckks_plaintext.kw", 0x102)
        assert plaintext.descriptor.take("B") == [0]
        self.message(plaintext.descriptor, (0, 3), 0.0)
        body = Body(plaintext.body)
        self.fillers(body, 10, 0, [0])
        body.end()

        ciphertext = self.open("ckks_ciphertext.kw", 0x103)
        assert ciphertext.descriptor.take("BB") == [0, 3]
        self.message(ciphertext.descriptor, (0, 9), 1 / 1024)
        body = Body(ciphertext.body)
        for digit in range(3):
            self.fillers(body, 11, digit, [0])
        body.end()

        seeded = self.open("ckks_ciphertext_seeded.kw", 0x104)
        level, *seed_bytes = seeded.descriptor.take("B32B")
        assert level == 0
        self.message(seeded.descriptor, (1, 0), 1 / 1024)
        body = Body(seeded.body)
        self.fillers(body, 12, 0, [0])
        body.end()
        self.half("ckks_ciphertext_seeded.kw", bytes(seed_bytes), ENCRYPTION_STREAM, 1)

        bfv, _ = frame((self.directory / "bfv_parameters.kw").read_bytes())
        self.owned(bfv, 0x201)
        assert literal(bfv.descriptor)[0] == self.literal
        assert bfv.descriptor.take("Q") == [65537]
        bfv.descriptor.end()

        ciphertext = self.open("bfv_ciphertext.kw", 0x203)
        assert ciphertext.descriptor.take("BBQBddB") == [0, 3, 65537, 0, -40.25, -38.5, 2]
        ciphertext.descriptor.end()
        body = Body(ciphertext.body)
        for digit in range(3):
            self.fillers(body, 13, digit, [0])
        body.end()

        seeded = self.open("bfv_ciphertext_seeded.kw", 0x204)
        level, *seed_bytes = seeded.descriptor.take("B32B")
        assert level == 0
        assert seeded.descriptor.take("QB") == [65537, 1]
        seeded.descriptor.end()
        body = Body(seeded.body)
        self.fillers(body, 14, 0, [0])
        body.end()
        self.half("bfv_ciphertext_seeded.kw", bytes(seed_bytes), ENCRYPTION_STREAM, 1)

        answer = self.open("search_answer.kw", 0x401)
        assert answer.descriptor.take("QIBB") == [65537, 1027, 19, 27]
        answer.descriptor.end()
        # 1024 coefficients of both halves, then 8 and 1024 of them.
        length = (1024 * (19 + 27) + 8 * 19 + 1024 * 27) // 8
        assert bytes(answer.body) == bytes((11 * i + 5) & 255 for i in range(length))
        return 20 + self.sums()

    def sums(self) -> int:
        """An encrypted update and a sum of two: claims, seeds and planes of bytes."""
        seed = HALF
        for name, kind, values in (("encrypted_update", 0x301, 6), ("encrypted_sum", 0x302, 7)):
            found, rest = frame((self.directory / f"{name}.kw").read_bytes())
            assert rest == b""
            assert (found.kind, found.summary) == (kind, (11, 1, 0, 0))
            q = 2**40 - 2**40 % (4 * N) + 1
            while q >= 2**40 or not is_prime(q):
                q -= 4 * N
            encoding = struct.pack("<BBIBBQ", 11, 0, 0, 1, 0, q)
            assert found.fingerprint == hashlib.sha256(b"keywright parameters" + encoding).digest()[:16]
            fields = found.descriptor
            assert fields.take("IQ") == [5, 2**20 - 1]
            assert bytes(fields.take("16B")) == bytes(range(16))
            assert fields.take("II") == [3, values]
            body = Fields(found.body)
            if kind == 0x301:
                assert fields.take("QI") == [9, 60]
                assert bytes(fields.take("32B")) == seed
            else:
                assert fields.take("I") == [2]
                for client in (9, 10):
                    assert body.take("QI") == [client, 51 + client]
                    assert bytes(body.take("32B")) == seed
            fields.end()
            assert bytes(body.take(f"{5 * values}B")) == bytes((7 * i + 3) & 255 for i in range(5 * values))
            body.end()
        return 2

    def key_set(self) -> None:
        """A directory of two keys, and the keys."""
        found = self.open("key_set.kw", 4)
        (count,) = found.descriptor.take("I")
        entries = []
        for _ in range(count):
            *spec, special_count = found.descriptor.take("BQBBBB")
            spec.append(found.descriptor.take(f"{special_count}B"))
            entries.append((spec, found.descriptor.take("Q")[0]))
        found.descriptor.end()
        elements = [(0, 2 * N - 1), (2, 9)]
        assert [spec for spec, _ in entries] == [[*element, 0, 1, 1, [3]] for element in elements]
        ends = [0]
        for _, length in entries:
            ends.append(ends[-1] + length)
        assert ends[-1] == len(found.body)
        for k, (start, end) in enumerate(pairwise(ends)):
            key, rest = frame(found.body[start:end])
            assert rest == b""
            self.switching_key(key, elements[k], 0, [5 + k])

    def master_keys(self) -> None:
        """Extra primes, a directory of one key, and the key, which belongs to the chain of all primes."""
        found = self.open("master_keys.kw", 8)
        (extra_count,) = found.descriptor.take("B")
        extra = found.descriptor.take(f"{extra_count}Q")
        assert [q.bit_length() for q in extra] == [61]
        assert is_prime(extra[0])
        assert extra[0] % (2 * N) == 1
        assert extra[0] not in self.literal.primes
        spec = [0, 5, 1, 1, 1, 1, 4]
        assert found.descriptor.take("I") == [1]
        assert found.descriptor.take("BQBBBBB") == spec
        assert found.descriptor.take("Q") == [len(found.body)]
        found.descriptor.end()
        chain = [*self.literal.p, *self.literal.q, *extra]
        encoding = struct.pack("<BBIBB5Q", 10, 1, 0, 4, 1, *chain)
        key, rest = frame(found.body)
        assert rest == b""
        assert (key.kind, key.summary) == (3, (10, 4, 1, 1))
        assert key.key == KEY
        assert key.fingerprint == hashlib.sha256(b"keywright parameters" + encoding).digest()[:16]
        assert key.descriptor.take("BQBBBBBB") == [*spec, 2]
        assert bytes(key.descriptor.take("32B")) == HALF
        key.descriptor.end()
        body = Body(key.body)
        for digit in range(2):
            for index in (0, 1, 4):
                assert body.limb(chain[index]) == uniform(FILLER, 15, digit, index, chain[index])
        body.end()


def main() -> None:
    """Check the digests of all files, then their contents."""
    directory = Path(__file__).parent / f"v{VERSION}"
    names = set()
    for line in (directory / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == digest, name
        names.add(name)
    assert names == {path.name for path in directory.glob("*.kw")}
    count = Checker(directory).run()
    assert count == len(names)
    sys.stdout.write(f"v{VERSION}: {count} files agree\n")


if __name__ == "__main__":
    main()
