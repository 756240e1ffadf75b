from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tests.conftest import Party

Slots: TypeAlias = NDArray[np.complex128]


def test_a_declaration_beyond_the_modulus_is_refused_for_every_message(small: Any) -> None:
    """A message decides nothing: who chose level and scale would see which ones a client can encrypt."""
    largest = 2.0 ** (np.log2(float(small.parameters.q[0])) - 1 - np.log2(small.parameters.scale))
    for value in (1e-3, 0.9 * largest, 2 * largest):
        with pytest.raises(kw.errors.EncodeError):
            small.encryptor.encrypt([value], slots=8, level=0, magnitude=4 * largest)
    with pytest.raises(kw.errors.EncodeError, match="do not fit the modulus of level 0"):
        small.encryptor.encrypt([1e-3], slots=8, level=0, magnitude=4 * largest)
    assert small.encryptor.encrypt([1e-3], slots=8, level=0, magnitude=largest / 2).level == 0


def test_encryption_of_every_kind_of_numbers(small: Party) -> None:
    given: list[Any] = [
        [1, -2, 3],
        (0.5, 0.25),
        [True, False],
        np.array([1.5, -2.5], np.float32),
        np.array([1.5, -2.5], np.float16),
        np.array([1, 2, 3], np.uint8),
        np.array([-1, 1000], np.int64),
        np.array([1 + 2j, 3], np.complex64),
        np.arange(20.0)[::3],
        np.arange(6, dtype=">f8"),
    ]
    for values in given:
        ciphertext = small.encryptor.encrypt(values, slots=8, magnitude=1000)
        expected = np.zeros(8, complex)
        expected[: len(values)] = values
        small.assert_decrypts(ciphertext, expected)
        assert (ciphertext.slots, ciphertext.packing, ciphertext.degree) == (8, "slots", 1)


def test_full_packing_is_the_default_and_levels_can_be_chosen(small: Party, slots: Slots) -> None:
    for level in range(small.parameters.max_level + 1):
        ciphertext = small.encryptor.encrypt(slots, level=level)
        assert (ciphertext.level, ciphertext.slots) == (level, small.parameters.max_slots)
        assert ciphertext.bytes == 2 * 8 * small.parameters.n * (level + 1)
        assert ciphertext.scale == small.parameters.scale
        assert ciphertext.parameters == small.parameters
        assert ciphertext.precision_bits == pytest.approx(-np.log2(ciphertext.error_bound))
        assert ciphertext.magnitude_bound >= np.abs(slots).max()
        small.assert_decrypts(ciphertext, slots)
    decrypted = small.decryptor.decrypt(small.encryptor.encrypt(slots))
    assert decrypted.dtype == np.float64


def test_coefficients_and_symmetric_encryption(small: Party, slots: Slots) -> None:
    values = np.random.default_rng(2).uniform(-1, 1, small.parameters.n)
    for ciphertext in (
        small.encryptor.encrypt_coefficients(values, level=1),
        small.decryptor.encrypt_coefficients(values, level=1).expand(),
    ):
        assert (ciphertext.packing, ciphertext.slots) == ("coefficients", None)
        assert np.abs(small.decryptor.decrypt(ciphertext) - values).max() <= ciphertext.error_bound
        with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "packing"):
            small.decryptor.decrypt_complex(ciphertext)
        with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "packing"):
            small.evaluator.rotate(ciphertext, 1)
    seeded = small.decryptor.encrypt(slots.real, level=2)
    assert seeded.level == 2
    assert seeded.bytes == seeded.expand().bytes // 2 + 32
    small.assert_decrypts(seeded.expand(), slots.real.astype(complex))
    with pytest.raises(kw.errors.EncodeError):
        small.decryptor.encrypt(slots)


