"""Functions of encrypted values on declared ranges, and statistics of groups, beside numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.errors import EncodeError, NoiseError, OperandError, ParameterError
from keywright.minimax.composite import sign_composite
from keywright.values import Group
from keywright.values.functions import FUNCTIONS, approximation, error_bound, interpolant
from numpy.typing import NDArray
from tests.matrices import cells

Vector = NDArray[np.float64]
SLOTS = 16
RANGES = [(0.2, 1.0), (0.05, 4.0), (3.0, 3.5), (1e-3, 0.02), (40.0, 900.0)]
SIGNED = [(-1.0, 1.0), (-6.0, 2.0), (2.0, 2.5)]


@dataclass(frozen=True)
class Keys:
    """What encrypts, evaluates and decrypts vectors of 16 slots."""

    evaluator: kw.Evaluator
    encryptor: kw.Encryptor
    decryptor: kw.Decryptor

    def encrypted(self, values: Vector, magnitude: float = 1.0) -> kw.Encrypted:
        return self.evaluator(self.encryptor.encrypt(values, slots=SLOTS, magnitude=magnitude))

    def decrypted(self, values: kw.Encrypted) -> Vector:
        return np.asarray(self.decryptor.decrypt(values))


@pytest.fixture(scope="module")
def keys() -> Keys:
    parameters = kw.Parameters.from_bits(11, [55, *[45] * 20], [60], 45, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    evaluation = generator.evaluation_keys(rotations=range(1, SLOTS))
    return Keys(
        kw.Evaluator(parameters, evaluation), kw.Encryptor(generator.public_key()), kw.Decryptor(secret)
    )


def ranges(name: str) -> list[tuple[float, float]]:
    return RANGES if FUNCTIONS[name].positive else SIGNED


CASES = [(name, low, high) for name in FUNCTIONS for low, high in ranges(name)]


@pytest.mark.parametrize(("name", "low", "high"), CASES)
def test_proved_errors_hold_and_are_asked_for(name: str, low: float, high: float) -> None:
    function = FUNCTIONS[name]
    points = np.linspace(-1, 1, 20_001)
    exact = function.of((low + high) / 2 + (high - low) / 2 * points)
    most = float(np.abs(exact).max())
    for share in (2.0**-4, 2.0**-10, 2.0**-20):
        result = approximation(name, low, high, share * most)
        largest = np.abs(np.polynomial.chebyshev.chebval(points, result.coefficients) - exact).max()
        assert largest <= result.error <= share * most
    for degree in (3, 15, 63):
        values = np.polynomial.chebyshev.chebval(points, interpolant(function, low, high, degree))
        assert np.abs(values - exact).max() <= error_bound(function, low, high, degree)


@pytest.mark.parametrize(("name", "low", "high"), CASES)
def test_encrypted_functions_are_within_the_stated_error(
    keys: Keys, name: str, low: float, high: float
) -> None:
    values = np.random.default_rng(1).uniform(low, high, SLOTS)
    values[:2] = low, high
    x = keys.encrypted(values, max(abs(low), abs(high))).within(low, high)
    result = getattr(x, name)()
    exact = FUNCTIONS[name].of(values)
    largest = np.abs(FUNCTIONS[name].of(np.array([low, high]))).max()
    error = np.abs(keys.decrypted(result) - exact).max()
    assert error <= 2.0**-10 * largest + result.ciphertext.error_bound
    assert result.interval is not None
    assert result.interval[0] <= exact.min()
    assert exact.max() <= result.interval[1]


def test_quotients_have_divisors_of_both_signs(keys: Keys) -> None:
    v, w = np.random.default_rng(2).uniform(0.25, 1, (2, SLOTS))
    x, y = keys.encrypted(v), keys.encrypted(w)
    error = 4 * 2.0**-9
    assert np.abs(keys.decrypted(x / y.within(0.25, 1)) - v / w).max() <= error
    assert np.abs(keys.decrypted(2 / y.within(0.25, 1)) - 2 / w).max() <= 2 * error
    negative = (-y).within(-1, -0.25)
    assert np.abs(keys.decrypted(x / negative) + v / w).max() <= error
    inverse = negative.inverse()
    assert inverse.interval is not None
    assert inverse.interval[0] <= -1 / w.min()
    assert -1 / w.max() <= inverse.interval[1]
    assert np.abs(keys.decrypted(x @ y) - v @ w).max() <= (x @ y).ciphertext.error_bound


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_unknown_ranges_are_refused(keys: Keys, name: str) -> None:
    x = keys.encrypted(np.full(SLOTS, 0.5))
    with pytest.raises(OperandError, match="within"):
        getattr(x, name)()
    with pytest.raises(OperandError, match="within"):
        x / x
    if FUNCTIONS[name].positive:
        with pytest.raises(OperandError, match="on one side of 0" if name == "inverse" else "above 0"):
            getattr(x.within(-0.5, 1), name)()
        with pytest.raises(ParameterError, match=r"the least bound that is proved .* smaller ratio"):
            getattr(x.within(1e-9, 1), name)(1e-9)


@pytest.mark.parametrize("half", [60.0, 150.0])
def test_exponentials_may_be_large(keys: Keys, half: float) -> None:
    values = np.linspace(-half, half, SLOTS)
    result = keys.encrypted(values, half).within(-half, half).exp()
    assert np.abs(keys.decrypted(result) - np.exp(values)).max() <= result.error_bound < np.exp(half) / 500


@pytest.mark.filterwarnings("error")
def test_exponentials_say_what_limits_them(keys: Keys) -> None:
    """Roundings of a polynomial of more coefficients than it takes once counted, and numpy warned."""
    x = keys.encrypted(np.full(SLOTS, 0.5)).within(-1, 1)
    assert x.exp(1e-11).approximation <= 1e-11
    with pytest.raises(ParameterError, match="most of it is the rounding of coefficients"):
        x.exp(1e-15)
    with pytest.raises(ParameterError, match=r"on -800 to 800, .* exceed double precision"):
        keys.encrypted(np.zeros(SLOTS)).within(-800, 800).exp()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_values_have_no_range(keys: Keys, name: str) -> None:
    """They are not between two numbers, and a polynomial is close to a function there only."""
    values = keys.encryptor.encrypt(np.full(SLOTS, 0.5 + 0.5j), slots=SLOTS, magnitude=1)
    with pytest.raises(OperandError, match="are complex"):
        getattr(keys.evaluator(values).within(0.1, 1), name)()


@pytest.mark.parametrize("name", ["sqrt", "inverse"])
@pytest.mark.parametrize("width", [1e-6, 1e-8, 1e-9, 1e-10])
def test_errors_of_values_beside_a_narrow_range_are_stated(keys: Keys, name: str, width: float) -> None:
    """The polynomial is steeper beside its range, where errors move values."""
    values = np.random.default_rng(4).uniform(width / 10, width, SLOTS)
    x = keys.encrypted(values).within(width / 10, width)
    if x.ciphertext.error_bound > 0.45 * width / 1.1:
        with pytest.raises(NoiseError, match="wider range") as refused:
            getattr(x, name)()
        assert refused.value.code == "values"
        return
    result = getattr(x, name)()
    largest = max(FUNCTIONS[name].of(np.array([width / 10, width])))
    error = np.abs(keys.decrypted(result) - FUNCTIONS[name].of(values)).max()
    assert error <= 2.0**-10 * largest + result.ciphertext.error_bound


@pytest.mark.parametrize("error", [0, -1, np.inf, np.nan])
def test_errors_that_nothing_has_are_refused(keys: Keys, error: float) -> None:
    with pytest.raises(ValueError, match="error must"):
        keys.encrypted(np.full(SLOTS, 0.5)).within(0.1, 1).sqrt(error)


def test_impossible_ranges_are_refused(keys: Keys) -> None:
    x = keys.encrypted(np.full(SLOTS, 0.5))
    for low, high in ((1, 0), (0, 0), (0, np.inf), (np.nan, 1)):
        with pytest.raises(ValueError, match="two finite ends"):
            x.within(low, high)
    with pytest.raises(OperandError, match="declared magnitude"):
        x.within(2, 3)
    assert x.within(0, 1).interval == (0, 1)
    assert x.within(-0.1, 0.75).ciphertext.magnitude_bound == 0.75
    assert (x.within(0, 1) + 1).interval is None, "a sum has another range"


MASKS = [np.ones(SLOTS), np.array([1.0, 1, 0, 1] * 4), np.eye(SLOTS)[3] + np.eye(SLOTS)[8]]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("mask", MASKS, ids=["all", "most", "two"])
def test_statistics_are_those_of_numpy(keys: Keys, mask: Vector, encrypted: bool) -> None:
    v, w = np.random.default_rng(3).uniform(-1, 1, (2, SLOTS))
    x, y = keys.encrypted(v), keys.encrypted(w)
    shown, count = mask > 0, int(mask.sum())
    group = Group(keys.encrypted(mask) if encrypted else mask, least=max(1, count // 2))
    # An encrypted count is divided by with a polynomial, whose relative error is 2^-12 of the least count's
    # inverse.
    share = 2.0**-12 * count / max(1, count // 2) if encrypted else 1e-7
    expected: dict[str, Any] = {
        "sum": v[shown].sum(),
        "mean": v[shown].mean(),
        "variance": v[shown].var(),
        "covariance": np.cov(v[shown], w[shown], ddof=0)[0, 1],
    }
    results = {
        "sum": group.sum(x),
        "mean": group.mean(x),
        "variance": group.variance(x),
        "covariance": group.covariance(x, y),
    }
    for name, result in results.items():
        # The mean is off by its share, which a deviation of at most 2 sees twice, in its product with the
        # other.
        bound = (8 * share if name != "sum" else 0) + 1e-6
        assert np.abs(keys.decrypted(result) - expected[name]).max() <= bound, name
    if count > 2:
        deviations = sorted([v[shown].std(), w[shown].std()])
        own = group.correlation(x, y, (0.8 * deviations[0], 1.2 * deviations[1]))
        exact = np.corrcoef(v[shown], w[shown])[0, 1]
        # Each inverse of a deviation is off by at most 2^-10 of itself, and a variance by what is stated
        # above.
        bound = (1 + 2.0**-10) ** 2 - 1 + 3 * 8 * share / deviations[0] ** 2
        assert np.abs(keys.decrypted(own) - exact).max() <= bound + 1e-6


@pytest.mark.parametrize("bits", [8, 10])
def test_a_histogram_counts_values_between_edges(keys: Keys, bits: int) -> None:
    mask, edges = np.array([1.0, 1, 1, 0] * 4), np.array([-1, -0.5, 0.05, 1])
    near = 2 * sign_composite(bits).jump
    v = np.random.default_rng(6).uniform(-0.9, 0.9, SLOTS)
    for edge in edges:  # no value is as close to an edge as is stated
        v = np.where(np.abs(v - edge) <= near, edge + 1.05 * near * np.where(v > edge, 1, -1), v)
    v = np.clip(v, -1 + 1.05 * near, 1 - 1.05 * near)
    counts = Group(mask).histogram(keys.encrypted(v), edges.tolist(), bits=bits)
    exact = np.histogram(v[mask > 0], edges)[0]
    for count, expected in zip(counts, exact, strict=True):
        bound = mask.sum() * 2.0**-bits + count.ciphertext.error_bound
        assert np.abs(keys.decrypted(count) - expected).max() <= bound


@pytest.mark.parametrize("slots", [2, 16, 128, 1024, 8192])
def test_the_share_of_a_hidden_mask_is_as_close_as_is_stated(slots: int) -> None:
    """For every number of slots from the least on."""
    for least in {1, 3, slots // 12, slots // 3, slots - 1}:
        if 1 <= least < slots:
            low, high = least - 0.25, slots + 0.25
            inverse = approximation("inverse", low, high, 2.0**-12 / least)
            counts = np.arange(least, slots + 1)
            points = (2 * counts - low - high) / (high - low)
            shares = np.polynomial.chebyshev.chebval(points, inverse.coefficients)
            assert np.abs(shares * counts - 1).max() <= 2.0**-12


@pytest.mark.parametrize("count", [1, 2, SLOTS // 2, 2 * SLOTS])
@pytest.mark.parametrize("name", ["sum", "mean", "variance"])
def test_masks_of_another_length_are_refused(keys: Keys, name: str, count: int) -> None:
    """One number would be the mask of every slot."""
    x = keys.encrypted(np.linspace(0, 1, SLOTS))
    with pytest.raises(EncodeError, match=f"{count} numbers, and the ciphertext {SLOTS} slots"):
        getattr(Group(np.ones(count)), name)(x)


def test_bad_groups_are_refused(keys: Keys) -> None:
    bad: list[Any] = [np.zeros(SLOTS), np.full(SLOTS, 0.5), np.ones((2, 8)), [np.nan] * SLOTS, ["1"] * SLOTS]
    bad += [np.ones(SLOTS, complex), np.ma.masked_array(np.ones(SLOTS), mask=np.arange(SLOTS) < 2)]
    for mask in bad:
        with pytest.raises(EncodeError, match="mask"):
            Group(mask)
    for least in (0, SLOTS + 1, np.nan):
        for mask in (np.ones(SLOTS), keys.encrypted(np.ones(SLOTS))):
            with pytest.raises(ValueError, match="slots"):
                Group(mask, least=least)  # type: ignore[arg-type]
    x = keys.encrypted(np.full(SLOTS, 0.5))
    for edges in ([0.5], [0.5, 0.2], [-2, 0], [[0, 1]]):
        with pytest.raises(ValueError, match="edges"):
            Group(np.ones(SLOTS)).histogram(x, edges)  # type: ignore[arg-type]
    for deviations in ((0, 1), (1, 0.5), (0.1, np.inf)):
        with pytest.raises(ValueError, match="deviations"):
            Group(np.ones(SLOTS)).correlation(x, x, deviations)


Operation = Callable[[Any], Any]


def of_sign(x: Any) -> Any:
    return x.sign(range=1.1) if isinstance(x, kw.Encrypted) else np.sign(x)


def of(name: str) -> Operation:
    """A function by its name, of encrypted values in [0.2, 1] and of numbers."""

    def operation(x: Any) -> Any:
        if isinstance(x, kw.Encrypted):
            return getattr(x.within(0.1, 1.1), name)()
        return FUNCTIONS[name].of(x)

    return operation


def either(encrypted: Operation, plain: Operation) -> Operation:
    return lambda x: encrypted(x) if isinstance(x, kw.Encrypted) else plain(x)


MATRIX = np.random.default_rng(7).normal(size=(SLOTS, SLOTS))
NUMBERS = np.linspace(-2, 3.1, SLOTS)
OPERATIONS: dict[str, Operation] = {
    **{name: of(name) for name in FUNCTIONS},
    "__add__": lambda x: x + x,
    "__radd__": lambda x: NUMBERS.tolist() + x,
    "__sub__": lambda x: x - 3 * x,
    "__rsub__": lambda x: NUMBERS.tolist() - x,
    "__mul__": lambda x: x * (x + 1),
    "__rmul__": lambda x: NUMBERS.tolist() * x,
    "__neg__": lambda x: -x,
    "__pow__": lambda x: x**3,
    "__truediv__": lambda x: x / NUMBERS,
    "__rtruediv__": either(lambda x: 2 / x.within(0.1, 1.1), lambda x: 2 / x),
    "__matmul__": lambda x: x @ MATRIX,
    "__rmatmul__": lambda x: MATRIX.tolist() @ x,
    "__lshift__": either(lambda x: x << 2, lambda x: np.roll(x, -2)),
    "__rshift__": either(lambda x: x >> 1, lambda x: np.roll(x, 1)),
    "dot": either(lambda x: x.dot(x), lambda x: np.full(SLOTS, x @ x)),
    "sum": either(lambda x: x.sum(), lambda x: np.full(SLOTS, x.sum())),
    "mean": either(lambda x: x.mean(), lambda x: np.full(SLOTS, x.mean())),
    "polyval": either(lambda x: x.polyval([1, -2, 0.5, 3]), lambda x: 1 - 2 * x + 0.5 * x**2 + 3 * x**3),
    "within": either(lambda x: x.within(0, 1.1), lambda x: x),
    "sign": of_sign,
    "abs": either(lambda x: (x - 0.5).abs(range=2), lambda x: np.abs(x - 0.5)),
    "maximum": either(lambda x: x.maximum(0.5, range=2), lambda x: np.maximum(x, 0.5)),
    "minimum": either(lambda x: (x - 1).minimum(x * -1, range=2), lambda x: np.minimum(x - 1, -x)),
    "compare": either(lambda x: x.compare(-0.5, range=2), lambda x: (np.sign(x + 0.5) + 1) / 2),
    "group": either(
        lambda x: Group(np.arange(SLOTS) < 5).covariance(x, x * x),
        lambda x: np.full(SLOTS, np.cov(x[:5], x[:5] ** 2, bias=True)[0, 1]),
    ),
}
"""Every operation, of encrypted values and of numbers between 0.2 and 1."""

NO_OPERATIONS = {"error_bound", "evaluator", "ciphertext", "interval", "approximation"}
ARITHMETIC = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift")


def test_every_operation_is_tried() -> None:
    public = {name for name in dir(kw.Encrypted) if not name.startswith("_")} - NO_OPERATIONS
    operators = {f"__{side}{name}__" for name in ARITHMETIC for side in ("", "r", "i")}
    operators |= {"__neg__", "__pos__", "__abs__", "__invert__"}
    # Others are inherited, and refused.
    own = {name for each in kw.Encrypted.__mro__[:2] for name in vars(each)}
    assert public | operators & own <= OPERATIONS.keys()


@pytest.mark.parametrize(("name", "planted"), cells([*OPERATIONS], [0.0, 2.0**-20, 0.05]))
def test_stated_errors_are_whole(keys: Keys, name: str, planted: float) -> None:
    """`error_bound` held the errors of encryption alone, and polynomials were off by more. What is encrypted
    is off by a planted error; what is computed with it states the error that this becomes."""
    rng, operation = np.random.default_rng(11), OPERATIONS[name]
    for _ in range(4):
        exact = rng.uniform(0.2, 1.0, SLOTS)
        x = keys.encrypted(exact + planted * rng.choice([-1, 1, 0.3], SLOTS), 1.05)
        x.approximation = planted
        result = operation(x)
        error = np.abs(keys.decrypted(result) - operation(exact)).max()
        assert error <= result.error_bound
        assert result.error_bound == result.ciphertext.error_bound + result.approximation
        own = name in FUNCTIONS or name in {"__rtruediv__", "sign", "abs", "maximum", "minimum", "compare"}
        assert (result.approximation > 0) == (planted > 0 or own)


@pytest.mark.parametrize("seed", range(12))
def test_stated_errors_of_formulas_are_whole(keys: Keys, seed: int) -> None:
    """Random chains of functions and operators."""
    rng = np.random.default_rng(seed)
    exact = rng.uniform(0.2, 1.0, SLOTS)
    x = keys.encrypted(exact)
    x = x.within(0.2, 1.0)
    for _ in range(3):
        name = str(rng.choice([*FUNCTIONS]))
        x, exact = getattr(x, name)(2.0 ** -int(rng.integers(4, 12))), FUNCTIONS[name].of(exact)
        assert x.interval is not None
        low, high = x.interval
        # Back into a range above 0.
        x = ((x - low) / (high - low) + 0.25).within(0.25, 1.25)
        exact = (exact - low) / (high - low) + 0.25
        assert np.abs(keys.decrypted(x) - exact).max() <= x.error_bound
