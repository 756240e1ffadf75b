"""A small network, served to thin clients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.service import ServiceLimits
from tests.serve.network import INPUTS, WORKERS, listening, make_full, make_thin
from tests.serve.storage.storage_servers import ENVIRONMENT, Place, Servers, own_place, servers


@pytest.fixture(scope="session", autouse=True)
def _workers() -> Iterator[None]:
    """Stop the workers that all services of these tests share at the end."""
    yield
    WORKERS.close()


@pytest.fixture(scope="session")
def thin() -> Model:
    return make_thin()


@pytest.fixture(scope="session")
def full() -> Model:
    return make_full()


@pytest.fixture(scope="session")
def sample() -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(4).uniform(-1, 1, INPUTS)


@pytest.fixture(scope="module")
def service(thin: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(
        thin, tmp_path_factory.mktemp("state"), workers=WORKERS, limits=ServiceLimits(capacity=64)
    )
    yield service
    service.close()


@pytest.fixture(scope="module")
def server(service: Service) -> Iterator[Server]:
    with listening(service) as server:
        yield server


@pytest.fixture(scope="module")
def key_file(thin: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key set as a file."""
    path = tmp_path_factory.mktemp("keys") / "keys.kw"
    secret = kw.SecretKey.generate(thin.parameters, bytes(range(32)))
    kw.KeyGenerator(secret).save_evaluation_keys(path, thin.specs)
    return path


@pytest.fixture(scope="session")
def storage_servers() -> Iterator[Servers]:
    """A PostgreSQL and an S3 server for all tests."""
    with servers() as running:
        yield running


NUMBERS = itertools.count()


@pytest.fixture(params=["embedded", "servers"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Storage of a service: a folder, and then servers of S3 and PostgreSQL."""
    place = Place(tmp_path)
    if request.param == "servers":
        running: Servers = request.getfixturevalue("storage_servers")
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": running.endpoint}.items():
            monkeypatch.setenv(name, value)
        place = own_place(running, tmp_path, f"place-{next(NUMBERS)}")
    yield place
    place.close()