def test_operations(small: Party, slots: Slots) -> None:
    ev, n = small.evaluator, len(slots)
    x, y = slots, slots[::-1].copy()
    a, b = small.encryptor.encrypt(x), small.encryptor.encrypt(y)
    vector = np.linspace(-1, 1, n)
    lazy = ev.add(ev.multiply_lazy(a, b), ev.multiply_lazy(a, a))
    assert lazy.degree == 2
    cases: list[tuple[kw.Ciphertext, Slots]] = [
        (ev.add(a, b), x + y),
        (ev.add(a, vector), x + vector),
        (ev.add(a, 1j * vector), x + 1j * vector),
        (ev.add(a, 3), x + 3),
        (ev.add(a, 0.5), x + 0.5),
        (ev.add(a, 0.5 - 2j), x + 0.5 - 2j),
        (ev.add(a, np.float32(0.5)), x + 0.5),
        (ev.sub(a, b), x - y),
        (ev.sub(a, vector), x - vector),
        (ev.sub(a, 3), x - 3),
        (ev.sub(a, 0.25), x - 0.25),
        (ev.neg(a), -x),
        (ev.multiply(a, b), x * y),
        (ev.multiply(a, vector), x * vector),
        (ev.multiply(a, 1j * vector), x * 1j * vector),
        (ev.multiply(a, 0.5), x * 0.5),
        (ev.multiply(a, 0.5j), x * 0.5j),
        (ev.multiply(a, -3), x * -3),
        (ev.square(a), x * x),
        (lazy, x * y + x * x),
        (ev.relinearize(lazy), x * y + x * x),
        (ev.relinearize_rescale(lazy), x * y + x * x),
        (ev.rescale(ev.multiply_lazy(a, vector)), x * vector),
        (ev.rotate(a, 1), np.roll(x, -1)),
        (ev.rotate(a, -1), np.roll(x, 1)),
        (ev.rotate(a, n + 2), np.roll(x, -2)),
        (ev.rotate(a, 0), x),
        (ev.conjugate(a), x.conj()),
        (ev.multiply_by_i(a), 1j * x),
        (ev.inner_sum(a, 2, 16), sum((np.roll(x, -2 * k) for k in range(16)), np.zeros(n, complex))),
        (ev.drop_to_level(a, 1), x),
        (ev.set_scale(a, 2.0**40), x),
    ]
    for ciphertext, expected in cases:
        small.assert_decrypts(ciphertext, expected)
    assert ev.multiply(a, vector).scale == a.scale
    assert ev.multiply(a, -3).level == a.level
    assert ev.multiply(a, 0.5).level == ev.multiply(a, b).level == a.level - 1
    assert ev.set_scale(a, 2.0**40).scale == 2.0**40
    for rotated, steps in zip(ev.rotate_hoisted(a, [1, 4, 0]), [1, 4, 0], strict=True):
        small.assert_decrypts(rotated, np.roll(x, -steps))


def test_sums_with_conjugates_can_be_declared_real(small: Party, slots: Slots) -> None:
    ev, a = small.evaluator, small.encryptor.encrypt(slots)
    for twice, part in (
        (ev.add(a, ev.conjugate(a)), slots.real),
        (ev.multiply_by_i(ev.sub(ev.conjugate(a), a)), slots.imag),
    ):
        assert not twice.real
        declared = ev.declare(twice, 2.0, real=True)
        assert declared.real
        assert declared.magnitude_bound == 2.0
        small.assert_decrypts(declared, 2 * part.astype(complex))


def test_inner_sum_of_all_slots(small: Party) -> None:
    ciphertext = small.encryptor.encrypt(np.arange(8.0) / 8, slots=8)
    small.assert_decrypts(small.evaluator.inner_sum(ciphertext), np.full(8, 28 / 8, complex))


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_default_keys_serve_default_transforms_at_every_level(small: Party, level: int) -> None:
    parameters = kw.Parameters.from_bits(11, [60, 45, 45, 45, 45, 45], [60, 60, 60], 45, insecure=True)
    party, n = type(small).make(parameters, tuple(range(1, 16))), 16
    rng = np.random.default_rng(level)
    matrix, vector = rng.uniform(-1, 1, (n, n)), rng.uniform(-1, 1, n)
    transform = kw.LinearTransform(parameters, matrix, slots=n, level=level)
    result = party.evaluator.linear_transform(party.encryptor.encrypt(vector, slots=n), transform)
    party.assert_decrypts(result, (matrix @ vector).astype(complex))


