"""One owner for all tests."""

from __future__ import annotations

import pytest
from tests.engine.bootstrapping.owner import Bootstrapping, prepare


@pytest.fixture(scope="module")
def full() -> Bootstrapping:
    """Complex values in all slots."""
    return prepare()
