"""A session in forked processes: their messages share no randomness."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.client.remote import Session
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Service
from tests.oracle import Object
from tests.processes import in_child
from tests.serve.network import WORKERS, listening

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:This process"),
]


def seeds(session: Session, sample: NDArray[np.float64]) -> list[bytes]:
    """Return the seeds of the ciphertexts of a sample."""
    read = [Object.read(data) for data in session._encrypt(sample[None])]
    return [each.take("5x32s" if each.kind == 0x105 else "x32s")[0] for each in read]


@pytest.mark.parametrize("kind", ["thin", "full"])
def test_forked_clients_of_one_session(
    kind: str, request: pytest.FixtureRequest, sample: NDArray[np.float64], tmp_path: Path
) -> None:
    model: Model = request.getfixturevalue(kind)
    service = Service(model, tmp_path, workers=WORKERS)

    def child(session: Session) -> tuple[list[bytes], NDArray[Any]]:
        return seeds(session, sample), session.infer(sample)

    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        (first, values), (second, others) = (in_child(lambda: child(session)) for _ in range(2))
        sent = [*seeds(session, sample), *first, *second]
    service.close()
    assert len(set(sent)) == len(sent) >= 3
    for outputs in (values, others):
        assert np.abs(outputs - run_clear(model.program, sample)).max() < 1e-3
