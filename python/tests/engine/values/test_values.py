"""Vectors in numpy's terms: matrices, sums, polynomials, comparisons; and parameters chosen from
requirements."""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.minimax.composite import sign_composite
from tests.engine.values.conftest import MATRIX, SLOTS, Pair, Vector, encrypted_pair

CASES: dict[str, tuple[Callable[[Pair], kw.Encrypted], Callable[[Vector, Vector], Vector], int]] = {
    "matrix": (lambda p: p.x @ MATRIX, lambda v, w: np.append(v[:12] @ MATRIX, np.zeros(11)), 1),
    "column": (lambda p: p.x @ MATRIX[:, :1], lambda v, w: np.append(v[:12] @ MATRIX[:, 0], np.zeros(15)), 1),
    "zeros": (lambda p: p.x @ np.zeros((3, 3)), lambda v, w: np.zeros(SLOTS), 1),
    "dot": (lambda p: p.x.dot(p.y), lambda v, w: np.full(SLOTS, v @ w), 1),
    "dot with numbers": (lambda p: p.x.dot(p.w), lambda v, w: np.full(SLOTS, v @ w), 1),
    "sum": (lambda p: p.x.sum(), lambda v, w: np.full(SLOTS, v.sum()), 0),
    "mean": (lambda p: p.x.mean(), lambda v, w: np.full(SLOTS, v.mean()), 1),
    "quotient": (lambda p: p.x / 2, lambda v, w: v / 2, 1),
    "quotients": (lambda p: p.x / (p.w + 2), lambda v, w: v / (w + 2), 1),
    "polynomial": (lambda p: p.x.polyval([1, 0, 2, 0.5]), lambda v, w: v**3 / 2 + 2 * v**2 + 1, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_of_vectors(pair: Pair, name: str) -> None:
    compute, expected, levels = CASES[name]
    vector = compute(pair)
    assert pair.error(vector, expected(pair.v, pair.w)) <= vector.ciphertext.error_bound
    assert vector.ciphertext.level == pair.x.ciphertext.level - levels


FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "variance": lambda x, y: (x * x).mean() - x.mean() * x.mean(),
    "covariance": lambda x, y: (x * y).mean() - x.mean() * y.mean(),
    "cubes": lambda x, y: (x * x) * (x / 3) - (x * (y / 7)) * x,
    "reversed": lambda x, y: x.mean() * y.mean() + (x * y).mean(),
    "deep": lambda x, y: ((x * x) * (x * x) / 2) - (x / 2 * x) * (y * y) + x * y,
}


@pytest.fixture(scope="module")
def apart() -> Pair:
    """In a larger ring, whose primes are further apart."""
    return encrypted_pair(kw.Parameters.from_bits(13, [50, *[36] * 6], [60], 36, insecure=True))


@pytest.mark.parametrize("name", FORMULAS)
def test_scales_that_differ_by_primes_are_matched(apart: Pair, name: str) -> None:
    """Products of different origin have scales that differ by the quotient of two primes, at one level."""
    vector, expected = FORMULAS[name](apart.x, apart.y), FORMULAS[name](apart.v, apart.w)
    assert apart.error(vector, expected) <= vector.ciphertext.error_bound < 1e-3


@pytest.mark.parametrize("name", ["variance", "covariance", "reversed", "moved", "numbers"])
def test_products_with_numbers_need_no_level_to_match_a_scale(apart: Pair, name: str) -> None:
    """They are computed again at the scale of the other operand, at the lowest level, too."""
    others: dict[str, Callable[[Any, Any], Any]] = {
        "moved": lambda x, y: -((x * x / 16).sum() + 1) + (x.mean() * y.mean()),
        "numbers": lambda x, y: (x * x) * (x / 3 + 1) - (x * x) * np.linspace(1, 2, SLOTS) / 2 * 1,
    }
    formula = FORMULAS.get(name) or others[name]
    depth = 3 if name == "numbers" else 2
    drop = apart.x.evaluator.drop_to_level
    x, y = (apart.x.evaluator(drop(each.ciphertext, depth)) for each in (apart.x, apart.y))
    if name == "moved":
        expected = -(apart.v @ apart.v / 16 + 1) + apart.v.mean() * apart.w.mean()
    else:
        expected = formula(apart.v, apart.w)
    vector = formula(x, y)
    assert vector.ciphertext.level == 0
    assert apart.error(vector, expected) <= vector.ciphertext.error_bound < 1e-3


def test_numbers_that_change_later_leave_a_product_as_it_was(apart: Pair) -> None:
    numbers = apart.w.copy()
    product = apart.x * numbers * 0.5
    numbers[:] = 0
    vector, expected = product - apart.x * apart.x * 0.5, (apart.v * apart.w - apart.v**2) / 2
    assert apart.error(vector, expected) <= vector.ciphertext.error_bound


def test_without_a_spare_level_scales_are_refused(apart: Pair) -> None:
    lowest = apart.x.evaluator.drop_to_level(apart.x.ciphertext, 2)
    x = apart.x.evaluator(lowest)
    with pytest.raises(kw.errors.ScaleError, match="scales differ"):
        (x * x) * (x * x) - (x * x) * x


@pytest.mark.parametrize("bits", [40, 45, 50, 55, 59])
def test_a_sum_is_within_its_bound_or_refused(bits: int) -> None:
    """Squares at two levels have scales that differ by primes: by little, and by more than their errors."""
    parameters = kw.Parameters.from_bits(11, [60, *[bits] * 4], [61], bits, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    generator, values = kw.KeyGenerator(secret), np.linspace(0.5, 1, 8)
    evaluator = kw.Evaluator(parameters, generator.evaluation_keys())
    x = kw.Encryptor(generator.public_key()).encrypt(values, slots=8, magnitude=1)
    high = evaluator.drop_to_level(evaluator.square(x), 2)
    low = evaluator.square(evaluator.drop_to_level(x, 3))
    try:
        total = evaluator.add(high, low)
    except kw.errors.ScaleError:
        total = (evaluator(high) + evaluator(low)).ciphertext
    error = float(np.abs(kw.Decryptor(secret).decrypt(total) - 2 * values**2).max())
    assert error <= total.error_bound


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 2.0**30])
def test_products_reach_scales_near_their_own(apart: Pair, scale: float) -> None:
    evaluator, x = apart.x.evaluator, apart.x.ciphertext
    for numbers in (2.0, apart.w):
        with pytest.raises(kw.errors.ScaleError):
            evaluator.multiply(x, numbers, scale=scale)
    with pytest.raises(kw.errors.EncodeError, match="set_scale"):
        evaluator.multiply(x, x, scale=x.scale)