def test_linear_transforms(small: Party) -> None:
    n = 16
    rng = np.random.default_rng(3)
    matrices = rng.uniform(-1, 1, (2, n, n))
    vectors = rng.uniform(-1, 1, (2, n))
    index = np.arange(n)
    diagonals = [{r: m[index, (index + r) % n] for r in range(n)} for m in matrices]
    transforms = [kw.LinearTransform(small.parameters, d, slots=n, level=3) for d in diagonals]
    first = transforms[0]
    assert (first.slots, first.level, first.parameters) == (n, 3, small.parameters)
    steps = {r % first.n1 for r in range(n)} | {r - r % first.n1 for r in range(n)}
    assert first.rotations == sorted(steps - {0})
    # A diagonal of n slots is stored as the 2n coefficients that are not 0.
    assert first.bytes == n * 8 * n * (3 + 1 + len(first.special))  # a real matrix
    keys = small.generator.evaluation_keys(specs=first.key_specs(), relinearization=False)
    ev = kw.Evaluator(small.parameters, keys)
    cts = [small.encryptor.encrypt(v, slots=n) for v in vectors]
    result = ev.linear_transform(cts[0], first)
    assert (result.level, result.scale) == (2, cts[0].scale)
    small.assert_decrypts(result, (matrices[0] @ vectors[0]).astype(complex))
    row = ev.linear_transform(cts, transforms)
    small.assert_decrypts(row, (matrices[0] @ vectors[0] + matrices[1] @ vectors[1]).astype(complex))

    with pytest.raises(kw.errors.MissingKeyError):
        kw.Evaluator(small.parameters).linear_transform(cts[0], first)
    with pytest.raises(kw.errors.ParameterError):
        ev.linear_transform(cts, first)
    with pytest.raises(kw.errors.LevelError):
        ev.linear_transform(ev.drop_to_level(cts[0], 1), first)
    with pytest.raises(kw.errors.EncodeError):
        kw.LinearTransform(small.parameters, {0: [1.0, 2.0]}, slots=n)
    with pytest.raises(kw.errors.EncodeError):
        kw.LinearTransform(small.parameters, {0: [np.nan] * n}, slots=n)
    with pytest.raises(kw.errors.LevelError):
        kw.LinearTransform(small.parameters, diagonals[0], slots=n, level=0)
    with pytest.raises(kw.errors.ParameterError):
        kw.LinearTransform(small.parameters, {}, slots=n)
    with pytest.raises(kw.errors.ParameterError):
        kw.LinearTransform(small.parameters, diagonals[0], slots=n, n1=0)


OPERATIONS: list[tuple[str, Callable[[Slots, Slots], Slots]]] = [
    ("add", np.add),
    ("sub", np.subtract),
    ("multiply", np.multiply),
    ("multiply_lazy", np.multiply),
]


@pytest.mark.parametrize("numbers", [3, 0.5, 0.5 - 1j, [0.5, -1.5], [1 + 2j, -3j]], ids=repr)
@pytest.mark.parametrize(("name", "expected"), OPERATIONS, ids=[name for name, _ in OPERATIONS])
def test_a_declaration_changes_the_statement_of_a_result_and_not_its_values(
    small: Party, name: str, expected: Callable[[Slots, Slots], Slots], numbers: Any
) -> None:
    x = np.array([0.25 - 0.5j, 1.0 + 0.125j])
    operation = getattr(small.evaluator, name)
    ciphertext = small.encryptor.encrypt(x, slots=2)
    results = [operation(ciphertext, numbers), operation(ciphertext, numbers, magnitude=64.0)]
    for result in results:
        small.assert_decrypts(result, expected(x, np.array(numbers, complex)))
    assert results[0].magnitude_bound < results[1].magnitude_bound


