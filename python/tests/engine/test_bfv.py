"""BFV through the package: exact integers, and errors."""

import operator as op
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import keywright as kw
import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

T = 65537
N = 1024
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Party:
    """One secret key with everything that it needs, and values to compute with."""

    parameters: kw.bfv.Parameters
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    encryptor: kw.bfv.Encryptor
    decryptor: kw.bfv.Decryptor
    evaluator: kw.bfv.Evaluator
    x: IntArray
    y: IntArray


@pytest.fixture(scope="module")
def party() -> Party:
    parameters = kw.bfv.Parameters.from_bits(10, [50, 50, 50], [50], T, insecure=True)
    secret = kw.SecretKey.generate(parameters, entropy=bytes(range(32)))
    generator = kw.KeyGenerator(secret, entropy=bytes(32))
    rng = np.random.default_rng(1)
    return Party(
        parameters,
        secret,
        generator,
        kw.bfv.Encryptor(generator.public_key()),
        kw.bfv.Decryptor(secret),
        kw.bfv.Evaluator(parameters, generator.evaluation_keys(rotations=[3], conjugation=True)),
        rng.integers(-(T // 2), T // 2 + 1, N),
        rng.integers(0, T, N),
    )


def centred(values: IntArray) -> IntArray:
    residues = values % T
    return np.where(residues > T // 2, residues - T, residues)


def test_arithmetic_is_exact(party: Party) -> None:
    encryptor, decryptor, evaluator, x, y = (
        party.encryptor,
        party.decryptor,
        party.evaluator,
        party.x,
        party.y,
    )
    a, b = encryptor.encrypt(x), encryptor.encrypt(y)
    cases = [
        (evaluator.add(a, b), x + y),
        (evaluator.add(a, y), x + y),
        (evaluator.add(a, 5), x + 5),
        (evaluator.sub(a, b), x - y),
        (evaluator.sub(a, y), x - y),
        (evaluator.sub(a, -5), x + 5),
        (evaluator.neg(a), -x),
        (evaluator.multiply(a, b), x * y),
        (evaluator.multiply(a, y), x * y),
        (evaluator.multiply(a, -7), -7 * x),
        (evaluator.square(a), x * x),
        (evaluator.relinearize(evaluator.add(evaluator.multiply_lazy(a, b), a)), x * y + x),
        (evaluator.rotate_rows(a, 3), np.roll(x.reshape(2, -1), -3, axis=1).ravel()),
        (evaluator.rotate_rows_hoisted(a, [0, 3])[1], np.roll(x.reshape(2, -1), -3, axis=1).ravel()),
        (evaluator.swap_rows(a), np.roll(x, 512)),
        (evaluator.mod_switch(a), x),
        (evaluator.mod_switch_to(a, 0), x),
    ]
    for ciphertext, expected in cases:
        seen = decryptor.decrypt(ciphertext)
        assert seen.dtype == np.int64
        np.testing.assert_array_equal(seen, centred(expected))
        assert decryptor.noise_budget(ciphertext) >= ciphertext.budget_bound


def test_operators(party: Party) -> None:
    a, b = (party.evaluator(party.encryptor.encrypt(values)) for values in (party.x, party.y))
    low = party.evaluator(party.evaluator.mod_switch(b.ciphertext))
    x, y = party.x, party.y
    rows = x.reshape(2, -1)
    cases = [
        (2 * a - b * y + 1, 2 * x - y * y + 1),
        (y - a, y - x),
        (-a + b.ciphertext, y - x),
        (a**3, x * x % T * x),
        (a * low + a, x * y + x),
        (low - a, y - x),
        ((a << 3), np.roll(rows, -3, axis=1).ravel()),
        ((a << 3) >> -3, np.roll(rows, -6, axis=1).ravel()),
    ]
    for value, expected in cases:
        np.testing.assert_array_equal(party.decryptor.decrypt(value.ciphertext), centred(expected))
    with pytest.raises(ValueError, match="exponent 0"):
        a**0
    with pytest.raises(TypeError):
        a**1.5  # type: ignore[operator]
    assert repr(a).startswith("EncryptedIntegers(BfvCiphertext(")


@pytest.mark.parametrize("operation", [op.add, op.sub, op.mul])
@pytest.mark.parametrize("count", [0, 1, 2, N - 1, N, N + 1])
def test_numbers_are_one_for_all_or_one_for_every_slot(
    party: Party, operation: Callable[[Any, Any], Any], count: int
) -> None:
    """On either side, as lists and as arrays. Reals have the same rule."""
    a = party.evaluator(party.encryptor.encrypt(party.x))
    numbers = np.arange(5, 5 + count)
    for operands in ((a, numbers), (numbers, a), (a, numbers.tolist()), (numbers.tolist(), a)):
        if count in (1, N):
            expected = operation(*(party.x if part is a else numbers for part in operands))
            np.testing.assert_array_equal(party.decryptor.decrypt(operation(*operands)), centred(expected))
            continue
        with pytest.raises(kw.errors.EncodeError) as refusal:
            operation(*operands)
        if count < N:
            assert f"{count} numbers meet {N} encrypted values" in str(refusal.value)


def test_operators_of_coefficients_take_polynomials(party: Party) -> None:
    a = party.evaluator(party.encryptor.encrypt([1, 2], packing="coefficients"))
    for value, expected in ((a * [3, 0, 1], [3, 6, 1, 2]), (a - [5], [-4, 2, 0, 0]), (a + 5, [6, 7, 5, 5])):
        assert party.decryptor.decrypt(value)[:4].tolist() == expected


def test_coefficients_multiply_as_polynomials(party: Party) -> None:
    encryptor, decryptor, evaluator = party.encryptor, party.decryptor, party.evaluator
    a = encryptor.encrypt([1, 2, 3], packing="coefficients")
    b = encryptor.encrypt([0, 0, 5], packing="coefficients")
    assert decryptor.decrypt(evaluator.multiply(a, b))[:6].tolist() == [0, 0, 5, 10, 15, 0]
    # X^1023 times X is -1.
    last = encryptor.encrypt(np.eye(1, 1024, 1023, dtype=int)[0], packing="coefficients")
    assert decryptor.decrypt(evaluator.multiply(last, [0, 1]))[0] == -1
    with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "packing"):
        evaluator.rotate_rows(a, 3)
    with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "packing"):
        evaluator.add(a, encryptor.encrypt([1]))


def test_scalars_fill_all_values(party: Party) -> None:
    encryptor, decryptor = party.encryptor, party.decryptor
    for packing in ("slots", "coefficients"):
        assert (decryptor.decrypt(encryptor.encrypt(-3, packing=packing)) == -3).all()
        with pytest.raises(kw.errors.EncodeError, match="values are empty"):
            encryptor.encrypt([], packing=packing)


def test_seeded_ciphertexts_and_files(party: Party, tmp_path: Path) -> None:
    decryptor, parameters, encryptor, x = party.decryptor, party.parameters, party.encryptor, party.x
    seeded = decryptor.encrypt(x, level=1)
    assert (seeded.level, seeded.bytes, seeded.packing) == (1, 2 * 1024 * 8 + 32, "slots")
    loaded = kw.bfv.SeededCiphertext.from_bytes(seeded.to_bytes(), parameters)
    np.testing.assert_array_equal(decryptor.decrypt(loaded.expand()), centred(x))
    a = encryptor.encrypt(x)
    a.save(tmp_path / "a.kw")
    parameters.save(tmp_path / "p.kw")
    assert kw.bfv.Parameters.load(tmp_path / "p.kw", insecure=True) == parameters
    assert kw.keys.inspect(tmp_path / "p.kw")["plaintext_modulus"] == T
    again = kw.bfv.Ciphertext.load(
        tmp_path / "a.kw", kw.bfv.Parameters.load(tmp_path / "p.kw", insecure=True)
    )
    assert (again.level, again.budget_bound) == (2, a.budget_bound)
    np.testing.assert_array_equal(decryptor.decrypt(again), centred(x))
    other = kw.bfv.Parameters.from_bits(10, [50, 50, 50], [50], 12289, insecure=True)
    with pytest.raises(kw.errors.FormatError):
        kw.bfv.Ciphertext.load(tmp_path / "a.kw", other)
    with pytest.raises(kw.errors.FormatError):
        kw.bfv.Ciphertext.from_bytes(seeded.to_bytes(), parameters)


def test_keys_know_their_scheme(party: Party) -> None:
    secret, generator, parameters = party.secret, party.generator, party.parameters
    ckks = kw.Parameters.from_bits(10, [50, 50, 50], [50], 40, insecure=True)
    assert generator.evaluation_keys().parameters == parameters
    other = kw.SecretKey.generate(ckks)
    for make in (
        lambda: kw.bfv.Decryptor(other),
        lambda: kw.bfv.Encryptor(kw.KeyGenerator(other).public_key()),
        lambda: kw.Encryptor(generator.public_key()).encrypt([1.0]),
        lambda: kw.Decryptor(secret).encrypt([1.0]),
    ):
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
            make()
    with pytest.raises(TypeError):
        kw.SecretKey.generate("N13")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [[1.5], [[1, 2]], ["a"], [1 + 2j], [2**64], np.array([2**63], dtype=np.uint64), None],
)
def test_values_that_are_not_integers_are_refused(party: Party, values: ArrayLike) -> None:
    encryptor = party.encryptor
    with pytest.raises(kw.errors.EncodeError):
        encryptor.encrypt(values)


