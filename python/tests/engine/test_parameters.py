from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest
from keywright.errors import SecurityError

if TYPE_CHECKING:
    from tests.conftest import Party


@pytest.mark.parametrize("name", kw.Parameters.presets())
def test_every_preset_is_secure_and_says_what_it_is(name: str) -> None:
    parameters = kw.Parameters.preset(name)
    log_n, log_qp, log_scale = (int("".join(filter(str.isdigit, part))) for part in name.split("_"))
    assert parameters.log_n == log_n
    assert parameters.n == 2 * parameters.max_slots == 2**log_n
    assert abs(parameters.log_qp - log_qp) < 1
    assert parameters.log_scale == log_scale
    assert parameters.scale == 2.0**log_scale
    assert parameters.max_level == len(parameters.q) - 1
    assert not parameters.insecure
    assert parameters.security == "128-bit classical"
    assert all(prime % (2 * parameters.n) == 1 for prime in parameters.q + parameters.p)


def test_security_is_stated_for_the_keys_that_are_allowed() -> None:
    """Keys with all of these primes are refused: 430 bits are the bound at 2^14."""
    parameters = kw.Parameters.from_bits(14, [50, *[40] * 8], [60, 60, 60], 40)
    assert parameters.security == "128-bit classical for keys of at most 430 bits"
    assert "for keys of at most 430 bits" in repr(parameters)
    with pytest.raises(kw.errors.SecurityError):
        kw.KeyGenerator(kw.SecretKey.generate(parameters)).switching_key(
            kw.KeySpec.rotation(parameters, 1, alpha=3)
        )


def test_equality_and_bytes(tmp_path: Path) -> None:
    parameters = kw.Parameters.preset("N13_QP214_S38")
    same = kw.Parameters.from_bytes(parameters.to_bytes())
    assert same == parameters
    assert hash(same) == hash(parameters)
    assert parameters != kw.Parameters.preset("N14_QP415_S45")
    assert parameters != "N13_QP214_S38"
    parameters.save(tmp_path / "parameters.kw")
    assert kw.Parameters.load(tmp_path / "parameters.kw") == parameters


def test_insecure_parameters_need_the_switch_and_show_it() -> None:
    with pytest.raises(kw.errors.SecurityError) as caught:
        kw.Parameters.from_bits(11, [50, 40], [50], 40)
    assert caught.value.bound == 53
    assert caught.value.modulus_bits is not None
    assert 89 < caught.value.modulus_bits < 91
    assert caught.value.log_n == 11
    assert "53" in str(caught.value)
    parameters = kw.Parameters.from_bits(11, [50, 40], [50], 40, insecure=True)
    assert parameters.insecure
    assert "insecure" in repr(parameters)
    assert kw.Parameters.from_bytes(parameters.to_bytes(), insecure=True).insecure


@pytest.mark.parametrize(
    ("log_n", "q_bits", "p_bits", "what"),
    [
        (9, [30], [30], "log_n"),
        (18, [30], [30], "log_n"),
        (11, [14] * 9, [30], "number of primes"),
        (11, [], [30], "ciphertext primes"),
        (11, [30] * 65, [30], "ciphertext primes"),
    ],
)
def test_impossible_primes(log_n: int, q_bits: list[int], p_bits: list[int], what: str) -> None:
    with pytest.raises(kw.errors.ParameterError) as caught:
        kw.Parameters.from_bits(log_n, q_bits, p_bits, 20, insecure=True)
    assert caught.value.what == what


@pytest.mark.parametrize("bits", [0, 1, 62, 63, 64, 2**31, 2**32 - 1])
def test_a_width_that_no_prime_has_is_named(bits: int) -> None:
    for make in (
        lambda: kw.Parameters.from_bits(11, [bits], [50], 20, insecure=True),
        lambda: kw.Parameters.from_bits(11, [50], [bits], 20, insecure=True),
        lambda: kw.bfv.Parameters.from_bits(11, [50, bits], [50], 65537, insecure=True),
    ):
        with pytest.raises(kw.errors.ParameterError, match=f"cannot have {bits} bits; use 2 to 61") as caught:
            make()
        assert (caught.value.what, caught.value.value) == ("bits of a prime", bits)
        assert (caught.value.minimum, caught.value.maximum) == (2, 61)


@pytest.mark.parametrize("log_scale", [0.0, -1.0, 91.0, float("nan"), float("inf")])
def test_a_scale_that_does_not_fit(log_scale: float) -> None:
    with pytest.raises(kw.errors.ScaleError):
        kw.Parameters.from_bits(11, [50, 40], [50], log_scale, insecure=True)
    with pytest.raises(kw.errors.ScaleError):
        kw.Parameters.from_bits(11, [50], [50], max(51.0, log_scale), insecure=True)