def test_polynomials(small: Party) -> None:
    x = np.linspace(-1, 1, 64)
    ciphertext = small.encryptor.encrypt(x, slots=64)
    coefficients = [0.5, -1.0, 0.0, 0.25, 0.125]
    monomial = small.evaluator.polynomial(ciphertext, coefficients)
    assert (monomial.level, monomial.scale) == (ciphertext.level - 3, ciphertext.scale)
    small.assert_decrypts(monomial, np.polynomial.polynomial.polyval(x, coefficients).astype(complex))
    chebyshev = small.evaluator.polynomial(ciphertext, coefficients, basis="chebyshev", scale=2.0**44)
    assert chebyshev.scale == 2.0**44
    small.assert_decrypts(chebyshev, np.polynomial.chebyshev.chebval(x, coefficients).astype(complex))
    wide = small.evaluator.polynomial(ciphertext, coefficients, "chebyshev", (-2, 2))
    small.assert_decrypts(wide, np.polynomial.chebyshev.chebval(x / 2, coefficients).astype(complex))
    with pytest.raises(kw.errors.LevelError) as caught:
        small.evaluator.polynomial(ciphertext, np.ones(64))
    assert (caught.value.needed, caught.value.available) == (6, 5)
    with pytest.raises(kw.errors.EncodeError):
        small.evaluator.polynomial(ciphertext, [1.0, np.inf])
    with pytest.raises(kw.errors.ParameterError):
        small.evaluator.polynomial(ciphertext, coefficients, basis="legendre")
    with pytest.raises(kw.errors.ParameterError):
        small.evaluator.polynomial(ciphertext, coefficients, "chebyshev", (1, 1))


