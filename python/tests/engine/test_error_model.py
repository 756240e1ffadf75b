"""Predicted variances compared with the errors of ciphertexts, operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[np.float64]
ENTROPY = bytes(range(32))
RUNS = 8

WIDTHS = [50, 40, 40, 40, 40]


@pytest.fixture(scope="module", params=[1024, 64], ids=["full", "sparse"])
def slots(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def parameters() -> kw.Parameters:
    return kw.Parameters.from_bits(11, WIDTHS, [51], 40, insecure=True)


@pytest.fixture(scope="module")
def secret(parameters: kw.Parameters) -> kw.SecretKey:
    return kw.SecretKey.generate(parameters, ENTROPY)


def measured(secret: kw.SecretKey, slots: int, run: Callable[[kw.Ciphertext], kw.Ciphertext]) -> float:
    """Return the mean square error of real parts after an operation on a fresh ciphertext of zeros."""
    decryptor = kw.Decryptor(secret)
    squares = []
    for _ in range(RUNS * 1024 // slots):
        result = run(decryptor.encrypt(zeros(slots), slots=slots).expand())
        squares.append(np.mean(decryptor.decrypt(result) ** 2))
    return float(np.mean(squares))


def predicted(variance: tuple[float, float], unit: float) -> float:
    return sum(variance) * unit**2


def within(variance: float, expected: float) -> None:
    """Allow a quarter of a bit: the secret at the slots of one key accounts for that."""
    assert abs(np.log2(variance / expected)) / 2 < 0.25, f"{variance:.3e} beside {expected:.3e}"


def zeros(slots: int) -> Array:
    return np.zeros(slots)


@pytest.mark.parametrize("public", [False, True])
def test_encryption(parameters: kw.Parameters, secret: kw.SecretKey, slots: int, public: bool) -> None:
    model = kw.keys.ErrorModel(parameters, kw.EvaluationKeys(parameters))
    generator, decryptor = kw.KeyGenerator(secret), kw.Decryptor(secret)
    encryptor = kw.Encryptor(generator.public_key())
    runs = RUNS * 1024 // slots
    fresh = [
        encryptor.encrypt(zeros(slots), slots=slots)
        if public
        else decryptor.encrypt(zeros(slots), slots=slots).expand()
        for _ in range(runs)
    ]
    variance = np.mean([decryptor.decrypt(ciphertext) ** 2 for ciphertext in fresh])
    unit = model.deviation_unit(slots, parameters.scale)
    within(float(variance), predicted(model.encryption(public), unit))


def test_a_rotation_by_the_hops_of_a_route(
    parameters: kw.Parameters, secret: kw.SecretKey, slots: int
) -> None:
    specs = [kw.KeySpec.rotation(parameters, step, alpha=1) for step in (1, 3)]
    key_set = kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
    one, three = (spec.galois_element for spec in specs)
    assert one is not None
    assert three is not None
    both = one * three % (4 * parameters.max_slots)
    routes = [(4, [both], [(1, one, specs[0]), (one, both, specs[1])])]
    for keys, step in ((key_set, 3), (key_set.following(routes, []), 4)):
        outline = kw.EvaluationKeys.outline(parameters, specs)
        model = kw.keys.ErrorModel(parameters, outline if step == 3 else outline.following(routes, []))
        evaluator = kw.Evaluator(parameters, keys)
        fresh = predicted(model.encryption(), unit := model.deviation_unit(slots, parameters.scale))
        variance = measured(secret, slots, partial(evaluator.rotate, steps=step))
        within(variance - fresh, predicted(model.rotation(step, slots, 4), unit))


def test_a_conjugation(parameters: kw.Parameters, secret: kw.SecretKey, slots: int) -> None:
    specs = [kw.KeySpec.conjugation(parameters, alpha=1)]
    evaluator = kw.Evaluator(
        parameters, kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
    )
    model = kw.keys.ErrorModel(parameters, kw.EvaluationKeys.outline(parameters, specs))
    fresh = predicted(model.encryption(), unit := model.deviation_unit(slots, parameters.scale))
    variance = measured(secret, slots, evaluator.conjugate)
    within(variance - fresh, predicted(model.conjugation(4), unit))


def test_a_linear_transform(parameters: kw.Parameters, secret: kw.SecretKey, slots: int) -> None:
    rng = np.random.default_rng(1)
    diagonals = {r: rng.normal(size=slots) for r in (0, 1, 2, 3, 5, 8, 11)}
    special = [5]
    specs = [kw.KeySpec.rotation(parameters, step, alpha=1, special=special) for step in (1, 2, 3, 4, 8)]
    keys = kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
    evaluator = kw.Evaluator(parameters, keys)
    transform = kw.LinearTransform(parameters, diagonals, slots, 4, 4, special)
    model = kw.keys.ErrorModel(parameters, kw.EvaluationKeys.outline(parameters, specs))
    [babies], end = model.linear_transform([sorted(diagonals)], slots, 4, 4, special)
    norms = {
        baby: sum(float(np.mean(d**2)) for r, d in diagonals.items() if r % 4 == baby) for baby, _ in babies
    }
    unit = model.deviation_unit(slots, parameters.scale)
    expected = predicted(end, unit) + sum(predicted(v, unit) * norms[baby] for baby, v in babies)
    expected += predicted(model.encryption(), unit) * sum(norms.values())
    variance = measured(secret, slots, lambda a: evaluator.linear_transform(a, transform))
    within(variance, expected)
    # The key switches cause half of the error, so a wrong prediction would be noticed.
    assert sum(predicted(v, unit) * norms[baby] for baby, v in babies) > expected / 4


def test_the_encoding_of_diagonals(parameters: kw.Parameters, slots: int) -> None:
    model = kw.keys.ErrorModel(parameters, kw.EvaluationKeys(parameters))
    # A coefficient is off by 1/12, 2 p of them meet in a slot, half of them in its real part.
    assert model.diagonal(64, 4) == pytest.approx(64 / 12 / parameters.q[4] ** 2)


@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
def test_a_polynomial(parameters: kw.Parameters, secret: kw.SecretKey, slots: int, basis: str) -> None:
    values = np.linspace(-0.95, 0.95, slots)
    coefficients = [0.1, -0.4, 0.3, 0.7, -0.2, 0.5, 0.1, -0.6]
    decryptor = kw.Decryptor(secret)
    specs = [kw.KeySpec.relinearization(parameters, 4)]
    evaluator = kw.Evaluator(
        parameters, kw.KeyGenerator(secret).evaluation_keys(relinearization=False, specs=specs)
    )
    model = kw.keys.ErrorModel(parameters, kw.EvaluationKeys.outline(parameters, specs))
    gains = np.asarray(model.polynomial(coefficients, basis, 4, parameters.scale, values))
    unit = model.deviation_unit(slots, 1.0)
    evaluate = np.polynomial.chebyshev.chebval if basis == "chebyshev" else np.polynomial.polynomial.polyval
    squares = []
    for _ in range(RUNS * 1024 // slots):
        ciphertext = decryptor.encrypt(values, slots=slots).expand()
        result = decryptor.decrypt(evaluator.polynomial(ciphertext, coefficients, basis))
        squares.append((result - evaluate(decryptor.decrypt(ciphertext), coefficients)) ** 2)
    within(float(np.mean(squares)), float(np.mean(gains**2)) * predicted(model.rescaling, unit))


def test_an_outline_has_no_keys(parameters: kw.Parameters, secret: kw.SecretKey) -> None:
    specs = [kw.KeySpec.rotation(parameters, 1), kw.KeySpec.relinearization(parameters)]
    outline = kw.EvaluationKeys.outline(parameters, specs)
    assert {spec.kind for spec in outline} == {"rotation", "relinearization"}
    ciphertext = kw.Decryptor(secret).encrypt([1.0]).expand()
    with pytest.raises(kw.errors.KeySourceError, match="not made"):
        kw.Evaluator(parameters, outline).rotate(ciphertext, 1)
    model = kw.keys.ErrorModel(parameters, outline)
    with pytest.raises(kw.errors.MissingKeyError):
        model.rotation(2, 1024, 4)
    other = kw.Parameters.from_bits(11, WIDTHS[:-1], [51], 40, insecure=True)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.keys.ErrorModel(other, outline)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.EvaluationKeys.outline(other, specs)
