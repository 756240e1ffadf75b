"""Flooded decryptions from Python; `crates/ckks/tests/flooding.rs` attacks them and checks their size."""

import itertools
import math
import os

import keywright as kw
import numpy as np
import pytest
from tests.processes import in_child

VALUES = np.linspace(-1, 1, 16)


@pytest.fixture(scope="module")
def secret() -> kw.SecretKey:
    return kw.SecretKey.generate(kw.Parameters.from_bits(12, q_bits=[60], p_bits=[49], log_scale=50))


@pytest.fixture(scope="module")
def ciphertext(secret: kw.SecretKey) -> kw.Ciphertext:
    return kw.Encryptor(kw.KeyGenerator(secret).public_key()).encrypt(VALUES, slots=16)


def test_values_are_off_by_no_more_than_the_bound_and_by_no_less_than_the_noise(
    secret: kw.SecretKey, ciphertext: kw.Ciphertext
) -> None:
    decryptor, flooding = kw.Decryptor(secret), kw.Flooding(bits=16, queries=100)
    bound = flooding.error_bound(ciphertext)
    errors = np.array([decryptor.decrypt(ciphertext, flooding) - VALUES for _ in range(20)])
    assert flooding.remaining == 80
    # Of 320 real parts of deviation bound / 9 / sqrt(2).
    assert bound / 9 / math.sqrt(2) < np.abs(errors).max() < bound
    assert np.abs(decryptor.decrypt(ciphertext) - VALUES).max() < ciphertext.error_bound < bound / 1000
    complex_values = decryptor.decrypt_complex(ciphertext, flooding)
    assert (np.abs(complex_values - VALUES) < bound).all()
    assert (complex_values.imag != 0).all()
    assert flooding.remaining == 79
    assert repr(flooding) == "Flooding(bits=16, queries=100, remaining=79)"


def test_more_bits_and_queries_take_more_noise(ciphertext: kw.Ciphertext) -> None:
    bounds = [
        kw.Flooding(bits, queries).error_bound(ciphertext)
        for bits, queries in [(10, 1), (10, 4), (12, 4), (12, 16)]
    ]
    # Twice each time; the deviation of the noise is up to 1.6 times what is needed.
    for lower, higher in itertools.pairwise(bounds):
        assert 2 / 1.6 < higher / lower < 2 * 1.6
    assert bounds[3] / bounds[0] == pytest.approx(8, rel=0.6)


def test_noise_that_leaves_nothing_is_refused(secret: kw.SecretKey, ciphertext: kw.Ciphertext) -> None:
    flooding = kw.Flooding(bits=60, queries=2**20)
    for refused in (
        lambda: flooding.error_bound(ciphertext),
        lambda: kw.Decryptor(secret).decrypt(ciphertext, flooding),
    ):
        with pytest.raises(
            kw.errors.NoiseError, match="bits of precision", check=lambda error: error.code == "flooding"
        ) as caught:
            refused()
        error = caught.value
        assert error.bits == 60
        assert error.queries == 2**20
        assert error.error_bound is not None
        assert error.limit is not None
        assert error.error_bound >= error.limit
        assert error.lost_bits == pytest.approx(math.log2(error.error_bound / ciphertext.error_bound))
    assert flooding.remaining == 2**20


def test_queries_run_out(secret: kw.SecretKey, ciphertext: kw.Ciphertext) -> None:
    decryptor, flooding = kw.Decryptor(secret), kw.Flooding(bits=8, queries=1)
    decryptor.decrypt(ciphertext, flooding)
    with pytest.raises(
        kw.errors.NoiseError, match="all 1 decryptions", check=lambda error: error.code == "queries"
    ) as caught:
        decryptor.decrypt(ciphertext, flooding)
    assert caught.value.queries == 1
    assert caught.value.bits is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_no_queries(secret: kw.SecretKey, ciphertext: kw.Ciphertext) -> None:
    """Each child had all of its parent's."""
    flooding = kw.Flooding(bits=8, queries=2)

    def child() -> str:
        with pytest.raises(kw.errors.RandomnessError) as refusal:
            kw.Decryptor(secret).decrypt(ciphertext, flooding)
        return refusal.value.code

    assert in_child(child) == "forked"
    assert flooding.remaining == 2


@pytest.mark.parametrize(("bits", "queries", "what"), [(0, 1, "bits"), (65, 1, "bits"), (20, 0, "queries")])
def test_ranges(bits: int, queries: int, what: str) -> None:
    with pytest.raises(kw.errors.ParameterError) as caught:
        kw.Flooding(bits, queries)
    assert caught.value.what == what
    assert caught.value.minimum == 1