def test_a_scale_wider_than_the_first_prime_has_no_values_at_level_0() -> None:
    parameters = kw.Parameters.from_bits(11, [30, 40, 40], [50], 40, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    encryptor = kw.Encryptor(kw.KeyGenerator(secret).public_key())
    values = np.linspace(-1, 1, 1024)
    with pytest.raises(kw.errors.EncodeError):
        encryptor.encrypt(values, level=0)
    high = encryptor.encrypt(values, level=1)
    assert np.abs(kw.Decryptor(secret).decrypt(high) - values).max() < high.error_bound
    dropped = kw.Evaluator(parameters).drop_to_level(high, 0)
    with pytest.raises(kw.errors.NoiseError, check=lambda error: error.code == "overflow"):
        kw.Decryptor(secret).decrypt(dropped)


def test_unknown_preset() -> None:
    with pytest.raises(kw.errors.ParameterError, match="N13_QP214_S38") as caught:
        kw.Parameters.preset("N12")
    assert caught.value.value == "N12"


def test_nothing_is_pickled_and_no_secret_is_shown(small: Party) -> None:
    ciphertext = small.encryptor.encrypt([1.0])
    things = [
        small.parameters,
        small.secret,
        small.generator,
        small.keys,
        small.encryptor,
        small.decryptor,
        small.evaluator,
        small.generator.public_key(),
        small.generator.rotation_key(1),
        next(iter(small.keys)),
        ciphertext,
        small.decryptor.encrypt([1.0]),
    ]
    for thing in things:
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(thing)
    for secret in (small.secret, small.generator, small.decryptor):
        assert repr(secret) == f"{type(secret).__name__}(..)"


def test_threads() -> None:
    before = kw.threads()
    try:
        kw.set_threads(3)
        assert kw.threads() == 3
        for count in (0, 257, 10**9):
            with pytest.raises(kw.errors.ParameterError) as caught:
                kw.set_threads(count)
            assert (caught.value.value, caught.value.minimum, caught.value.maximum) == (count, 1, 256)
        assert kw.threads() == 3
    finally:
        kw.set_threads(before)
    kw.set_threads()
    assert kw.threads() >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own(small: Party) -> None:
    expected = small.encryptor.encrypt([0.5])
    child = os.fork()
    if child == 0:
        # Threads of the parent do not exist here; waiting for them would never end.
        error = abs(small.decryptor.decrypt(small.evaluator.rotate(expected, 0))[0] - 0.5)
        os._exit(0 if error <= expected.error_bound else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_calls_of_the_engine_import_nothing() -> None:
    """A process that is forked while another thread imports a module waits for it without end: numpy imported
    ``numpy.ma`` at the first encryption."""
    program = """
import sys
import keywright as kw
before = set(sys.modules)
parameters = kw.Parameters.from_bits(10, [40, 30], [45], 30, insecure=True)
secret = kw.SecretKey.generate(parameters)
generator = kw.KeyGenerator(secret)
evaluator = kw.Evaluator(parameters, generator.evaluation_keys(rotations=[1]))
x = evaluator(kw.Encryptor(generator.public_key()).encrypt([1.0, 2.0]))
kw.Decryptor(secret).decrypt((x * x + (x << 1)).ciphertext)
print(sorted(set(sys.modules) - before))
"""
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["ckks", "bfv", "thin"])
def test_bytes_alone_do_not_switch_the_check_off(tmp_path: Path, kind: str) -> None:
    """A server's bytes chose what a client was secure with."""
    given: Any
    if kind == "bfv":
        given = kw.bfv.Parameters.from_bits(10, [50, 50], [50], 12289, insecure=True)
    else:
        given = kw.Parameters.from_bits(10, [50, 40], [50], 40, insecure=True)
    if kind == "thin":
        given = kw.thin.Parameters(given, scale=1 << 40, fraction_bits=20)
    assert given.insecure
    assert "insecure" in repr(given)
    reads: list[tuple[Any, Any]] = [(type(given).from_bytes, given.to_bytes())]
    if kind != "thin":
        given.save(tmp_path / "parameters.kw")
        reads.append((type(given).load, tmp_path / "parameters.kw"))
    for read, source in reads:
        with pytest.raises(SecurityError, match="insecure=True"):
            read(source)
        assert read(source, insecure=True) == given
