"""Keys that a server derives from master keys, through the Python API."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keywright as kw
import numpy as np
import pytest

ENTROPY = bytes(range(32))
EXTRA = [55, 55]


@pytest.fixture(scope="module")
def parameters() -> kw.Parameters:
    return kw.Parameters.from_bits(11, [55, 40, 40, 40], [55, 55], 35, insecure=True)


@pytest.fixture(scope="module")
def secret(parameters: kw.Parameters) -> kw.SecretKey:
    return kw.SecretKey.generate(parameters, ENTROPY)


@pytest.fixture(scope="module")
def masters(secret: kw.SecretKey) -> kw.keys.MasterKeys:
    return kw.keys.MasterKeys.generate(secret, [1, 4, 16], EXTRA, conjugation=True, entropy=ENTROPY)


def rotations(parameters: kw.Parameters, steps: list[int], level: int | None = None) -> list[kw.KeySpec]:
    return [kw.KeySpec.rotation(parameters, step, level) for step in steps]


def test_rotations_with_derived_keys_are_within_the_bound_that_ciphertexts_carry(
    parameters: kw.Parameters, secret: kw.SecretKey, masters: kw.keys.MasterKeys
) -> None:
    generator = kw.KeyGenerator(secret)
    steps = [1, 3, 5, 22, 64]
    specs = [*rotations(parameters, steps), kw.KeySpec.conjugation(parameters)]
    derived = kw.Evaluator(parameters, masters.derive(specs))
    direct = kw.Evaluator(parameters, generator.evaluation_keys(rotations=steps, relinearization=False))
    values = np.random.default_rng(0).uniform(-1, 1, parameters.max_slots)
    fresh = kw.Encryptor(generator.public_key()).encrypt(values)
    decryptor = kw.Decryptor(secret)
    for step in steps:
        ours, theirs = derived.rotate(fresh, step), direct.rotate(fresh, step)
        for rotated in (ours, theirs):
            error = np.abs(decryptor.decrypt(rotated) - np.roll(values, -step)).max()
            assert error <= rotated.error_bound
        assert ours.error_bound >= theirs.error_bound
    conjugated = derived.conjugate(fresh)
    assert np.abs(decryptor.decrypt(conjugated) - values).max() <= conjugated.error_bound


def test_what_was_forgotten_is_derived_again(parameters: kw.Parameters, masters: kw.keys.MasterKeys) -> None:
    specs = rotations(parameters, [2, 6, 21])
    first = {key.spec.steps: key for key in masters.derivation(specs)}
    alone = next(masters.derivation(rotations(parameters, [21])))
    assert alone.spec == first[21].spec
    assert alone.bytes == first[21].bytes == specs[2].unseeded_bytes
    with ThreadPoolExecutor(4) as pool:
        sets = list(pool.map(lambda _: masters.derive(specs), range(4)))
    assert all(set(keys) == set(sets[0]) for keys in sets)
    derivation = masters.derivation(specs)
    assert (len(derivation), derivation.derived >= 3, derivation.depth) == (3, True, 3)
    assert derivation.decomposed >= 1
    next(derivation)
    assert len(derivation) == 2


def test_masters_through_bytes_and_files(
    parameters: kw.Parameters, masters: kw.keys.MasterKeys, tmp_path: Path
) -> None:
    data = masters.to_bytes()
    again = kw.keys.MasterKeys.from_bytes(data, parameters)
    assert again.to_bytes() == data
    assert (len(again), again.extra) == (4, masters.extra)
    assert again.galois_elements == masters.galois_elements
    # Seeded: less than half of both halves of every key.
    assert len(data) < masters.bytes
    path = tmp_path / "masters.kw"
    masters.save(path)
    assert kw.keys.MasterKeys.load(path, parameters).bytes == masters.bytes
    info = kw.keys.inspect(path)
    assert (info["kind"], len(info["keys"])) == ("a set of master keys", 4)
    for damaged in (data[:-1], data + b"x", data[:100], b"", data[:60] + b"\xff" + data[61:]):
        with pytest.raises(kw.errors.FormatError):
            kw.keys.MasterKeys.from_bytes(damaged, parameters)
    other = kw.Parameters.from_bits(11, [55, 40, 40], [55, 55], 35, insecure=True)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        kw.keys.MasterKeys.from_bytes(data, other)


def test_derived_keys_are_not_written(parameters: kw.Parameters, masters: kw.keys.MasterKeys) -> None:
    keys = masters.derive(rotations(parameters, [5]))
    with pytest.raises(kw.errors.MissingKeyError) as caught:
        keys.to_bytes()
    assert caught.value.code == "written"


def test_what_masters_do_not_make(parameters: kw.Parameters, secret: kw.SecretKey) -> None:
    masters = kw.keys.MasterKeys.generate(secret, [1, 4], EXTRA, entropy=ENTROPY)
    for spec, reason in (
        (kw.KeySpec.relinearization(parameters), "kind"),
        (kw.KeySpec.conjugation(parameters), "unreachable"),
        (kw.KeySpec.rotation(parameters, 300), "unreachable"),
    ):
        with pytest.raises(kw.errors.MissingKeyError) as caught:
            masters.derive([spec])
        assert caught.value.code == reason
    with pytest.raises(kw.errors.ParameterError):
        masters.derive(rotations(parameters, [1]), max_hops=0)
    low = kw.keys.MasterKeys.generate(secret, [1, 4], EXTRA, level=1)
    assert low.bytes < masters.bytes
    assert len(low.derive(rotations(parameters, [5], level=1))) == 1
    with pytest.raises(kw.errors.MissingKeyError, check=lambda error: error.code == "unreachable"):
        low.derive(rotations(parameters, [5], level=2))
    with pytest.raises(kw.errors.ParameterError):
        kw.keys.MasterKeys.generate(secret, [1], [])
    other = kw.Parameters.from_bits(11, [50, 40], [55], 35, insecure=True)
    with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "parameters"):
        masters.derive(rotations(other, [1]))


def test_masters_are_checked_at_their_own_modulus() -> None:
    # 180 bits of parameters are secure at 2^13, 60 more are not; without q_1 they are.
    parameters = kw.Parameters.from_bits(13, [60, 60], [60], 40)
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    with pytest.raises(kw.errors.SecurityError) as caught:
        kw.keys.MasterKeys.generate(secret, [1], [60])
    assert caught.value.bound == 214
    assert kw.keys.MasterKeys.generate(secret, [1], [60], level=0).modulus_bits <= 214


def test_progress_is_reported_and_can_stop(
    parameters: kw.Parameters, secret: kw.SecretKey, masters: kw.keys.MasterKeys
) -> None:
    seen: list[tuple[int, int]] = []
    kw.keys.MasterKeys.generate(
        secret, [1, 2], EXTRA, progress=lambda done, total: seen.append((done, total))
    )
    masters.derive(rotations(parameters, [1, 2]), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)] * 2

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        masters.derive(rotations(parameters, [1, 2]), progress=stop)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_what_waits_for_a_key(tmp_path: Path) -> None:
    """A key of 250 steps, all of which would be made before the first signal is handled."""
    parameters = kw.Parameters.from_bits(13, [55, 40, 40, 40], [55, 55], 35, insecure=True)
    secret = kw.SecretKey.generate(parameters, ENTROPY)
    masters = kw.keys.MasterKeys.generate(secret, [1], EXTRA, entropy=ENTROPY)
    specs = rotations(parameters, [250])
    generator = kw.KeyGenerator(secret)
    path = tmp_path / "keys.kw"
    generator.save_evaluation_keys(path, rotations(parameters, [2]))
    streamed = kw.EvaluationKeys.stream(path, parameters, 1 << 30, [], masters, specs, 255)
    evaluator = kw.Evaluator(parameters, streamed)
    fresh = kw.Encryptor(generator.public_key()).encrypt([1.0])
    derivation = masters.derivation(specs, 255)
    for work in (lambda: next(derivation), lambda: evaluator.rotate(fresh, 250)):
        timer = threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        timer.join()
    seen = streamed.streaming
    assert seen is not None
    assert (seen["loads"], len(derivation)) == (0, 1)
    # It causes no damage.
    rotated = evaluator.rotate(fresh, 250)
    error = np.abs(kw.Decryptor(secret).decrypt(rotated) - np.roll([1.0, *[0.0] * 4095], -250)).max()
    assert error <= rotated.error_bound
