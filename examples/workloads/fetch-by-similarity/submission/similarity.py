"""Records whose inner product with a query is above a threshold: the encrypted computation.

A record of `2 PAIRS` numbers is read as PAIRS complex ones. The slots of ciphertext j of a block have number
`(r + j) mod PAIRS` of record r, and the query, which repeats in the slots, is rotated by j: the sum of the
products is every record's inner product with the query, in the real part. A step of two polynomials follows,
and the product with the payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keywright as kw
import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Array = NDArray[Any]
Complex = NDArray[np.complex128]

PAIRS, RADIX = 64, 8
THRESHOLD, BAND = 0.8, 0.02
DEGREES = 31, 15
LEVELS = 1 + 5 + 4 + 1
"""Levels of the inner products, the two polynomials and the payloads."""
BASE, VALUES = 512, 7
"""Payloads: numbers below BASE, of which two share the real or the imaginary part of a slot."""


def parameters(log_n: int = 15, insecure: bool = False) -> kw.Parameters:
    """The parameters: 790 bits with those of the keys, where the bound for 128 bits of security is 868."""
    return kw.Parameters.from_bits(log_n, [50] + [40] * LEVELS, [50] * 6, 40, insecure=insecure)


def key_specs(parameters: kw.Parameters) -> list[kw.KeySpec]:
    """Keys for the rotations of the query, the products, and the real parts of the scores."""
    steps = [*range(RADIX, PAIRS, RADIX), *range(1, RADIX)]
    rotations = [kw.KeySpec.rotation(parameters, step, level=LEVELS) for step in steps]
    conjugation = kw.KeySpec.conjugation(parameters, level=LEVELS - 1)
    return [*rotations, kw.KeySpec.relinearization(parameters), conjugation]


@dataclass(frozen=True)
class Step:
    """Two Chebyshev series on [-1, 1], of which one after the other is 0 below THRESHOLD - BAND and 1 above
    THRESHOLD + BAND, and 1/2 at THRESHOLD."""

    first: Array
    second: Array

    @classmethod
    def design(cls) -> Step:
        """The series with the least error."""
        angles = np.arccos([THRESHOLD + BAND, THRESHOLD - BAND])
        points = np.cos(np.concatenate([np.linspace(0, angles[0], 300), np.linspace(angles[1], np.pi, 900)]))
        signs = np.sign(points - THRESHOLD)
        first = least_error(points, signs, DEGREES[0], root=THRESHOLD)
        error = np.abs(chebyshev.chebval(points, first) - signs).max()
        largest = np.abs(chebyshev.chebval(np.cos(np.linspace(0, np.pi, 10_000)), first)).max() * 1.0001
        near = np.linspace(1 - error, 1 + error, 300) / largest
        second = least_error(np.concatenate([-near, near]), np.repeat([0.0, 1.0], len(near)), DEGREES[1])
        return cls(first / largest, second)

    def __call__(self, values: Array) -> Array:
        """The step of numbers in the clear."""
        return np.asarray(chebyshev.chebval(chebyshev.chebval(values, self.first), self.second))

    def encrypted(self, evaluator: kw.Evaluator, scores: kw.Ciphertext) -> kw.Ciphertext:
        """The step of encrypted numbers in [-1, 1]."""
        for series in (self.first, self.second):
            scores = evaluator.declare(evaluator.polynomial(scores, series, basis="chebyshev"), 1.5)
        return scores


def least_error(points: Array, values: Array, degree: int, root: float | None = None) -> Array:
    """The Chebyshev series whose largest error at the points is least, with a root (Lawson's weights)."""
    table, weights = chebyshev.chebvander(points, degree), np.ones(len(points))
    rows, rest = np.empty((0, degree + 1)), np.empty(0)
    if root is not None:
        rows, rest = 1e4 * chebyshev.chebvander(np.array([root]), degree), np.zeros(1)
    series = np.zeros(degree + 1)
    for _ in range(60):
        scaled = np.sqrt(weights)
        system = np.concatenate([table * scaled[:, None], rows])
        series = np.linalg.lstsq(system, np.concatenate([values * scaled, rest]), rcond=None)[0]
        errors = np.abs(table @ series - values)
        weights = weights * (errors / errors.max() + 1e-9)
        weights /= weights.mean()
    return np.asarray(series)


def blocks(count: int, slots: int) -> int:
    """The number of blocks of records."""
    return -(-count // slots)


def record_vectors(records: Array, slots: int) -> Iterator[Complex]:
    """Slots of PAIRS ciphertexts for each block of records (count, 2 PAIRS)."""
    rows = np.arange(slots)
    for start in range(0, len(records), slots):
        part = records[start : start + slots].astype(np.float64)
        pairs = np.zeros((slots, PAIRS), np.complex128)
        pairs[: len(part)] = (part[:, ::2] + 1j * part[:, 1::2]) / 2
        for step in range(PAIRS):
            yield pairs[rows, (rows + step) % PAIRS]


def payload_vectors(payloads: Array, slots: int) -> Iterator[Complex]:
    """Slots of two ciphertexts for each block of payloads (count, 7), of numbers from 0 to 511."""
    numbers = np.pad(
        payloads.astype(np.float64), ((0, blocks(len(payloads), slots) * slots - len(payloads)), (0, 1))
    )
    low, high = numbers[:, ::2], numbers[:, 1::2]
    reals = (low + BASE * high) / BASE**2
    for part in reals.reshape(-1, slots, 4):
        yield part[:, 0] + 1j * part[:, 1]
        yield part[:, 2] + 1j * part[:, 3]


def query_vector(query: Array) -> Complex:
    """The slots of the query's ciphertext, (PAIRS,)."""
    numbers = query.astype(np.float64)
    return np.asarray(numbers[::2] - 1j * numbers[1::2])


def encrypt(client: kw.Decryptor, values: Complex, level: int, slots: int | None = None) -> kw.Ciphertext:
    """Complex numbers of absolute values up to 1, from the ciphertexts of their real and imaginary parts."""
    real, imaginary = (
        client.encrypt(part, slots=slots, level=level, magnitude=1).expand()
        for part in (values.real, values.imag)
    )
    evaluator = kw.Evaluator(real.parameters)
    return evaluator.add(real, evaluator.multiply_by_i(imaginary))


def rotations(evaluator: kw.Evaluator, query: kw.Ciphertext) -> Iterator[kw.Ciphertext]:
    """The query rotated by 0 to PAIRS - 1, in all slots."""
    slots = query.parameters.max_slots
    for row in (query, *evaluator.rotate_hoisted(query, list(range(RADIX, PAIRS, RADIX)))):
        for turned in (row, *evaluator.rotate_hoisted(row, list(range(1, RADIX)))):
            yield evaluator.view_slots(turned, slots)


def scores(
    evaluator: kw.Evaluator,
    query: kw.Ciphertext,
    count: int,
    record: Callable[[int, int], kw.Ciphertext],
) -> list[kw.Ciphertext]:
    """Inner products of the records of `count` blocks with the query. `record` reads one by block and
    number in the block. Each rotation serves all blocks before the next is made, so that few are held."""
    totals: list[kw.Ciphertext] = []
    for number, turned in enumerate(rotations(evaluator, query)):
        products = [evaluator.multiply_lazy(turned, record(block, number)) for block in range(count)]
        totals = [evaluator.add(*pair) for pair in zip(totals, products, strict=True)] if totals else products
    halves = [evaluator.relinearize_rescale(total) for total in totals]
    return [evaluator.declare(evaluator.add(half, evaluator.conjugate(half)), 1) for half in halves]


def matching(
    evaluator: kw.Evaluator, above: kw.Ciphertext, payloads: Sequence[kw.Ciphertext]
) -> list[kw.Ciphertext]:
    """What the client gets of a block: the step, and its products with the payloads."""
    products = [evaluator.multiply(above, each) for each in payloads]
    return [evaluator.drop_to_level(each, 0) for each in (above, *products)]


def payloads_of(steps: Array, products: Sequence[Complex]) -> Array:
    """Payloads (matches, 7) of a block's records with a step above 1/2. Near the threshold the step is not 1,
    and so products are divided by it."""
    matches = steps > 0.5
    numbers = []
    for product in products:
        quotients = BASE**2 * product[matches] / steps[matches]
        for part in (quotients.real, quotients.imag):
            whole = np.rint(part).astype(np.int64)
            numbers += [whole % BASE, whole // BASE]
    return np.stack(numbers[:VALUES], axis=1).astype(np.int16)
