"""Keys and ciphertexts of several rings: whole computations, files, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.bootstraps import DEGREE_30

ENTROPY = bytes(range(32))
SLOTS = 256


@dataclass(frozen=True)
class Rings:
    """Rings of degree 2^13, 2^12 to level 3 and 2^11 to level 2, with keys for them and between them."""

    parameters: kw.Parameters
    secret: kw.SecretKey
    generator: kw.KeyGenerator
    specs: list[kw.KeySpec]
    keys: kw.EvaluationKeys
    evaluator: kw.Evaluator
    decryptor: kw.Decryptor

    def check(self, ciphertext: kw.Ciphertext, expected: NDArray[np.float64]) -> None:
        error = np.abs(self.decryptor.decrypt(ciphertext) - expected).max()
        assert error <= ciphertext.error_bound, f"{error} above {ciphertext.error_bound}"


@pytest.fixture(scope="module")
def rings() -> Rings:
    alone = kw.Parameters.from_bits(13, [55, 40, 40, 40, 40], [50, 50], 40, insecure=True)
    parameters = alone.with_subrings([(11, 2, None), (12, 3, [5, 6])])
    specs = [
        kw.KeySpec.rotation(parameters, 1, level=2),
        *(kw.KeySpec.rotation(parameters.subring(log_n), 1) for log_n in (12, 11)),
        *(kw.KeySpec.relinearization(parameters.subring(log_n)) for log_n in (12, 11)),
        *kw.KeySpec.ring_down(parameters, 12),
        *kw.KeySpec.ring_down(parameters, 11, source=12),
        kw.KeySpec.ring_up(parameters, 11),
        kw.KeySpec.ring_up(parameters, 11, log_n=12),
    ]
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    generator = kw.KeyGenerator(secret, ENTROPY)
    keys = generator.evaluation_keys(relinearization=False, specs=specs)
    evaluator = kw.Evaluator(parameters, keys)
    return Rings(parameters, secret, generator, specs, keys, evaluator, kw.Decryptor(secret, ENTROPY))


def values(seed: int) -> NDArray[np.float64]:
    vector: NDArray[np.float64] = np.random.default_rng(seed).uniform(-1, 1, SLOTS)
    return vector


def encrypted(rings: Rings, vector: NDArray[np.float64], log_n: int, level: int) -> kw.Ciphertext:
    encryptor = kw.Encryptor(rings.generator.public_key(log_n), ENTROPY)
    return encryptor.encrypt(vector, slots=len(vector), level=level)


def test_parameters_list_their_rings(rings: Rings) -> None:
    parameters = rings.parameters
    assert [ring.log_n for ring in parameters.subrings] == [12, 11]
    assert [ring.max_level for ring in parameters.subrings] == [3, 2]
    assert parameters.subring(13) == parameters
    ring = parameters.subring(11)
    assert (ring.q, ring.p) == (parameters.q[:3], parameters.p)
    assert ring.subrings == []
    assert "subring 2^11 to level 2" in repr(parameters)
    again = kw.Parameters.from_bytes(parameters.to_bytes(), insecure=True)
    assert again == parameters
    assert hash(again) == hash(parameters)
    assert again.subrings == parameters.subrings
    alone = kw.Parameters.from_bits(13, [55, 40, 40, 40, 40], [50, 50], 40, insecure=True)
    assert alone != parameters
    with pytest.raises(kw.errors.ParameterError, match="no ring of N = 2\\^10") as refused:
        parameters.subring(10)
    assert (refused.value.what, refused.value.value) == ("log_n", 10)


def test_a_computation_in_three_rings(rings: Rings) -> None:
    evaluator, x, y = rings.evaluator, values(1), values(2)
    top = encrypted(rings, x, 13, 3)
    assert (top.log_n, top.n) == (13, 2**13)
    a = evaluator.switch_ring(top, 12)
    assert (a.log_n, a.level, a.slots) == (12, 3, SLOTS)
    rings.check(a, x)
    a = evaluator.multiply(a, encrypted(rings, y, 12, 3))
    a = evaluator.switch_ring(evaluator.rotate(a, 1), 11)
    expected = np.roll(x * y, -1)
    rings.check(a, expected)
    diagonals = {0: np.full(SLOTS, 0.5), 1: y}
    transform = kw.LinearTransform(rings.parameters.subring(11), diagonals, slots=SLOTS, level=2)
    keys = rings.generator.evaluation_keys(
        relinearization=False, specs=[*rings.specs, *transform.key_specs()]
    )
    evaluator = kw.Evaluator(rings.parameters, keys)
    a = evaluator.linear_transform(a, transform)
    expected = 0.5 * expected + y * np.roll(expected, -1)
    rings.check(a, expected)
    a = evaluator.polynomial(a, [0.25, -0.5])
    expected = 0.25 - 0.5 * expected
    rings.check(a, expected)
    a = evaluator.sub(evaluator.add(a, y), 0.125)
    expected = expected + y - 0.125
    for log_n in (12, 13):
        up = evaluator.switch_ring(a, log_n)
        assert (up.log_n, up.level) == (log_n, 0)
        rings.check(up, expected)
        rings.check(evaluator.rotate(up, 1), np.roll(expected, -1))
    symmetric = rings.decryptor.encrypt(x, slots=SLOTS, level=1, log_n=11)
    assert symmetric.log_n == 11
    rings.check(symmetric.expand(), x)


def test_views_of_slots(rings: Rings) -> None:
    x = values(3)
    wide = encrypted(rings, np.tile(x, 16), 13, 2)
    with pytest.raises(kw.errors.OperandError, check=lambda error: error.code == "packing"):
        rings.evaluator.switch_ring(wide, 12)
    narrow = rings.evaluator.view_slots(wide, SLOTS)
    rings.check(narrow, x)
    rings.check(rings.evaluator.view_slots(rings.evaluator.switch_ring(narrow, 12), 1024), np.tile(x, 4))
    with pytest.raises(kw.errors.ParameterError):
        rings.evaluator.view_slots(wide, 8192)


def test_specs_name_their_ring(rings: Rings) -> None:
    parameters = rings.parameters
    down = kw.KeySpec.ring_down(parameters, 11)
    assert [(spec.kind, spec.log_n, spec.source_log_n, spec.part) for spec in down] == [
        ("ring_down", 11, 13, part) for part in range(4)
    ]
    up = kw.KeySpec.ring_up(parameters, 11, log_n=12)
    assert (up.kind, up.log_n, up.source_log_n, up.part, up.level) == ("ring_up", 12, 11, None, 2)
    own, small = (kw.KeySpec.rotation(ring, 1, level=1) for ring in (parameters, parameters.subring(11)))
    assert own != small
    assert (small.log_n, small.source_log_n) == (11, None)
    assert small.bytes == own.bytes // 4 + 24
    assert "N = 2^11" in repr(small)
    for wrong in (13, 14):
        with pytest.raises(kw.errors.ParameterError):
            kw.KeySpec.ring_down(parameters, wrong)
    with pytest.raises(kw.errors.ParameterError):
        kw.KeySpec.ring_up(parameters, 12, level=2, log_n=11)


def test_files_hold_all_rings(rings: Rings, tmp_path: Path) -> None:
    parameters, x = rings.parameters, values(4)
    rings.secret.save(tmp_path / "secret.kw")
    secret = kw.SecretKey.load(tmp_path / "secret.kw", parameters)
    rings.keys.save(tmp_path / "keys.kw")
    loaded = kw.EvaluationKeys.load(tmp_path / "keys.kw", parameters)
    assert len(loaded) == len(rings.specs)
    assert set(loaded) == set(rings.specs) == set(rings.keys)
    streamed = kw.EvaluationKeys.stream(
        tmp_path / "keys.kw", parameters, 2 * max(spec.bytes for spec in rings.specs), [rings.specs]
    )
    assert set(streamed) == set(rings.specs)
    a = encrypted(rings, x, 13, 2)
    for keys in (loaded, streamed):
        evaluator = kw.Evaluator(parameters, keys)
        b = evaluator.rotate(evaluator.switch_ring(evaluator.switch_ring(a, 12), 11), 1)
        b.save(tmp_path / "ciphertext.kw")
        for back in (
            kw.Ciphertext.load(tmp_path / "ciphertext.kw", parameters),
            kw.Ciphertext.from_bytes(b.to_bytes(), parameters),
        ):
            assert back.log_n == 11
            error = np.abs(kw.Decryptor(secret).decrypt(back) - np.roll(x, -1)).max()
            assert error <= back.error_bound
    key = rings.generator.switching_key(rings.specs[-1])
    assert kw.keys.SwitchingKey.from_bytes(key.to_bytes(), parameters).spec == rings.specs[-1]
    public = rings.generator.public_key(11)
    assert kw.PublicKey.from_bytes(public.to_bytes(), parameters).parameters == parameters.subring(11)
    head = kw.keys.set_head(rings.specs[1:], parameters)
    assert kw.keys.read_set_head(head, parameters) == rings.specs[1:]


def test_rings_are_not_mixed(rings: Rings) -> None:
    a, b = (encrypted(rings, values(5), log_n, 2) for log_n in (13, 12))
    for operation in (rings.evaluator.add, rings.evaluator.multiply):
        with pytest.raises(
            kw.errors.MismatchError, match="switch_ring", check=lambda error: error.code == "parameters"
        ):
            operation(a, b)
    with pytest.raises(kw.errors.LevelError):
        rings.evaluator.switch_ring(encrypted(rings, values(5), 13, 4), 12)
    with pytest.raises(kw.errors.MissingKeyError, match="switch down from N = 2\\^13"):
        rings.evaluator.switch_ring(a, 11)
    stranger = kw.Parameters.preset("N13_QP214_S38")
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        rings.generator.evaluation_keys(specs=[kw.KeySpec.rotation(stranger, 1)])
    with pytest.raises(kw.errors.ParameterError, match="each smaller than the one before"):
        stranger.with_subrings([(13, 1, None)])


def test_security_is_that_of_the_ring() -> None:
    parameters = kw.Parameters.preset("N14_QP415_S45")
    with pytest.raises(kw.errors.SecurityError) as refused:
        parameters.with_subrings([(13, 4, None)])
    assert (refused.value.log_n, refused.value.bound) == (13, 214)
    ring = parameters.with_subrings([(13, 3, [8])]).subring(13)
    assert (ring.secret_distribution, ring.max_level, len(ring.p)) == ("ternary", 3, 1)
    # 185 bits of ciphertexts leave no room for a special prime of 50.
    with pytest.raises(kw.errors.SecurityError):
        kw.KeySpec.rotation(ring, 1, level=3, alpha=1, special=[4])
    assert kw.KeySpec.rotation(ring, 1, level=2, alpha=1, special=[4]).digits == [(0, 1), (1, 2), (2, 3)]


def test_a_bootstrap_begins_in_a_small_ring() -> None:
    bits = [50, 40, 40, 45, 45, 45] + 14 * [50]
    alone = kw.Parameters.from_bits(12, bits, [50, 50, 50], 45, insecure=True)
    parameters = alone.with_subrings([(11, 5, None), (10, 3, None)])
    plan = kw.BootstrapperPlan(
        parameters,
        **DEGREE_30,
        slots=SLOTS,
        values="real",
        output_level=5,
        input_log_n=10,
    )
    assert (plan.input_log_n, plan.input_level) == (10, 2)
    rings = {spec.log_n for spec in plan.stage_keys["slots_to_coeffs"]}
    assert rings == {10}
    assert [spec.kind for spec in plan.stage_keys["mod_raise"]] == ["ring_up_to_sparse", "sparse_to_dense"]
    specs = [
        *plan.required_keys,
        *kw.KeySpec.ring_down(parameters, 11),
        *kw.KeySpec.ring_down(parameters, 10, source=11),
        kw.KeySpec.relinearization(parameters.subring(11)),
    ]
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    keys = kw.KeyGenerator(secret, ENTROPY).evaluation_keys(relinearization=False, specs=specs)
    evaluator, decryptor = kw.Evaluator(parameters, keys), kw.Decryptor(secret, ENTROPY)
    x = values(6)
    a = decryptor.encrypt(x, slots=SLOTS, level=5, magnitude=1).expand()
    bootstrapper = kw.Bootstrapper(plan)
    for _ in range(2):
        low = evaluator.switch_ring(a, 11)
        low = evaluator.square(low)
        low = evaluator.switch_ring(evaluator.drop_to_level(low, 3), 10)
        assert (low.log_n, low.level) == (10, 3)
        a = bootstrapper.bootstrap(evaluator, low)
        x = x * x
        assert (a.log_n, a.level, a.slots) == (12, 5, SLOTS)
        error = np.abs(decryptor.decrypt(a) - x).max()
        assert error <= a.error_bound < 2**-10
    with pytest.raises(kw.errors.ParameterError, match="one pass"):
        kw.BootstrapperPlan(
            parameters,
            **DEGREE_30,
            slots=SLOTS,
            order="mod_raise_first",
            input_log_n=10,
        )
