"""Functions on a range state an error, and refuse values that may be outside."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import keywright as kw
import numpy as np
import pytest
from keywright.minimax.composite import DEGREES, sign_composite
from tests.engine.values.conftest import SLOTS, Pair, Vector


@dataclass(frozen=True)
class Stated:
    """A function of two vectors and the largest error that its documentation allows, for a range."""

    plain: Callable[[Vector, Vector], Vector]
    error: Callable[[float], float]
    jump: Callable[[Vector, Vector], Vector] | None = None
    """What is further from 0 than the composition's jump wherever the error holds."""


BITS = 5
COMPOSITE = sign_composite(BITS)
FUNCTIONS = {
    "sign": Stated(lambda v, w: np.sign(v), lambda size: COMPOSITE.error, lambda v, w: v),
    "abs": Stated(lambda v, w: np.abs(v), lambda size: 2.0 ** (1 - BITS) * size),
    "maximum": Stated(np.maximum, lambda size: 2.0 ** (1 - BITS) * size),
    "minimum": Stated(np.minimum, lambda size: 2.0 ** (1 - BITS) * size),
    "compare": Stated(lambda v, w: (np.sign(v - w) + 1) / 2, lambda size: COMPOSITE.error / 2, np.subtract),
}


def apply(name: str, x: kw.Encrypted, y: kw.Encrypted, **options: float) -> kw.Encrypted:
    """Call a function of one value or of two."""
    method = getattr(kw.Encrypted, name)
    operands = (x, y) if "other" in inspect.signature(method).parameters else (x,)
    result: kw.Encrypted = method(*operands, BITS, **options)
    return result


@pytest.mark.parametrize("bits", DEGREES)
def test_compositions_never_give_the_opposite_sign(bits: int) -> None:
    """What shows that a sign is undecided relies on it."""
    composite = sign_composite(bits)
    points = np.concatenate([np.linspace(0, composite.jump, 20_001), np.geomspace(1e-12, 1, 20_001)])
    values = composite(points)
    assert values.min() >= 0
    assert values.max() <= 1 + composite.error
    assert np.array_equal(composite(-points), -values)


@pytest.mark.parametrize("name", ["sign", "compare"])
def test_undecided_results_show_it(pair: Pair, name: str) -> None:
    """Of values nearer than the jump, a result could be taken for the opposite one."""
    sizes = [1e-9, 1e-6, 1e-3, *(COMPOSITE.jump * np.array([0.2, 0.5, 0.9, 1.2])), 1.0]
    v = np.outer([1, -1], sizes).ravel()
    w = -v
    evaluator, encrypt = pair.x.evaluator, pair.decryptor.encrypt
    x, y = (evaluator(encrypt(each, SLOTS, magnitude=1.0).expand()) for each in (v, w))
    result = apply(name, x, y)
    ends, limit = ((-1.0, 1.0), 1 / 2) if name == "sign" else ((0.0, 1.0), 1 / 4)
    assert result.error_bound < limit
    decrypted = np.asarray(pair.decryptor.decrypt(result))
    low, high = (np.abs(decrypted - end) <= result.error_bound for end in ends)
    assert (v[high] > 0).all()
    assert (v[low] < 0).all()
    far = np.abs(v) >= COMPOSITE.jump + x.error_bound
    assert (low | high)[far].all()
    assert not (low | high)[np.abs(v) < COMPOSITE.jump / 4].any()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1.0, 0.25, 100.0])
