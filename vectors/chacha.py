"""The ChaCha block function (Bernstein, 2008), by its definition."""

MASK = (1 << 32) - 1
CONSTANTS = [int.from_bytes(b"expand 32-byte k"[4 * i : 4 * i + 4], "little") for i in range(4)]
COLUMNS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
DIAGONALS = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


def quarter_round(s: list[int], a: int, b: int, c: int, d: int) -> None:
    """One quarter round, in place."""
    for x, y, z, rotation in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & MASK
        s[z] ^= s[x]
        s[z] = (s[z] << rotation | s[z] >> (32 - rotation)) & MASK


def block(key: bytes, tail: list[int], rounds: int) -> list[int]:
    """The sixteen output words for a 32-byte key and the four words of counter and nonce."""
    start = CONSTANTS + [int.from_bytes(key[4 * i : 4 * i + 4], "little") for i in range(8)] + tail
    state = list(start)
    for _ in range(rounds // 2):
        for quarter in COLUMNS + DIAGONALS:
            quarter_round(state, *quarter)
    return [(x + y) & MASK for x, y in zip(state, start, strict=True)]
