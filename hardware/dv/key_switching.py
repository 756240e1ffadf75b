"""Key switching by its definition, as keywright-rlwe documents it, and the streams of key_switch.sv."""

import random
from array import array
from dataclasses import dataclass
from pathlib import Path

from key_switch_package import Schedule, input_order, key_order, primes, result_order, threshold
from transforms import forward, inverse

Polynomial = list[int]


@dataclass
class Switch:
    """One key switch, as evaluations. `key[k][i][j]`: half k, digit i, prime j, the special one last."""

    q: list[int]
    digits: list[Polynomial]
    key: list[list[list[Polynomial]]]
    addend: list[list[Polynomial]]
    expected: list[list[Polynomial]]


def centred(row: Polynomial, q: int, p: int) -> Polynomial:
    """Residues modulo `q` as residues modulo `p` of their centred representatives."""
    limit = threshold(q)
    return [(y - q if y >> 30 >= limit else y) % p for y in row]


def switched(q: list[int], digits: list[Polynomial], key: list, addend: list) -> list[list[Polynomial]]:
    """The two halves modulo q_0 .. q_L."""
    count, special = len(digits), q[-1]
    rows = [inverse(digit, q[i]) for i, digit in enumerate(digits)]
    raised = [
        [digits[i] if i == j else forward(centred(rows[i], q[i], p), p) for j, p in enumerate(q)]
        for i in range(count)
    ]
    result = []
    for k in range(2):
        sums = [
            [sum(raised[i][j][x] * key[k][i][j][x] for i in range(count)) % p for x in range(len(digits[0]))]
            for j, p in enumerate(q)
        ]
        remainder = inverse(sums[-1], special)
        half = []
        for j, p in enumerate(q[:-1]):
            r, factor = forward(centred(remainder, special, p), p), pow(special, -1, p)
            half.append(
                [((a - b) * factor + c) % p for a, b, c in zip(sums[j], r, addend[k][j], strict=True)]
            )
        result.append(half)
    return result


def random_switch(digits: int, n: int, corner: str = "") -> Switch:
    """Random words, or every one of them 0, q - 1 or the same."""
    q = [prime.value for prime in primes(digits)]

    def polynomial(p: int) -> Polynomial:
        if corner:
            return [{"zero": 0, "top": p - 1, "equal": p // 3, "one": 1}[corner]] * n
        return [
            random.choice([0, 1, p - 1]) if random.random() < 0.05 else random.randrange(p) for _ in range(n)
        ]

    words = [polynomial(p) for p in q[:-1]]
    key = [[[polynomial(p) for p in q] for _ in range(digits)] for _ in range(2)]
    addend = [[polynomial(p) for p in q[:-1]] for _ in range(2)]
    return Switch(q, words, key, addend, switched(q, words, key, addend))


def beats(polynomials: list[Polynomial], lanes: int) -> list[int]:
    """Beats of 64-bit words; of several polynomials side by side, the first in the low words."""
    count = len(polynomials[0]) // lanes
    chunks = [[p[lanes * t : lanes * (t + 1)] for p in polynomials] for t in range(count)]
    return [
        int.from_bytes(b"".join(word.to_bytes(8, "little") for words in chunk for word in words), "little")
        for chunk in chunks
    ]


def streams(switch: Switch, schedule: Schedule, lanes: int) -> dict[str, list[list[int]]]:
    """The frames of every port, in order."""
    frames = {"digit": [beats([switch.digits[i]], lanes) for i in input_order(schedule)]}
    for c, name in enumerate("ab"):
        frames[f"key_{name}"] = [
            beats([switch.key[0][i][j], switch.key[1][i][j]], lanes) for _, i, j in key_order(schedule, c)
        ]
        frames[f"addend_{name}"] = [
            beats([switch.addend[k][j]], lanes) for _, k, j in result_order(schedule, c)
        ]
        frames[f"result_{name}"] = [
            beats([switch.expected[k][j]], lanes) for _, k, j in result_order(schedule, c)
        ]
    return frames


def switch_from(folder: Path, digits: int, n: int) -> Switch:
    """A key switch that the Rust engine wrote."""

    def read(name: str) -> Polynomial:
        data = (folder / f"{name}.words").read_bytes()
        assert len(data) == 8 * n
        return list(array("Q", data))

    return Switch(
        [prime.value for prime in primes(digits)],
        [read(f"input_{i}") for i in range(digits)],
        [[[read(f"key_{k}_{i}_{j}") for j in range(digits + 1)] for i in range(digits)] for k in range(2)],
        [[read(f"addend_{k}_{j}") for j in range(digits)] for k in range(2)],
        [[read(f"result_{k}_{j}") for j in range(digits)] for k in range(2)],
    )