def test_functions_hold_on_their_whole_range(pair: Pair, name: str, size: float) -> None:
    """At the ends of the range, where two values differ by twice its size."""
    v, w = (size * np.tile(each, SLOTS // 4) for each in ([1.0, -1.0, 0.9, -0.5], [-1.0, 1.0, -0.9, 0.75]))
    evaluator, encrypt = pair.x.evaluator, pair.decryptor.encrypt
    x, y = (evaluator(encrypt(each, SLOTS, magnitude=size).expand()) for each in (v, w))
    options = {} if size == 1.0 else {"range": size}
    largest = 1.0 if name in ("sign", "compare") else size
    decrypted = pair.decryptor.decrypt(apply(name, x, y, **options))
    assert np.abs(decrypted - FUNCTIONS[name].plain(v, w)).max() <= 2.0**-4 * largest


@pytest.mark.parametrize("range_", [0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ranges_are_finite_and_above_zero(pair: Pair, name: str, range_: float) -> None:
    with pytest.raises(ValueError, match="range must be"):
        apply(name, pair.x, pair.y, range=range_)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e6, 1e9, 1e12, 1e16, 1e20])
@pytest.mark.parametrize("name", ["constant", "vector", "polynomial", "product"])
def test_errors_of_double_precision_are_stated(pair: Pair, name: str, size: float) -> None:
    """A decrypted number has 53 bits, however small the error of the ciphertext is."""
    results = {
        "constant": lambda: pair.x + size,
        "vector": lambda: pair.x + np.full(SLOTS, size),
        "polynomial": lambda: pair.x.polyval([size, 1.0]),
        "product": lambda: pair.x * 2 + size,
    }
    result, factor = results[name](), 2 if name == "product" else 1
    pairs = zip(pair.decryptor.decrypt(result).tolist(), pair.v.tolist(), strict=True)
    error = max(abs(Fraction(seen) - factor * Fraction(value) - Fraction(size)) for seen, value in pairs)
    assert float(error) <= result.ciphertext.error_bound < 1e-6 + 1e-12 * size


def test_every_function_on_a_range_has_a_stated_error() -> None:
    """Another method that takes a range belongs above."""
    methods = inspect.getmembers(kw.Encrypted, inspect.isfunction)
    taking = {name for name, method in methods if "range" in inspect.signature(method).parameters}
    assert {name for name in taking if not name.startswith("_")} == FUNCTIONS.keys()


@pytest.mark.parametrize("size", [1.0, 100.0])
@pytest.mark.parametrize("share", [0.5, 1.0, 1.02, 1.05, 1.3, 3.0, 100.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_within_their_error_or_refused(pair: Pair, name: str, share: float, size: float) -> None:
    """Whatever the share of the range that values reach, in one slot or in all, with either sign, and
    whatever magnitude they were encrypted with. On the range all are answered."""
    stated, evaluator = FUNCTIONS[name], pair.x.evaluator
    inside = size * np.array([0.5, -0.4, 0.3, 1.0, -1.0, 0.7, -0.9, 0.4] * (SLOTS // 8))
    for places in (slice(None), slice(2, 3)):
        for sign in (1.0, -1.0):
            v, w = inside.copy(), np.roll(inside, 1)
            v[places] = sign * share * size
            for magnitude in (share * size, None):
                try:
                    x, y = (evaluator(pair.encrypt(list(each), magnitude)) for each in (v, w))
                    result = apply(name, x, y, range=size)
                    decrypted = pair.decryptor.decrypt(result)
                except kw.KeywrightError:
                    assert share > 1 or magnitude is None or magnitude < size
                    continue
                distance = size if stated.jump is None else np.abs(stated.jump(v, w)) / 2
                far = np.broadcast_to(distance > size * COMPOSITE.jump, SLOTS)
                errors = np.abs(decrypted - stated.plain(v, w))[far]
                assert errors.max() <= stated.error(size) + result.ciphertext.error_bound


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_that_may_be_outside_a_range_are_refused_before_anything_is_computed(
    pair: Pair, name: str
) -> None:
    """Following the advice of the refusal leads to an answer, if the levels suffice."""
    x, y = (pair.x.evaluator(pair.encrypt([0.5, -0.25, 0.125], magnitude=1.5)) for _ in range(2))
    y = -y
    with pytest.raises(
        kw.errors.OperandError, match=f"{name} may be as large as 1.5, .* range is 1;"
    ) as caught:
        apply(name, x, y)
    assert caught.value.code == "range"
    advice = re.search(r"pass range=(\S+),", str(caught.value))
    assert advice is not None
    result = apply(name, x, y, range=float(advice[1]))
    assert np.isfinite(pair.decryptor.decrypt(result)).all()
    x, y = (each.evaluator(each.evaluator.declare(each.ciphertext, 1.0)) for each in (x, y))
    assert np.isfinite(pair.decryptor.decrypt(apply(name, x, y))).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_that_hide_signs_are_refused(pair: Pair, name: str) -> None:
    """A range as small as the errors of its values."""
    size = 2e-9
    x, y = (pair.x.evaluator(pair.encrypt([size, -size], magnitude=size)) for _ in range(2))
    assert x.ciphertext.error_bound > size / 4
    with pytest.raises(kw.errors.NoiseError, match="hide their signs", check=lambda e: e.code == "values"):
        apply(name, x, y, range=size)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_real_values_refuse_complex_ones(pair: Pair, name: str) -> None:
    values = pair.encryptor.encrypt(np.full(SLOTS, 0.5 + 0.5j), slots=SLOTS, magnitude=1)
    assert pair.x.ciphertext.real
    assert not values.real
    with pytest.raises(
        kw.errors.OperandError, match="are complex", check=lambda error: error.code == "range"
    ):
        apply(name, pair.x.evaluator(values), pair.y)


@pytest.mark.parametrize("declared", [1.0, 0.25])
def test_one_value_above_its_declaration_is_refused(pair: Pair, declared: float) -> None:
    """Among so many small ones that all coefficients are small. Decryption allows twice the declaration."""
    encryptor, slots = pair.encryptor, pair.parameters.max_slots
    for value, allowed in ((1.9, True), (2.1, False), (-2.1, False), (40.0, False)):
        values = np.zeros(slots)
        values[7] = value * declared
        ciphertext = pair.x.evaluator.declare(encryptor.encrypt(values, magnitude=64), declared)
        with (
            contextlib.nullcontext()
            if allowed
            else pytest.raises(
                kw.errors.NoiseError,
                match="a value of the decryption",
                check=lambda error: error.code == "overflow",
            )
        ):
            pair.decryptor.decrypt(ciphertext)


def test_extrema_declare_their_range(pair: Pair) -> None:
    """The larger of two values is no larger than both, up to its error."""
    for numbers in (pair.y, 0.5):
        for extremum in (pair.x.maximum(numbers, BITS), pair.x.minimum(numbers, BITS)):
            assert extremum.ciphertext.magnitude_bound == 1 + 2.0 ** (1 - BITS)
            with pytest.raises(kw.errors.OperandError, match=r"pass range=1\.03125"):
                extremum.maximum(pair.y)
