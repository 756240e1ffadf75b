"""`keywright info` knows what a service writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.cli import main
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.model.served import framing
from keywright.serve import Service
from tests.serve.network import WORKERS, listening


def test_info_knows_every_file_of_a_service(
    thin: Model, sample: np.ndarray[Any, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new file gets a name that `info` prints: all that a service wrote while it was used is listed."""
    folder = tmp_path / "state"
    service = Service(thin, folder, workers=WORKERS)
    with (
        listening(service) as server,
        RemoteModel(server.url, insecure=True).session() as session,
    ):
        session.infer(sample)
        message = framing.join(session._encrypt(sample[None]))
        session.remote.send("POST", f"/v1/keys/{session._identifier}/jobs", message)
        assert main(["info", str(folder), "--json"]) == 0
    service.close()
    rows = {row["file"]: row["kind"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {"audit.jsonl", "state.json", "operator.key", "service.db"} <= set(rows)
    assert any(name.startswith("jobs/") for name in rows)
    assert [name for name, kind in rows.items() if kind == "other"] == []
    assert main(["info", str(folder / "operator.key")]) == 0
    assert capsys.readouterr().out.startswith("SECRET: it stays with its owner\n")
    # Elsewhere these names mean nothing.
    (tmp_path / "lock").write_text("")
    assert main(["info", str(tmp_path / "lock"), "--json"]) != 0