def test_a_matrix_is_encoded_once(pair: Pair) -> None:
    transform = kw.LinearTransform(pair.parameters, MATRIX.T, SLOTS)
    once, again = transform @ pair.x, pair.x @ MATRIX
    assert once.ciphertext.error_bound == again.ciphertext.error_bound
    assert (pair.decryptor.decrypt(once) == pair.decryptor.decrypt(again)).all()
    assert set(transform.rotations) <= set(range(1, SLOTS))
    for shape in ((SLOTS + 1, 2), (2, SLOTS + 1), (0, 3), (3, 0)):
        with pytest.raises(kw.errors.EncodeError, match=r"does not multiply 16 slots|values are empty"):
            pair.x @ np.ones(shape)
    for value in (np.ones(3), 2.0, np.array([["a"]])):
        with pytest.raises(kw.errors.EncodeError, match="pass a matrix of numbers"):
            pair.x @ value
    with pytest.raises(TypeError, match="multiplies from the left"):
        pair.x @ transform  # type: ignore[operator]
    with pytest.raises(kw.errors.MissingKeyError):
        kw.Evaluator(pair.parameters)(pair.x.ciphertext) @ MATRIX


@pytest.mark.parametrize("complexity", [0, 1j])
def test_a_matrix_is_that_of_its_diagonals(pair: Pair, complexity: complex) -> None:
    matrix = MATRIX.T + complexity * MATRIX[::-1].T
    square = np.zeros((SLOTS, SLOTS), complex)
    square[:5, :12] = matrix
    rows = np.arange(SLOTS)
    diagonals = {r: square[rows, (rows + r) % SLOTS] for r in range(SLOTS)}
    linear_transform = kw.LinearTransform(pair.parameters, matrix, SLOTS)
    listed = kw.LinearTransform(pair.parameters, {r: d for r, d in diagonals.items() if d.any()}, SLOTS)
    assert (linear_transform.rotations, linear_transform.bytes) == (listed.rotations, listed.bytes)
    result = pair.x.evaluator.linear_transform(pair.x.ciphertext, linear_transform)
    error = np.abs(pair.decryptor.decrypt_complex(result) - square @ pair.v)
    assert error.max() <= result.error_bound


