"""A key switch with SEAL's results: inputs from SplitMix64, checksums of the results from seal_switch.txt.

SEAL takes a digit as it is, between 0 and q, where the software here takes its centred representative; the
remainder of the division is centred in both (`Shape.centred`).
"""

from collections.abc import Iterator
from pathlib import Path

from files import fold, splitmix64
from key_switch_package import primes
from key_switch_schedule import Shape
from key_switching import Polynomial, Switch, switched

SHAPE = Shape(3, 1, 2, centred=False)
LOG_NS = (8, 10)
TEXT = Path(__file__).with_suffix(".txt")

Inputs = tuple[list[Polynomial], list[list[list[Polynomial]]], list[list[Polynomial]]]


def inputs(log_n: int) -> Inputs:
    """The digits, the key `[half][digit][prime]`, the addend `[half][prime]`, as evaluations."""
    q, limbs, state = [prime.value for prime in primes(SHAPE)], range(SHAPE.limbs), splitmix64(log_n)

    def polynomial(p: int) -> Polynomial:
        return [next(state) % p for _ in range(1 << log_n)]

    digits = [polynomial(q[i]) for i in limbs]
    key = [[[polynomial(p) for p in q] for _ in limbs] for _ in range(2)]
    return digits, key, [[polynomial(q[j]) for j in limbs] for _ in range(2)]


def text(results: dict[int, list[list[Polynomial]]]) -> str:
    """A line for every result: `log2(N) half prime fold`."""
    return "".join(
        f"{log_n} {k} {j} {fold(words)}\n"
        for log_n, halves in results.items()
        for k, half in enumerate(halves)
        for j, words in enumerate(half)
    )


def seals(log_n: int) -> Iterator[int]:
    """The checksums that SEAL's results of a degree have, by half and prime."""
    for line in TEXT.read_text(encoding="ascii").splitlines():
        degree, _, _, value = map(int, line.split())
        if degree == log_n:
            yield value


def seal_switch(log_n: int) -> Switch:
    """The switch by its definition, whose results have SEAL's checksums (asserted)."""
    digits, key, addend = inputs(log_n)
    expected = switched(SHAPE, digits, key, addend)
    assert [fold(words) for half in expected for words in half] == list(seals(log_n)), "not SEAL's results"
    return Switch(SHAPE, digits, key, addend, expected)
