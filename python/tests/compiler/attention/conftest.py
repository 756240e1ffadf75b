"""Random numbers of the tests."""

import numpy as np
import pytest
from tests.compiler.attention.layers import RNG, SEED


@pytest.fixture(autouse=True)
def own_numbers() -> None:
    """Every test draws the same numbers, whatever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(SEED).bit_generator.state
