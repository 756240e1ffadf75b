"""Uniform limbs by the definition in crates/ring/src/randomness/expander.rs.

Each line: seed (hex), object, digit, limb, prime, number of residues, fold of all residues,
then the first eight.
"""

from functools import cache

from chacha import block
from files import finish, fold


@cache
def output_words(seed: bytes, stream: int, tail: int, number: int) -> list[int]:
    """Block `number` of one attempt of a stream, eight rounds."""
    return block(seed, [number, stream & 0xFFFFFFFF, stream >> 32, tail], 8)


def residue(seed: bytes, stream: int, digit: int, limb: int, q: int, index: int) -> int:
    """Residue `index`: the first attempt whose low bits are below the prime."""
    chunk, position = divmod(index, 128)
    word, pair = divmod(position, 8)
    for attempt in range(256):
        tail = digit << 24 | attempt << 16 | limb
        low, high = (output_words(seed, stream, tail, 16 * chunk + 2 * pair + i)[word] for i in (0, 1))
        candidate = (low | high << 32) & ((1 << q.bit_length()) - 1)
        if candidate < q:
            return candidate
    raise AssertionError("256 candidates in a row were rejected")


CASES = [
    (bytes(range(32)), 0, 0, 0, (1 << 50) - 27, 1024),
    (bytes(range(32)), 0x0123456789ABCDEF, 255, 65535, (1 << 61) - 1, 1024),
    (bytes([0xA5] * 32), 1 << 32, 7, 300, (1 << 49) + 21, 2048),  # rejects nearly half of the candidates
    (bytes([0xA5] * 32), 3, 0, 2, 12289, 1024),
]


def main() -> None:
    """Writes or checks the file."""
    lines = []
    for seed, stream, digit, limb, q, count in CASES:
        residues = [residue(seed, stream, digit, limb, q, i) for i in range(count)]
        fields = [seed.hex(), stream, digit, limb, q, count, fold(residues), *residues[:8]]
        lines.append(" ".join(map(str, fields)) + "\n")
    finish(__file__, "".join(lines))


if __name__ == "__main__":
    main()