def test_values_out_of_range_are_refused(party: Party) -> None:
    encryptor, evaluator = party.encryptor, party.evaluator
    with pytest.raises(kw.errors.EncodeError, match=r"-32768\.\.=65536") as caught:
        encryptor.encrypt([0, T])
    assert (caught.value.index, caught.value.value) == (1, T)
    assert (caught.value.minimum, caught.value.maximum) == (-(T // 2), T - 1)
    with pytest.raises(kw.errors.EncodeError) as caught:
        encryptor.encrypt(np.zeros(1025, dtype=int))
    assert (caught.value.count, caught.value.bound) == (1025, 1024)
    with pytest.raises(kw.errors.EncodeError):
        evaluator.multiply(encryptor.encrypt([1]), T)


def test_noise_is_an_error_and_never_a_wrong_value(party: Party) -> None:
    encryptor, decryptor, evaluator, x = party.encryptor, party.decryptor, party.evaluator, party.x
    a, expected = encryptor.encrypt(x), x
    try:
        for _ in range(20):
            a, expected = evaluator.square(a), centred(expected * expected)
            np.testing.assert_array_equal(decryptor.decrypt(a), expected)
    except kw.errors.NoiseError as error:
        refused = error
    else:
        pytest.fail("the noise never grew too large")
    assert refused.operation == "multiply"
    assert refused.budget is not None
    assert refused.budget < 1


def test_errors_name_what_is_wrong(party: Party) -> None:
    encryptor, evaluator = party.encryptor, party.evaluator
    a = encryptor.encrypt([1])
    with pytest.raises(kw.errors.LevelError) as caught:
        evaluator.add(a, evaluator.mod_switch(a))
    assert (caught.value.level, caught.value.maximum) == (2, 1)
    with pytest.raises(kw.errors.LevelError, match="at level 0 one prime is left") as caught:
        evaluator.mod_switch(evaluator.mod_switch_to(a, 0))
    assert (caught.value.level, caught.value.needed, caught.value.available) == (0, 1, 0)
    assert "bootstrap" not in str(caught.value)
    with pytest.raises(kw.errors.MissingKeyError):
        evaluator.rotate_rows(a, 1)
    with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "degree"):
        evaluator.square(evaluator.multiply_lazy(a, a))
    with pytest.raises(kw.errors.ParameterError):
        encryptor.encrypt([1], packing="rows")
    with pytest.raises(kw.errors.ParameterError) as refused:
        kw.bfv.Parameters.from_bits(10, [50], [], 1 << 60, insecure=True)
    assert (refused.value.what, refused.value.value) == ("plaintext_modulus", 1 << 60)
    with pytest.raises(kw.errors.ParameterError, match="N13_QP214_T20"):
        kw.bfv.Parameters.preset("N13")
    with pytest.raises(kw.errors.SecurityError):
        kw.bfv.Parameters.from_bits(10, [50], [], T)
    no_slots = kw.bfv.Parameters.from_bits(10, [50], [50], 256, insecure=True)
    secret = kw.SecretKey.generate(no_slots)
    with pytest.raises(kw.errors.ParameterError):
        kw.bfv.Decryptor(secret).encrypt([1], packing="slots")
    assert kw.bfv.Decryptor(secret).encrypt([1]).packing == "coefficients"


def test_presets() -> None:
    assert kw.bfv.Parameters.presets()[:2] == ["N12_QP106_T17", "N13_QP214_T20"]
    parameters = kw.bfv.Parameters.preset("N12_QP106_T17")
    assert (parameters.n, parameters.plaintext_modulus % 8192, parameters.insecure) == (4096, 1, False)
    assert hash(parameters) == hash(kw.bfv.Parameters.preset("N12_QP106_T17"))
    assert "N = 2^12" in repr(parameters)