def test_decryptors_take_what_operators_return(pair: Pair) -> None:
    total = pair.x + pair.y
    assert (pair.decryptor.decrypt(total) == pair.decryptor.decrypt(total.ciphertext)).all()
    assert (pair.decryptor.decrypt_complex(total).real == pair.decryptor.decrypt(total)).all()
    wrong: Any
    for wrong in (3, None, pair.v, pair.parameters):
        with pytest.raises(TypeError):
            pair.decryptor.decrypt(wrong)


def test_sparse_secrets_are_as_secure_as_their_bound() -> None:
    sparse = kw.Parameters.from_bits(15, [60, 45, 45], [60], 45, secret_weight=192)
    assert sparse.secret_distribution == "ternary of weight 192"
    assert not sparse.insecure
    assert sparse != kw.Parameters.from_bits(15, [60, 45, 45], [60], 45)
    with pytest.raises(kw.errors.SecurityError, match="weight 192"):
        kw.Parameters.from_bits(15, [60] * 13, [60], 45, secret_weight=192)
    kw.Parameters.from_bits(15, [60] * 13, [60], 45)
    for log_n, weight in ((13, 192), (15, 31)):
        with pytest.raises(kw.errors.SecurityError):
            kw.Parameters.from_bits(log_n, [40, 30], [40], 30, secret_weight=weight)
    for weight in (0, 1 + (1 << 10)):
        with pytest.raises(kw.errors.ParameterError, match="Hamming weight"):
            kw.Parameters.from_bits(10, [40], [40], 30, insecure=True, secret_weight=weight)


def test_a_sparse_secret_decrypts() -> None:
    weight, values = 8, np.arange(4.0)
    parameters = kw.Parameters.from_bits(10, [50, 40], [50], 40, insecure=True, secret_weight=weight)
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    evaluator = kw.Evaluator(parameters, generator.evaluation_keys())
    square = evaluator(kw.Encryptor(generator.public_key()).encrypt(values, slots=4)) ** 2
    assert np.abs(kw.Decryptor(secret).decrypt(square) - values**2).max() <= square.ciphertext.error_bound
    # Its error is smaller than of a dense one, which is what it is for.
    dense = kw.Parameters.from_bits(10, [50, 40], [50], 40, insecure=True)
    other = kw.KeyGenerator(kw.SecretKey.generate(dense))
    square_of_dense = (
        kw.Evaluator(dense, other.evaluation_keys())(
            kw.Encryptor(other.public_key()).encrypt(values, slots=4)
        )
        ** 2
    )
    assert square.ciphertext.error_bound < square_of_dense.ciphertext.error_bound


