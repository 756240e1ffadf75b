"""Nobody else reads the state of a service, also in a folder that others may enter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.serve import Service
from tests.serve.network import INPUTS, WORKERS, listening

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other rights")

OPEN = {"lock", "state.json"}
"""Files that say nothing."""


def readable(folder: Path) -> Iterator[str]:
    """What others could read or list in a folder that they may enter."""
    for path in folder.iterdir():
        mode = path.stat().st_mode
        if path.name not in OPEN and mode & 0o077:
            yield f"{path.name} {mode & 0o777:o}"
            if path.is_dir():
                yield from readable(path)


def test_state_in_an_existing_folder_is_the_owners_alone(thin: Model, tmp_path: Path) -> None:
    """The attack: the write-ahead log, which others could read, holds identifiers that grant access."""
    before = os.umask(0o022)
    try:
        state = tmp_path / "state"
        state.mkdir(mode=0o755)
        for _ in range(2):
            service = Service(thin, state, workers=WORKERS)
            with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
                session.infer(np.zeros(INPUTS))
                # A job of its own that stays on the disk.
                assert {"service.db", "service.db-wal", "keys"} <= {path.name for path in state.iterdir()}
                assert list(readable(state)) == []
            service.close()
            # As an earlier release left it.
            for path in (state / "service.db", state / "keys", state / "jobs"):
                if path.exists():
                    path.chmod(0o755 if path.is_dir() else 0o644)
    finally:
        os.umask(before)
