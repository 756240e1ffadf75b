"""Encodings by definition, and roots of unity, to 60 digits.

A line `root e c s` holds the bits of the two `f64` nearest to cos and sin of `2 pi e / 2^18`. A line
`case log_slots log_scale state` is followed by two lines, for `n = 2^log_slots` slots and the root
`w = exp(2 pi i / 4n)`, with pseudo-random integers from SplitMix64 at `state`, each the signed word shifted
right by 41 bits:

* the first `2n` are real and imaginary parts of slots `z_j`, over `2^20`; the line holds the `2n`
  coefficients `2^log_scale / n * sum_j Re(z_j w^(-k 5^j))`, before rounding, times `2^20` and rounded;
* the next `2n` are coefficients `c_k`; the line holds real and imaginary parts of `sum_k c_k w^(k 5^j)` for
  each slot `j`, times `2^20` and rounded.
"""

import struct
from decimal import Decimal, getcontext
from itertools import islice

from files import finish, splitmix64

getcontext().prec = 60
ONE = 1 << 180
Point = tuple[int, int]


def primitive(log_order: int) -> tuple[Decimal, Decimal]:
    """Cosine and sine of `2 pi / 2^log_order`, by halving a quarter turn; `log_order >= 2`."""
    cosine, sine = Decimal(0), Decimal(1)
    for _ in range(log_order - 2):
        half = ((1 + cosine) / 2).sqrt()
        cosine, sine = half, sine / (2 * half)
    return cosine, sine


def power(log_order: int, exponent: int) -> tuple[Decimal, Decimal]:
    """Cosine and sine of `2 pi exponent / 2^log_order`, by squaring."""
    result, base = (Decimal(1), Decimal(0)), primitive(log_order)
    while exponent:
        if exponent & 1:
            result = (result[0] * base[0] - result[1] * base[1], result[0] * base[1] + result[1] * base[0])
        base = (base[0] * base[0] - base[1] * base[1], 2 * base[0] * base[1])
        exponent >>= 1
    return result


def bits(x: Decimal) -> int:
    """The bits of the nearest `f64`."""
    return int.from_bytes(struct.pack(">d", float(x)), "big")


def table(log_order: int) -> list[Point]:
    """All powers of the primitive root, as integers over `ONE`."""
    points = (power(log_order, e) for e in range(1 << log_order))
    return [(int((c * ONE).to_integral_value()), int((s * ONE).to_integral_value())) for c, s in points]


def rounded(numerator: int, denominator: int) -> int:
    """The nearest integer of a quotient."""
    return (2 * numerator + denominator) // (2 * denominator)


def case(log_slots: int, log_scale: int, state: int) -> str:
    """Three lines."""
    n = 1 << log_slots
    words = ((w - (w >> 63 << 64)) >> 41 for w in splitmix64(state))
    roots = table(log_slots + 2)
    orbit = [pow(5, j, 4 * n) for j in range(n)]
    parts = list(islice(words, 2 * n))
    slots = list(zip(parts[::2], parts[1::2], strict=True))
    encoded = []
    for k in range(2 * n):
        total = 0
        for (re, im), e in zip(slots, orbit, strict=True):
            cosine, sine = roots[k * e % (4 * n)]
            total += re * cosine + im * sine
        encoded.append(rounded(total << log_scale, n * ONE))
    coefficients = list(islice(words, 2 * n))
    decoded = []
    for e in orbit:
        points = [roots[k * e % (4 * n)] for k in range(2 * n)]
        for part in (0, 1):
            total = sum(c * p[part] for c, p in zip(coefficients, points, strict=True))
            decoded.append(rounded(total << 20, ONE))
    rows: list[list[object]] = [["case", log_slots, log_scale, state], [*encoded], [*decoded]]
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def main() -> None:
    """Writes or checks the file."""
    lines = []
    for word in islice(splitmix64(18), 64):
        exponent = word >> 46
        cosine, sine = power(18, exponent)
        lines.append(f"root {exponent} {bits(cosine)} {bits(sine)}\n")
    for log_slots, log_scale in ((0, 30), (1, 30), (2, 35), (3, 45), (4, 100), (9, 40)):
        lines.append(case(log_slots, log_scale, log_slots))
    finish(__file__, "".join(lines))


if __name__ == "__main__":
    main()
