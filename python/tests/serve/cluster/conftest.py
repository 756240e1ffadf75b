"""Clusters that start on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keywright.errors.service import ServeError

if TYPE_CHECKING:
    from keywright.serve.cluster import RayWorkers, Replicas

LATE = "timed out during startup"

STARTS = 3
"""Attempts to start a cluster."""


@pytest.fixture(scope="session", autouse=True)
def _no_token() -> Iterator[None]:
    """Keep the tests' token separate from the user's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_AUTH_MODE", "disabled")
        yield


def start(state: Path, replicas: Replicas) -> RayWorkers:
    """Start a cluster. Ray gives its processes 30 s, which are too few on a loaded machine: then again, at
    most `STARTS` times in all."""
    from keywright.serve.cluster import RayWorkers

    for _ in range(STARTS - 1):
        try:
            return RayWorkers("local", state, replicas)
        except ServeError as error:
            if LATE not in str(error):
                raise
    return RayWorkers("local", state, replicas)
