"""Key switching by its definition, as keywright-rlwe documents it, and the streams of key_switch.sv."""

import math
import random
from array import array
from dataclasses import dataclass
from pathlib import Path

from key_switch_package import FRACTION_BITS, primes, share
from key_switch_schedule import Schedule, Shape, input_order, key_order, result_order
from transforms import forward, inverse

Polynomial = list[int]


@dataclass
class Switch:
    """One key switch, as evaluations. `key[k][d][j]`: half k, digit d, prime j, the special ones last."""

    shape: Shape
    inputs: list[Polynomial]
    key: list[list[list[Polynomial]]]
    addend: list[list[Polynomial]]
    expected: list[list[Polynomial]]


def centred(shape: Shape, group: list[int], evaluations: list[Polynomial]) -> list[int]:
    """The software's centred representatives of a polynomial given modulo the primes of a group."""
    forms = [primes(shape)[i] for i in group]
    product = math.prod(form.value for form in forms)
    rows = []
    for form, values in zip(forms, evaluations, strict=True):
        factor = pow(product // form.value, -1, form.value)
        rows.append([y * factor % form.value for y in inverse(values, form.value)])
    result = []
    for words in zip(*rows, strict=True):
        shares = sum(share(form, y) for form, y in zip(forms, words, strict=True))
        quotient = (shares + (1 << FRACTION_BITS - 1)) >> FRACTION_BITS
        x = sum(y * (product // form.value) for form, y in zip(forms, words, strict=True))
        result.append(x - quotient * product)
    return result


def switched(
    shape: Shape, inputs: list[Polynomial], key: list[list[list[Polynomial]]], addend: list[list[Polynomial]]
) -> list[list[Polynomial]]:
    """The two halves modulo q_0 .. q_L."""
    q = [form.value for form in primes(shape)]
    raised = []
    for digit in shape.digits:
        if shape.centred:
            words = centred(shape, list(digit), [inputs[i] for i in digit])
        else:
            (limb,) = digit
            words = inverse(inputs[limb], q[limb])
        raised.append(
            [inputs[j] if j in digit else forward([x % p for x in words], p) for j, p in enumerate(q)]
        )
    special = math.prod(q[j] for j in shape.specials)
    result = []
    for k in range(2):
        sums = [
            [
                sum(raised[d][j][x] * key[k][d][j][x] for d in range(len(raised))) % p
                for x in range(len(inputs[0]))
            ]
            for j, p in enumerate(q)
        ]
        remainder = centred(shape, list(shape.specials), [sums[j] for j in shape.specials])
        half = []
        for j, p in enumerate(q[: shape.limbs]):
            r, factor = forward([x % p for x in remainder], p), pow(special, -1, p)
            half.append(
                [((a - b) * factor + c) % p for a, b, c in zip(sums[j], r, addend[k][j], strict=True)]
            )
        result.append(half)
    return result


def random_switch(
    shape: Shape, n: int, corner: str = "", key: list[list[list[Polynomial]]] | None = None
) -> Switch:
    """Random words, or every one of them 0, q - 1 or the same; with the given key or one of that kind."""
    q = [prime.value for prime in primes(shape)]

    def polynomial(p: int) -> Polynomial:
        if corner:
            return [{"zero": 0, "top": p - 1, "equal": p // 3, "one": 1}[corner]] * n
        return [
            random.choice([0, 1, p - 1]) if random.random() < 0.05 else random.randrange(p) for _ in range(n)
        ]

    words = [polynomial(p) for p in q[: shape.limbs]]
    key = key or [[[polynomial(p) for p in q] for _ in shape.digits] for _ in range(2)]
    addend = [[polynomial(p) for p in q[: shape.limbs]] for _ in range(2)]
    return Switch(shape, words, key, addend, switched(shape, words, key, addend))


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
    frames = {"digit": [beats([switch.inputs[i]], lanes) for i in input_order(schedule)]}
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


def switch_from(folder: Path, shape: Shape, n: int) -> Switch:
    """A key switch that the Rust engine wrote."""

    def read(name: str) -> Polynomial:
        data = (folder / f"{name}.words").read_bytes()
        assert len(data) == 8 * n
        return list(array("Q", data))

    limbs, count = range(shape.limbs), len(primes(shape))
    return Switch(
        shape,
        [read(f"input_{i}") for i in limbs],
        [
            [[read(f"key_{k}_{d}_{j}") for j in range(count)] for d in range(len(shape.digits))]
            for k in range(2)
        ],
        [[read(f"addend_{k}_{j}") for j in limbs] for k in range(2)],
        [[read(f"result_{k}_{j}") for j in limbs] for k in range(2)],
    )
