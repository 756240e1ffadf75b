"""The schedule of polynomials: depth and relinearizations."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from keywright._core import polynomial_depth, polynomial_relinearizations
from keywright.minimax.series import BLOCK, chebyshev
from keywright.program.operands.polynomials import Basis
from tests.compiler.approximating.polynomial_counting import LEVELS, polynomials


def test_relinearizations_are_those_that_the_engine_makes() -> None:
    command = [sys.executable, "-m", "tests.compiler.approximating.polynomial_counting"]
    folder = Path(__file__).parents[3]
    environment = {**os.environ, "KEYWRIGHT_BACKEND": "counted"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    counted = json.loads(done.stdout)
    products = counted["products"]
    # Each level has its own number of words, so that a wrong level shows, too.
    assert len(set(products)) == len(products) == LEVELS + 1
    for spec, words in zip(polynomials(), counted["polynomials"], strict=True):
        offsets = polynomial_relinearizations(spec.coefficients, spec.basis)
        assert sum(products[LEVELS - offset] for offset in offsets) == words, spec


@pytest.mark.parametrize("basis", ["monomial", "chebyshev"])
@pytest.mark.parametrize("degree", range(1, 64))
def test_schedules_of_all_coefficients(degree: int, basis: Basis) -> None:
    coefficients = np.random.default_rng(degree).uniform(-1, 1, degree + 1)
    offsets = polynomial_relinearizations(coefficients, basis)
    depth = polynomial_depth(degree)
    assert depth == int(np.ceil(np.log2(degree + 1)))
    assert offsets == sorted(offsets)
    assert all(0 <= offset < depth for offset in offsets)
    # Paterson and Stockmeyer: about 2 sqrt(2 d) products beside the doublings, never more than Horner.
    assert len(offsets) <= max(degree - 1, 0)
    assert len(offsets) <= 2 * np.sqrt(2 * degree) + depth
    assert max(offsets, default=0) == max(depth - 1, 0) or degree == 1 << (depth - 1)


def test_zero_coefficients_save_relinearizations() -> None:
    every = np.random.default_rng(3).uniform(-1, 1, 64)
    odd = every * (np.arange(64) % 2)
    assert len(polynomial_relinearizations(every, "chebyshev")) == 15
    assert len(polynomial_relinearizations(odd, "chebyshev")) == 14
    assert polynomial_relinearizations([1, 0, 0], "monomial") == []


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (BLOCK,), (2, BLOCK // 2 + 1), (BLOCK + 1, 2)])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 8, 63])
def test_chebyshev_series_are_those_of_numpy(shape: tuple[int, ...], degree: int) -> None:
    rng = np.random.default_rng(degree)
    values, coefficients = rng.uniform(-1, 1, shape), rng.normal(size=degree + 1)
    before = values.copy()
    for given in (values, values.T):
        expected = np.polynomial.chebyshev.chebval(given, coefficients)
        assert np.array_equal(chebyshev(given, coefficients), expected)
    assert np.array_equal(values, before)