@pytest.mark.parametrize("zero", [0, 0.0, np.int8(0), [0] * SLOTS])
def test_products_with_zero_are_decrypted(pair: Pair, zero: Any) -> None:
    """They were refused as values beyond the modulus."""
    for product in (pair.x * zero, zero * pair.x):
        assert pair.error(product, 0.0) <= product.error_bound
        assert pair.error(product + 1, 1.0) <= (product + 1).error_bound
        assert pair.error(product + pair.y, pair.w) <= (product + pair.y).error_bound


def test_what_cannot_be_divided(pair: Pair) -> None:
    with pytest.raises(ZeroDivisionError):
        pair.x / np.array([1.0, 0.0])
    for other in (pair.y, pair.y.ciphertext):
        with pytest.raises(kw.errors.OperandError, match="within"):
            pair.x / other


def test_comparisons_are_off_by_what_they_state(pair: Pair) -> None:
    """Errors of encryption come on top, amplified at most by the polynomials' slopes."""
    bits, v, w = 6, pair.v, pair.w
    composite = sign_composite(bits)
    bound, jump = 2.0**-bits, composite.jump
    far = np.abs(v) > jump
    sign = pair.x.sign(bits)
    assert sign.ciphertext.level == pair.x.ciphertext.level - composite.levels
    noise = sign.ciphertext.error_bound
    assert np.abs(pair.decryptor.decrypt(sign) - np.sign(v))[far].max() <= composite.error + noise
    assert pair.error(sign, composite(v)) <= noise
    for vector, expected in (
        (pair.x.abs(bits), np.abs(v)),
        (pair.x.maximum(pair.y, bits), np.maximum(v, w)),
        (pair.x.minimum(pair.y, bits), np.minimum(v, w)),
    ):
        assert pair.error(vector, expected) <= 2 * bound + vector.ciphertext.error_bound
    compared = pair.x.compare(pair.y, bits)
    apart = np.abs(v - w) / 2 > jump
    errors = np.abs(pair.decryptor.decrypt(compared) - (v > w))
    assert errors[apart].max() <= composite.error / 2 + compared.ciphertext.error_bound
    with pytest.raises(kw.KeywrightError, match="4 to 14 bits"):
        pair.x.sign(3)


@pytest.mark.parametrize("right", ["value", 0.5, None])
@pytest.mark.parametrize("operator", [op.eq, op.ne, op.lt, op.le, op.gt, op.ge])
def test_comparisons_without_meaning_raise(pair: Pair, operator: Any, right: Any) -> None:
    with pytest.raises(TypeError, match=r"x\.compare\(y\)"):
        operator(pair.x, pair.y if right == "value" else right)


def test_coefficients_are_not_divided_one_by_one(pair: Pair) -> None:
    """Their product with numbers is one of polynomials."""
    x = pair.x.evaluator(pair.encryptor.encrypt_coefficients([0.5, 0.25], magnitude=1))
    halves = pair.decryptor.decrypt(x / 2)
    assert np.allclose(halves[:3], [0.25, 0.125, 0], atol=1e-6)
    with pytest.raises(kw.errors.OperandError, match="one by one", check=lambda e: e.code == "packing"):
        x / np.full(pair.parameters.n, 2.0)


def test_exponents_are_integers_of_any_type(pair: Pair) -> None:
    cube = pair.x ** np.int64(3)
    assert pair.error(cube, pair.v**3) <= cube.ciphertext.error_bound
    for exponent in (2.0, True, np.float64(2), np.bool_(True)):
        with pytest.raises(TypeError):
            pair.x**exponent  # type: ignore[operator]


@pytest.mark.parametrize("exponent", [0.5, -0.5, 2.0, 0, -1, None, "2"])
def test_other_exponents_are_refused_with_the_functions_in_their_place(pair: Pair, exponent: Any) -> None:
    kind = ValueError if isinstance(exponent, int) else TypeError
    with pytest.raises(kind, match=r"use x\.sqrt\(\), x\.inverse_sqrt\(\) or x\.inverse\(\), on a range"):
        pair.x**exponent


