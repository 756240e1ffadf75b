from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import keywright as kw
import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import Party

ENTROPY = bytes(range(32))


def test_specs_describe_keys(small: Party) -> None:
    parameters = small.parameters
    spec = kw.KeySpec.rotation(parameters, -3, level=2, alpha=2)
    assert (spec.kind, spec.steps, spec.level, spec.alpha, spec.seeded) == ("rotation", -3, 2, 2, True)
    assert spec.galois_element == pow(5, parameters.max_slots - 3, 2 * parameters.n)
    assert spec == kw.KeySpec.galois(parameters, spec.galois_element, level=2, alpha=2)
    assert spec.digits == [(0, 1), (1, 3)] or spec.digits == [(0, 2), (2, 3)]
    limbs = spec.level + 1 + len(spec.special)
    assert spec.bytes == parameters.n * 8 * len(spec.digits) * limbs + 32
    unseeded = kw.KeySpec.rotation(parameters, -3, level=2, alpha=2, seeded=False)
    assert unseeded.bytes == spec.unseeded_bytes == 2 * (spec.bytes - 32)
    assert kw.KeySpec.conjugation(parameters).kind == "conjugation"
    relinearization = kw.KeySpec.relinearization(parameters)
    assert (relinearization.kind, relinearization.steps) == ("relinearization", None)
    assert relinearization.galois_element is None
    assert relinearization.level == parameters.max_level
    assert len({spec, kw.KeySpec.rotation(parameters, -3, level=2, alpha=2), relinearization}) == 2


def test_keys_are_what_their_specs_say(small: Party) -> None:
    for seeded in (True, False):
        key = small.generator.rotation_key(5, level=3, seeded=seeded)
        assert key.spec == kw.KeySpec.rotation(small.parameters, 5, level=3, seeded=seeded)
        assert key.bytes == key.spec.bytes
        assert key.truncate(1).spec.level == 1
        assert kw.keys.SwitchingKey.from_bytes(key.to_bytes(), small.parameters).spec == key.spec
    with pytest.raises(kw.errors.LevelError):
        small.generator.rotation_key(5, level=2).truncate(3)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"level": 6}, kw.errors.LevelError),
        ({"alpha": 0}, kw.errors.ParameterError),
        ({"alpha": 99}, kw.errors.ParameterError),
        ({"special": [0]}, kw.errors.ParameterError),
        ({"special": [6, 6]}, kw.errors.ParameterError),
        ({"special": [99]}, kw.errors.ParameterError),
        ({"special": []}, kw.errors.ParameterError),
    ],
)
def test_illegal_specs(small: Party, arguments: dict[str, int], error: type[kw.KeywrightError]) -> None:
    with pytest.raises(error):
        kw.KeySpec.rotation(small.parameters, 1, **arguments)  # type: ignore[arg-type]


def test_illegal_galois_elements(small: Party) -> None:
    for element in (0, 2, 2 * small.parameters.n + 1):
        with pytest.raises(kw.errors.ParameterError):
            kw.KeySpec.galois(small.parameters, element)


@pytest.mark.parametrize("turns", [0, 1, -2])
def test_no_key_of_the_rotation_that_moves_nothing(small: Party, turns: int) -> None:
    """Whole turns are rotations by 0 steps."""
    steps = turns * small.parameters.max_slots
    for keys in (
        lambda: kw.KeySpec.rotation(small.parameters, steps),
        lambda: kw.KeySpec.galois(small.parameters, 1),
        lambda: small.generator.rotation_key(steps),
        lambda: small.generator.evaluation_keys(rotations=[1, steps]),
        lambda: kw.keys.MasterKeys.generate(small.secret, [1, steps], [55]),
    ):
        with pytest.raises(kw.errors.ParameterError, match="a rotation by 0 steps moves nothing") as caught:
            keys()
        assert (caught.value.what, caught.value.value) == ("rotation", 0)


def test_a_key_above_the_bound_is_refused() -> None:
    parameters = kw.Parameters.from_bits(13, [50, 50, 50, 50], [50], 40)
    with pytest.raises(kw.errors.SecurityError) as caught:
        kw.KeySpec.relinearization(parameters)
    assert caught.value.bound == 214
    assert caught.value.modulus_bits is not None
    assert 249 < caught.value.modulus_bits < 251
    assert kw.KeySpec.relinearization(parameters, level=2).level == 2


def test_key_sets(small: Party, other: Party) -> None:
    keys = kw.EvaluationKeys(small.parameters)
    assert (len(keys), keys.bytes, list(keys)) == (0, 0, [])
    key = small.generator.relinearization_key()
    keys.add(key)
    keys.add(small.generator.rotation_key(1))
    keys.add(small.generator.rotation_key(1, level=1))
    assert len(keys) == 3
    assert key.spec in list(keys)
    assert keys.bytes > key.bytes
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        keys.add(other.generator.relinearization_key())
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.Evaluator(other.parameters, keys)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        other.generator.switching_key(key.spec)


def test_keys_added_later_are_used(small: Party) -> None:
    keys = kw.EvaluationKeys(small.parameters)
    evaluator = kw.Evaluator(small.parameters, keys)
    ciphertext = small.encryptor.encrypt([1.0, 2.0], slots=2)
    with pytest.raises(kw.errors.MissingKeyError):
        evaluator.rotate(ciphertext, 1)
    keys.add(small.generator.rotation_key(1))
    small.assert_decrypts(evaluator.rotate(ciphertext, 1), np.array([2.0, 1.0], complex))


def test_progress_is_reported_and_can_stop(small: Party) -> None:
    seen: list[tuple[int, int]] = []
    small.generator.evaluation_keys(rotations=[1, 2], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small.generator.evaluation_keys(rotations=[1, 2], progress=stop)


def test_entropy_decides_keys(small: Party) -> None:
    again = kw.SecretKey.generate(small.parameters, ENTROPY)
    assert again.to_bytes() == small.secret.to_bytes()
    fresh = kw.SecretKey.generate(small.parameters)
    assert fresh.to_bytes() != small.secret.to_bytes()
    with pytest.raises(ValueError, match="32"):
        kw.SecretKey.generate(small.parameters, b"short")


def test_a_key_set_is_streamed_to_a_file(small: Party, tmp_path: Path) -> None:
    path = tmp_path / "keys.kw"
    specs = [kw.KeySpec.rotation(small.parameters, k, level=k) for k in (1, 2, 4)]
    small.generator.save_evaluation_keys(path, specs)
    keys = kw.EvaluationKeys.load(path, small.parameters)
    assert set(keys) == set(specs)
    info = kw.keys.inspect(path)
    assert (info["kind"], info["secret"], info["insecure"]) == ("a set of switching keys", False, True)
    assert [(key["rotation"], key["level"]) for key in info["keys"]] == [(1, 1), (2, 2), (4, 4)]
    assert info["bytes"] == path.stat().st_size

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    interrupted = tmp_path / "interrupted.kw"
    with pytest.raises(KeyboardInterrupt):
        small.generator.save_evaluation_keys(interrupted, specs, progress=stop)
    assert [entry.name for entry in tmp_path.iterdir()] == ["keys.kw"]
