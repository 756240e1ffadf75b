"""Every operation with plain numbers, of every type of numpy's numbers and at the ends of its range: the
least signed integers have no absolute value, and unsigned ones no negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keywright as kw
import numpy as np
import pytest
from numpy.polynomial.polynomial import polyval

SLOTS, N, T = 8, 1024, 65537
EXACT = np.linspace(-1, 1, SLOTS)
PLANTED = 0.01
WHOLE = np.arange(N) % 7
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


def _ends() -> list[Any]:
    """The least and the largest number of every type, and some between, as scalars and arrays."""
    scalars: list[Any] = [
        np.bool_(True),
        np.float16(3),
        np.float16(-1e4),
        np.float32(0.3),
        np.complex64(0.3j),
    ]
    for each in INTEGERS:
        end = np.iinfo(each)
        scalars += [each.type(end.min), each.type(end.max), each.type(3)]
    mixed = [
        np.resize(np.array([np.iinfo(each).min, 1, np.iinfo(each).max], each), SLOTS) for each in INTEGERS
    ]
    return [*scalars, *(np.full(SLOTS, each) for each in scalars), *mixed]


NUMBERS = _ends()


def _named(numbers: Any) -> str:
    return f"{np.asarray(numbers).dtype}-{np.ndim(numbers)}-{np.ravel(numbers)[0]}"


def _wide(numbers: Any) -> Any:
    """The same numbers in double precision."""
    return np.asarray(numbers, np.result_type(numbers, np.float64))


@pytest.fixture(scope="module")
def real() -> tuple[kw.Encrypted, kw.Decryptor]:
    """Values that are off by an error of a polynomial, and state it."""
    parameters = kw.Parameters.from_bits(11, [55, *[45] * 16], [60], 45, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    evaluator = kw.Evaluator(parameters, generator.evaluation_keys(rotations=range(1, SLOTS)))
    values = EXACT + PLANTED * np.resize([1, -1, 0.5], SLOTS)
    encrypted = kw.Encryptor(generator.public_key()).encrypt(values, slots=SLOTS, magnitude=1 + PLANTED)
    x = evaluator(encrypted)
    x.approximation = PLANTED
    return x, kw.Decryptor(secret)


def _matrix(numbers: Any) -> Any:
    return np.resize(numbers, (SLOTS, SLOTS))


def _polynomial(numbers: Any) -> Any:
    return np.resize(numbers, 3)


Operation = Callable[[Any, Any], Any]
OPERATIONS: dict[str, tuple[Operation, Operation]] = {
    "+": (lambda x, a: x + a, lambda x, a: x + a),
    "r+": (lambda x, a: a + x, lambda x, a: a + x),
    "-": (lambda x, a: x - a, lambda x, a: x - a),
    "r-": (lambda x, a: a - x, lambda x, a: a - x),
    "*": (lambda x, a: x * a, lambda x, a: x * a),
    "r*": (lambda x, a: a * x, lambda x, a: a * x),
    "/": (lambda x, a: x / np.where(a == 0, a.dtype.type(1), a), lambda x, a: x / np.where(a == 0, 1, a)),
    "r/": (lambda x, a: a / (x + 3).within(1.9, 4.1), lambda x, a: a / (x + 3)),
    "@": (lambda x, a: x @ _matrix(a), lambda x, a: x @ _matrix(a)),
    "r@": (lambda x, a: _matrix(a) @ x, lambda x, a: _matrix(a) @ x),
    "dot": (lambda x, a: x.dot(a), lambda x, a: np.full(SLOTS, (x * a).sum())),
    "polyval": (lambda x, a: x.polyval(_polynomial(a)), lambda x, a: polyval(x, _polynomial(a))),
}
ORDERED: dict[str, Any] = {"maximum": np.maximum, "minimum": np.minimum}


def _require_bounds(decryptor: kw.Decryptor, result: kw.Encrypted, expected: Any) -> None:
    decrypted = decryptor.decrypt_complex(result)
    assert np.abs(decrypted - expected).max() <= result.error_bound
    assert result.approximation >= 0
    declared = result.ciphertext.magnitude_bound + result.ciphertext.error_bound
    assert np.abs(decrypted).max() <= declared * (1 + 1e-9)


@pytest.mark.parametrize("numbers", NUMBERS, ids=_named)
def test_bounds_hold_for_numbers_of_every_type(real: tuple[kw.Encrypted, kw.Decryptor], numbers: Any) -> None:
    x, decryptor = real
    for name, (plain, wide) in OPERATIONS.items():
        if name == "polyval" and np.iscomplexobj(numbers):
            continue
        _require_bounds(decryptor, plain(x, numbers), wide(EXACT, _wide(numbers)))
    size = float(np.abs(_wide(numbers)).max())
    if np.iscomplexobj(numbers) or size > 2.0**24:  # rounding of the reference and of 45 bits hides the rest
        return
    for name, of in ORDERED.items():
        result = getattr(x, name)(numbers, range=size + 2)
        _require_bounds(decryptor, result, of(EXACT, _wide(numbers)))
    x.compare(numbers, range=size + 2)


def test_masked_divisors_are_refused(real: tuple[kw.Encrypted, kw.Decryptor]) -> None:
    with pytest.raises(kw.errors.EncodeError, match="masked"):
        real[0] / np.ma.masked_array(np.full(SLOTS, 2.0), np.arange(SLOTS) == 3)


def test_errors_beyond_every_number_stay_bounds(real: tuple[kw.Encrypted, kw.Decryptor]) -> None:
    """Infinity times 0, and the growth of a magnitude to the largest number, gave none or too little."""
    x, one = real[0], np.eye(SLOTS)
    infinite = x * 1e200 * 1e200
    assert infinite.error_bound == np.inf
    for result in (infinite * 0, (0 * one) @ infinite, infinite.polyval([1, 0, 0]), infinite * infinite * 0):
        assert result.error_bound == np.inf
    large = x._declared(1e300)
    assert ((1e10 * one) @ large).approximation >= 1e10 * PLANTED
    assert (one @ (large * large)).approximation >= 1e300 * PLANTED
    nothing = x * 0
    assert (one @ nothing).approximation == 0
    nothing.approximation = PLANTED
    assert (one @ nothing).approximation >= PLANTED


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_arguments_are_integers_of_every_type(real: tuple[kw.Encrypted, kw.Decryptor], type_: Any) -> None:
    """Steps, bits, ranges, counts and exponents."""
    x, decryptor = real
    three, eight, end = type_.type(3), type_.type(8), np.iinfo(type_)
    low, high = type_.type(end.min), type_.type(end.max)
    for result, expected in (
        (x << three, np.roll(EXACT, -3)),
        (x >> three, np.roll(EXACT, 3)),
        (x << low, np.roll(EXACT, -(int(low) % SLOTS))),
        (x >> type_.type(low // 2), np.roll(EXACT, int(low // 2) % SLOTS)),
        (x**three, EXACT**3),
        (x.mean(eight), np.full(SLOTS, EXACT.mean())),
        (x.abs(eight, range=three), np.abs(EXACT)),
        (x.maximum(0.3, eight, range=three), np.maximum(EXACT, 0.3)),
    ):
        assert result.error_bound < 0.2
        _require_bounds(decryptor, result, expected)
    assert (x - 1).within(low, type_.type(1)).ciphertext.magnitude_bound <= 2 + PLANTED
    wide = (x * 1e30).within(low, high)
    assert wide.ciphertext.magnitude_bound == max(-float(low), float(high))
    assert wide.interval == (float(low), float(high))


INTEGER_OPERATIONS: dict[str, Operation] = {
    "+": lambda x, a: x + a,
    "r+": lambda x, a: a + x,
    "-": lambda x, a: x - a,
    "r-": lambda x, a: a - x,
    "*": lambda x, a: x * a,
    "r*": lambda x, a: a * x,
}


@pytest.fixture(scope="module")
def whole() -> tuple[kw.EncryptedIntegers, kw.bfv.Decryptor]:
    parameters = kw.bfv.Parameters.from_bits(10, [50, 50, 50], [50], T, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(rotations=[3, N // 2 - 3])
    encrypted = kw.bfv.Encryptor(generator.public_key()).encrypt(WHOLE)
    return kw.bfv.Evaluator(parameters, keys)(encrypted), kw.bfv.Decryptor(secret)


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_encrypted_integers_meet_integers_of_every_type(
    whole: tuple[kw.EncryptedIntegers, kw.bfv.Decryptor], type_: Any
) -> None:
    """They are computed with modulo t, or refused as too large."""
    x, decryptor = whole
    end, three, rows = np.iinfo(type_), type_.type(3), WHOLE.reshape(2, -1)
    for value in (end.min, end.max, 3):
        for numbers in (type_.type(value), np.full(N, value, type_)):
            for operation in INTEGER_OPERATIONS.values():
                expected = operation(WHOLE.astype(object), int(value))
                try:
                    result = decryptor.decrypt(operation(x, numbers))
                except kw.errors.EncodeError:
                    assert not -T // 2 <= value <= T // 2
                    continue
                assert not ((result - expected) % T).any()
    for result, expected in (
        (x << three, np.roll(rows, -3, axis=1).ravel()),
        (x >> three, np.roll(rows, 3, axis=1).ravel()),
        (x**three, WHOLE**3),
    ):
        assert not ((decryptor.decrypt(result) - expected) % T).any()