def test_operators(small: Party, slots: Slots) -> None:
    x, y = slots, slots[::-1].copy()
    a = small.evaluator(small.encryptor.encrypt(x))
    b = small.evaluator(small.encryptor.encrypt(y))
    vector = np.linspace(-1, 1, len(x))
    cases: list[tuple[kw.Encrypted, Slots]] = [
        (a + b, x + y),
        (a + b.ciphertext, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (-a, -x),
        (a + vector, x + vector),
        (vector + a, x + vector),
        (vector - a, vector - x),
        (vector * a, x * vector),
        (a * vector, x * vector),
        (2 * a, 2 * x),
        (1 - a, 1 - x),
        (a - 1, x - 1),
        (0.5 + a * 0.5, 0.5 + x * 0.5),
        (np.float64(0.5) * a, 0.5 * x),
        (a**1, x),
        (a**2, x**2),
        (a**5, x**5),
        (a << 1, np.roll(x, -1)),
        (a >> 1, np.roll(x, 1)),
        # Sums of different scales: the operand with a level to spare is brought to the other's scale.
        (a * a + a, x * x + x),
        (a - a * a, x - x * x),
        (a**4 + a * a + 1, x**4 + x * x + 1),
    ]
    for encrypted, expected in cases:
        small.assert_decrypts(encrypted.ciphertext, expected)
    assert (a**8).ciphertext.level == a.ciphertext.level - 3
    for exponent in (0, -1):
        with pytest.raises(ValueError, match="positive"):
            a**exponent
    with pytest.raises(TypeError):
        a**0.5  # type: ignore[operator]
    assert "Encrypted" in repr(a)


def test_many_threads_give_the_same_results(small: Party, slots: Slots) -> None:
    ciphertext = small.encryptor.encrypt(slots)
    expected = small.evaluator.square(small.evaluator.rotate(ciphertext, 1)).to_bytes()
    results: list[bytes] = []

    def work() -> None:
        for _ in range(5):
            fresh = small.encryptor.encrypt(slots)
            small.assert_decrypts(fresh, slots)
            results.append(small.evaluator.square(small.evaluator.rotate(ciphertext, 1)).to_bytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 20


def test_the_interpreter_runs_while_keys_are_made(other: Party) -> None:
    ticks = 0
    done = threading.Event()

    def work() -> None:
        try:
            other.generator.evaluation_keys(rotations=range(1, 41))
        finally:
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        ticks += 1
    thread.join()
    assert ticks >= 5


MISUSE: list[tuple[str, Callable[[Party, kw.Ciphertext], object], type[kw.KeywrightError], str]] = [
    ("two dimensions", lambda p, _: p.encryptor.encrypt(np.zeros((2, 2))), kw.errors.EncodeError, "encoding"),
    ("a scalar", lambda p, _: p.encryptor.encrypt(1.0), kw.errors.EncodeError, "encoding"),
    ("text", lambda p, _: p.encryptor.encrypt(["1"]), kw.errors.EncodeError, "encoding"),
    ("objects", lambda p, _: p.encryptor.encrypt(np.array([None])), kw.errors.EncodeError, "encoding"),
    ("NaN", lambda p, _: p.encryptor.encrypt([0.0, np.nan]), kw.errors.EncodeError, "encoding"),
    ("infinity", lambda p, _: p.encryptor.encrypt([-np.inf]), kw.errors.EncodeError, "encoding"),
    (
        "complex NaN",
        lambda p, _: p.encryptor.encrypt([complex(0, np.nan)]),
        kw.errors.EncodeError,
        "encoding",
    ),
    ("too large", lambda p, _: p.encryptor.encrypt([1e300]), kw.errors.EncodeError, "encoding"),
    (
        "too large for the level",
        lambda p, _: p.encryptor.encrypt([2.0**12], slots=1, level=0),
        kw.errors.EncodeError,
        "encoding",
    ),
    (
        "too many values",
        lambda p, _: p.encryptor.encrypt(np.zeros(p.parameters.n)),
        kw.errors.EncodeError,
        "encoding",
    ),
    (
        "too many coefficients",
        lambda p, _: p.encryptor.encrypt_coefficients(np.zeros(9999)),
        kw.errors.EncodeError,
        "encoding",
    ),
    (
        "NaN coefficient",
        lambda p, _: p.encryptor.encrypt_coefficients([np.nan]),
        kw.errors.EncodeError,
        "encoding",
    ),
    (
        "complex coefficients",
        lambda p, _: p.encryptor.encrypt_coefficients([1j]),
        kw.errors.EncodeError,
        "encoding",
    ),
    (
        "slots not a power of two",
        lambda p, _: p.encryptor.encrypt([1], slots=3),
        kw.errors.ParameterError,
        "range",
    ),
    ("no slots", lambda p, _: p.encryptor.encrypt([1], slots=0), kw.errors.ParameterError, "range"),
    ("too many slots", lambda p, _: p.encryptor.encrypt([1], slots=4096), kw.errors.ParameterError, "range"),
    ("level too high", lambda p, _: p.encryptor.encrypt([1], level=6), kw.errors.LevelError, "level"),
    ("NaN summand", lambda p, a: p.evaluator.add(a, np.nan), kw.errors.EncodeError, "encoding"),
    ("infinite factor", lambda p, a: p.evaluator.multiply(a, np.inf), kw.errors.EncodeError, "encoding"),
    ("NaN vector", lambda p, a: p.evaluator.multiply(a, [np.nan]), kw.errors.EncodeError, "encoding"),
    ("vector too long", lambda p, a: p.evaluator.add(a, np.zeros(9999)), kw.errors.EncodeError, "encoding"),
    ("matrix", lambda p, a: p.evaluator.add(a, np.zeros((2, 2))), kw.errors.EncodeError, "encoding"),
    (
        "other packing",
        lambda p, a: p.evaluator.add(a, p.encryptor.encrypt([1], slots=2)),
        kw.errors.OperandError,
        "packing",
    ),
    ("other scale", lambda p, a: p.evaluator.add(p.evaluator.square(a), a), kw.errors.ScaleError, "scale"),
    ("NaN scale", lambda p, a: p.evaluator.set_scale(a, float("nan")), kw.errors.ScaleError, "scale"),
    (
        "level up",
        lambda p, a: p.evaluator.drop_to_level(p.evaluator.rescale(a), 5),
        kw.errors.LevelError,
        "level",
    ),
    (
        "rescale at 0",
        lambda p, a: p.evaluator.rescale(p.evaluator.drop_to_level(a, 0)),
        kw.errors.LevelError,
        "level",
    ),
    (
        "numbers at 0",
        lambda p, a: p.evaluator.multiply(p.evaluator.drop_to_level(a, 0), [0.5]),
        kw.errors.LevelError,
        "level",
    ),
    (
        "complex at 0",
        lambda p, a: p.evaluator.multiply(p.evaluator.drop_to_level(a, 0), 1j),
        kw.errors.LevelError,
        "level",
    ),
    (
        "set_scale at 0",
        lambda p, a: p.evaluator.set_scale(p.evaluator.drop_to_level(a, 0), 2.0),
        kw.errors.LevelError,
        "level",
    ),
    (
        "degree 2 times",
        lambda p, a: p.evaluator.multiply(p.evaluator.multiply_lazy(a, a), a),
        kw.errors.OperandError,
        "degree",
    ),
    (
        "degree 2 rotated",
        lambda p, a: p.evaluator.rotate(p.evaluator.multiply_lazy(a, a), 1),
        kw.errors.OperandError,
        "degree",
    ),
    ("no such key", lambda p, a: p.evaluator.rotate(a, 77), kw.errors.MissingKeyError, "key"),
    (
        "one key missing",
        lambda p, a: p.evaluator.rotate_hoisted(a, [1, 77]),
        kw.errors.MissingKeyError,
        "key",
    ),
    ("no keys", lambda p, a: kw.Evaluator(p.parameters).square(a), kw.errors.MissingKeyError, "key"),
    ("sum of 12", lambda p, a: p.evaluator.inner_sum(a, 1, 12), kw.errors.ParameterError, "range"),
]


@pytest.mark.parametrize(
    ("act", "error", "code"), [case[1:] for case in MISUSE], ids=[case[0] for case in MISUSE]
)
def test_misuse_is_a_typed_error(
    small: Party, act: Callable[[Party, kw.Ciphertext], object], error: type[kw.KeywrightError], code: str
) -> None:
    ciphertext = small.encryptor.encrypt([0.5])
    with pytest.raises(error, check=lambda error: error.code == code):
        act(small, ciphertext)


def test_exhausted_levels(small: Party) -> None:
    bottom = small.encryptor.encrypt([0.5], level=0)
    with pytest.raises((kw.errors.LevelError, kw.errors.ScaleError)):
        small.evaluator.multiply(bottom, bottom)


def test_nearest_keys_are_told_once(small: Party) -> None:
    specs = [kw.KeySpec.rotation(small.parameters, 4, level=5, alpha=alpha) for alpha in (1, 2)]
    keys = small.generator.evaluation_keys(rotations=[1], relinearization=False, specs=specs)
    with pytest.raises(kw.errors.MissingKeyError) as missing:
        kw.Evaluator(small.parameters, keys).rotate(small.encryptor.encrypt([0.5]), 5)
    nearest = str(missing.value.nearest).split(", ")
    assert len(nearest) == len(set(nearest)) == 2


def test_errors_carry_values_and_bounds(small: Party) -> None:
    ciphertext = small.encryptor.encrypt([0.5], level=3)
    with pytest.raises(kw.errors.MissingKeyError) as missing:
        small.evaluator.rotate(ciphertext, 33)
    assert (missing.value.rotation, missing.value.level) == (33, 3)
    assert missing.value.element == f"galois {pow(5, 33, 2 * small.parameters.n)}"
    assert "rotation by 32 at level 5" in str(missing.value.nearest)
    assert isinstance(missing.value, LookupError)
    with pytest.raises(kw.errors.MissingKeyError) as missing:
        kw.Evaluator(small.parameters).square(ciphertext)
    assert (missing.value.element, missing.value.rotation) == ("relinearization", None)
    with pytest.raises(kw.errors.EncodeError) as encode:
        small.encryptor.encrypt([0.0, 1.0, np.inf])
    assert (encode.value.index, encode.value.value) == (2, np.inf)
    with pytest.raises(kw.errors.EncodeError) as encode:
        small.encryptor.encrypt([0.0] * 9, slots=8)
    assert (encode.value.count, encode.value.bound) == (9, 8)
    with pytest.raises(kw.errors.LevelError) as level:
        small.evaluator.drop_to_level(ciphertext, 4)
    assert (level.value.level, level.value.maximum) == (4, 3)
    with pytest.raises(kw.errors.ScaleError) as scale:
        small.evaluator.add(small.evaluator.square(ciphertext), ciphertext)
    assert scale.value.right_log_scale == 45.0
    with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "degree") as degree:
        small.evaluator.rotate(small.evaluator.multiply_lazy(ciphertext, ciphertext), 1)
    assert degree.value.degree == 2


def test_mixed_parameters(small: Party, other: Party) -> None:
    theirs, mine = other.encryptor.encrypt([1.0]), small.encryptor.encrypt([1.0])
    for act in (
        lambda: small.evaluator.add(mine, theirs),
        lambda: small.evaluator.add(theirs, mine),
        lambda: small.evaluator.add(theirs, [1.0]),
        lambda: small.evaluator.multiply(theirs, 0.5),
        lambda: small.decryptor.decrypt(theirs),
        lambda: small.evaluator.polynomial(theirs, [1.0, 2.0]),
    ):
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
            act()


def test_what_is_not_a_ciphertext_is_a_type_error(small: Party) -> None:
    for act in (
        lambda: small.evaluator.neg([1.0]),  # type: ignore[arg-type]
        lambda: small.decryptor.decrypt(None),  # type: ignore[arg-type]
        lambda: small.evaluator.rotate(small.encryptor.encrypt([1.0]), 0.5),  # type: ignore[arg-type]
        lambda: kw.KeyGenerator(small.parameters),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            act()


def test_transforms_of_rows_and_coefficients_are_those_of_encoded_vectors(small: Party) -> None:
    n, period, indices = 64, 16, [0, 3, 5, 40]
    rows = np.random.default_rng(5).uniform(-1, 1, (len(indices), period))
    rows[1] = 0.25
    vectors = {r: np.tile(row, n // period) for r, row in zip(indices, rows, strict=True)}
    transforms = [
        kw.LinearTransform(small.parameters, vectors, slots=n, level=3),
        kw.LinearTransform(small.parameters, vectors, slots=n, level=3, storage="coefficients"),
        kw.LinearTransform.from_rows(small.parameters, indices, rows, slots=n, level=3),
        kw.LinearTransform.from_rows(
            small.parameters, indices, rows, slots=n, level=3, storage="coefficients"
        ),
    ]
    specs = transforms[0].key_specs()
    keys = small.generator.evaluation_keys(specs=specs, relinearization=False)
    evaluator = kw.Evaluator(small.parameters, keys)
    ciphertext = small.encryptor.encrypt(np.linspace(-1, 1, n), slots=n, level=3)
    results = {evaluator.linear_transform(ciphertext, t).to_bytes() for t in transforms}
    assert len(results) == 1
    periods, primes = [16, 1, 16, 16], 4 + len(transforms[0].special)
    for transform in transforms:
        predicted = kw.LinearTransform.predicted_bytes(periods, primes, transform.storage)
        assert transform.bytes == predicted
    assert [t.bytes for t in transforms[:2]] == [8 * 49 * primes, 8 * 49]
    assert kw.LinearTransform.predicted_bytes(periods, primes, real=False) == 16 * 49 * primes


def test_rows_that_are_no_diagonals_are_refused(small: Party) -> None:
    def make(indices: list[int], values: object, storage: str = "encoded") -> kw.LinearTransform:
        return kw.LinearTransform.from_rows(
            small.parameters,
            indices,
            values,  # type: ignore[arg-type]
            slots=16,
            level=2,
            storage=storage,
        )

    for values in (np.ones(4), np.ones((3, 4)), np.ones((2, 4), complex), [["a"], ["b"]]):
        with pytest.raises(kw.errors.EncodeError, match="a row of real numbers for each of the 2 indices"):
            make([0, 1], values)
    with pytest.raises(kw.errors.EncodeError, match="values are empty"):
        make([0, 1], np.ones((2, 0)))
    for period in (3, 32):
        with pytest.raises(kw.errors.ParameterError, match="power of two") as caught:
            make([0, 1], np.ones((2, period)))
        assert (caught.value.what, caught.value.value, caught.value.maximum) == ("period", period, 16)
    with pytest.raises(kw.errors.EncodeError, match="NaN") as refused:
        make([0, 7], [[1.0], [np.nan]])
    assert refused.value.index == 7
    with pytest.raises(kw.errors.EncodeError, match="fewer than 62") as wide:
        make([0], [[2.0**40]], "coefficients")
    assert wide.value.available_bits == 62
    with pytest.raises(kw.errors.ParameterError, match="storage is `streamed`"):
        make([0], [[1.0]], "streamed")
    with pytest.raises(kw.errors.ParameterError, match="power of two"):
        kw.LinearTransform.predicted_bytes([16, 3], 5)
    with pytest.raises(kw.errors.ParameterError, match="storage"):
        kw.LinearTransform.predicted_bytes([16], 5, "streamed")


def test_coefficients_are_counted_in_transforms_of_whole_polynomials(small: Party) -> None:
    log_n = small.parameters.log_n
    half = 2 ** (log_n - 1)
    assert kw.LinearTransform.coefficient_transforms(small.parameters, [half, half]) == 2
    least = kw.LinearTransform.coefficient_transforms(small.parameters, [1])
    assert least == 10 * 2**10 / (log_n * 2**log_n)