@pytest.mark.parametrize(
    "operation",
    [
        *(abs, round, math.floor, math.ceil, math.trunc, lambda x: x // 2, lambda x: x % 2),
        *(lambda x: 7 // x, lambda x: 7 % x, lambda x: 2**x, lambda x: np.float64(2) ** x),
    ],
)
def test_operations_of_python_that_nobody_computes_name_the_methods(pair: Pair, operation: Any) -> None:
    with pytest.raises(TypeError, match=r"does not compute on encrypted values .*x\.abs\(\)"):
        operation(pair.x)


def test_means_of_fewer_values_than_slots(pair: Pair) -> None:
    """Slots without a value hold 0, and count unless the number of values is said."""
    values = np.array([1.0, -2.0, 3.0, 4.0, 0.5]) / 4
    x = pair.x.evaluator(pair.encryptor.encrypt(values, slots=8, magnitude=1))
    for mean, expected in ((x.mean(), values.sum() / 8), (x.mean(count=5), values.mean())):
        assert np.abs(pair.decryptor.decrypt(mean) - expected).max() <= mean.ciphertext.error_bound
    for count in (0, -1, 9):
        with pytest.raises(ValueError, match="8 slots hold 1 to 8 values"):
            x.mean(count)
    with pytest.raises(kw.errors.ParameterError, match=r"count is 2\.5"):
        x.mean(2.5)  # type: ignore[arg-type]


def test_values_have_no_truth_but_an_identity(pair: Pair) -> None:
    with pytest.raises(TypeError, match="encrypted values cannot be compared"):
        bool(pair.x)
    assert {pair.x: 1}[pair.x] == 1


def test_arrays_that_lose_what_they_say_are_refused(pair: Pair) -> None:
    """By everything that takes numbers in the engine."""

    class Tensor:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            raise RuntimeError("requires grad")

    evaluator, x = pair.x.evaluator, pair.x.ciphertext
    one_masked = np.ma.masked_array(np.ones(SLOTS), np.arange(SLOTS) == 3)
    takers: tuple[Callable[[Any], object], ...] = (
        pair.encryptor.encrypt,
        pair.encryptor.encrypt_coefficients,
        pair.decryptor.encrypt,
        pair.decryptor.encrypt_coefficients,
        lambda numbers: evaluator.add(x, numbers),
        lambda numbers: evaluator.multiply(x, numbers),
        lambda numbers: evaluator.polynomial(x, numbers),
        lambda numbers: pair.x * numbers,
        pair.x.polyval,
    )
    for numbers in (
        np.ma.masked_array([1.0], [True]),
        one_masked,
        Tensor(),
        [1.0, [2.0, 3.0]],
        [],
        np.zeros(0),
    ):
        for taker in takers:
            with pytest.raises(
                kw.errors.EncodeError, match=r"masked|array of numbers|empty|0 numbers|at least one"
            ):
                taker(numbers)


def test_ciphertexts_are_not_compared(pair: Pair) -> None:
    ciphertext: Any = pair.x.ciphertext
    operations: tuple[Callable[[Any, Any], object], ...] = (op.eq, op.ne, op.lt, op.ge)
    for operation in operations:
        for other in (ciphertext, pair.y.ciphertext, 1.0, None):
            with pytest.raises(TypeError, match="cannot be compared"):
                operation(ciphertext, other)
    assert {ciphertext: 1}[ciphertext] == 1


def test_ciphertexts_are_neither_true_nor_false(pair: Pair) -> None:
    """Of both schemes; code that tests whether there is one writes ``is None``."""
    parameters = kw.bfv.Parameters.preset(next(iter(kw.bfv.Parameters.presets())))
    integers = kw.bfv.Encryptor(kw.KeyGenerator(kw.SecretKey.generate(parameters)).public_key())
    seeded = pair.decryptor.encrypt([1.0])
    for ciphertext in (pair.x.ciphertext, seeded, integers.encrypt([1])):
        for tested in (bool, op.not_):
            with pytest.raises(TypeError, match="neither true nor false"):
                tested(ciphertext)


@pytest.mark.parametrize(
    ("depth", "precision", "slots"), [(0, 10, 1), (1, 20, 64), (3, 20, 4096), (2, 30, 100), (9, 24, 8192)]
)
def test_parameters_from_what_a_circuit_needs(depth: int, precision: int, slots: int) -> None:
    parameters = kw.Parameters.for_circuit(depth=depth, precision=precision, slots=slots, magnitude=8.0)
    assert parameters.max_level == depth
    assert parameters.max_slots >= slots
    assert not parameters.insecure
    generator = kw.KeyGenerator(kw.SecretKey.generate(parameters))
    count = 1 << math.ceil(math.log2(slots))
    fresh = kw.Encryptor(generator.public_key()).encrypt(np.full(count, 0.5), slots=count)
    assert precision <= fresh.precision_bits <= precision + 15
    if depth:
        # Scaling adds a rounding, which is smaller than the existing error.
        evaluator = kw.Evaluator(parameters, generator.evaluation_keys())
        assert evaluator.multiply(fresh, 1.0).precision_bits > precision - 0.1
    # No smaller ring suffices: it lacks slots or security.
    if parameters.log_n > 12 and parameters.log_n - 2 >= math.log2(count):
        bits = [prime.bit_length() for prime in parameters.q]
        with pytest.raises(kw.errors.SecurityError):
            kw.KeySpec.relinearization(kw.Parameters.from_bits(parameters.log_n - 1, bits, [60], bits[-1]))


def test_circuits_without_parameters() -> None:
    for needs, part in (
        ({"depth": 1, "precision": 0}, "precision=0"),
        ({"depth": 1, "slots": 0}, "slots=0"),
        ({"depth": 1, "magnitude": 0.0}, "magnitude=0;"),
        ({"depth": 1, "precision": 50}, "no ring"),
        ({"depth": 90, "precision": 20}, "no ring"),
        ({"depth": 1 << 60}, "no ring"),
        ({"depth": 1, "magnitude": math.nan}, "magnitude=NaN"),
        ({"depth": 1, "slots": 1 << 17}, "no ring"),
    ):
        with pytest.raises(kw.errors.ParameterError, match=part):
            kw.Parameters.for_circuit(**needs)


@pytest.mark.parametrize("operation", [op.add, op.sub, op.mul, op.truediv])
@pytest.mark.parametrize("count", [0, 1, 2, SLOTS - 1, SLOTS, SLOTS + 1])
def test_numbers_are_one_for_all_or_one_for_every_slot(
    pair: Pair, operation: Callable[[Any, Any], Any], count: int
) -> None:
    """On either side. Integers have the same rule."""
    numbers = np.full(count, 0.5)
    for swapped in (False,) if operation is op.truediv else (False, True):

        def applied(value: Any, swapped: bool = swapped) -> Any:
            return operation(numbers, value) if swapped else operation(value, numbers)

        if count in (1, SLOTS):
            assert pair.error(applied(pair.x), applied(pair.v)) < 1e-4
            continue
        with pytest.raises(kw.errors.EncodeError) as refusal:
            applied(pair.x)
        if count < SLOTS:
            assert f"{count} numbers meet {SLOTS} encrypted values" in str(refusal.value)


def test_empty_polynomials_and_ranges_of_many_numbers_are_refused(pair: Pair) -> None:
    with pytest.raises(kw.errors.EncodeError, match="at least one coefficient"):
        pair.x.polyval([])
    with pytest.raises(ValueError, match="range must be a finite number"):
        pair.x.sign(range=np.ones(SLOTS))  # type: ignore[arg-type]
