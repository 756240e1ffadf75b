"""A model that is served while a block runs."""

from __future__ import annotations

from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import serve
from keywright.client import RemoteModel
from keywright.errors import UnreachableError
from tests.serve.network import INPUTS, WORKERS, network


def test_a_compiled_model_is_served_while_a_block_runs(tmp_path: Path) -> None:
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45], [50, 50], 45, insecure=True)
    model = kw.compile(network(), parameters=parameters)
    samples = np.random.default_rng(1).uniform(-1, 1, (2, INPUTS))
    with serve.serve(model, tmp_path, workers=WORKERS) as server:
        with RemoteModel(server.url, pinned=model.manifest.hash, insecure=True).session() as session:
            session.upload_keys()
            outputs = session.infer(samples)
        assert np.abs(outputs - model.predict(samples)).max() < 1e-3
        address = server.url
    with pytest.raises(UnreachableError):
        RemoteModel(address, insecure=True)
    # The folder and the address are free again.
    port = int(address.rpartition(":")[2])
    with serve.serve(model, tmp_path, port=port, workers=WORKERS) as server:
        assert RemoteModel(server.url, insecure=True).manifest.hash == model.manifest.hash


def test_a_block_that_fails_ends_the_service(tmp_path: Path) -> None:
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45], [50, 50], 45, insecure=True)
    model = kw.compile(network(), parameters=parameters)
    with pytest.raises(ZeroDivisionError), serve.serve(model, tmp_path, workers=WORKERS):
        _ = 1 // 0
    with serve.serve(model, tmp_path, workers=WORKERS) as server:
        assert server.url.startswith("http://127.0.0.1:")
