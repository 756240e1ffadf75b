"""A short form of the study of malformed senders: a server process, its idle memory, and its counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from keywright.model import Model
from studies.service import malformed
from studies.service.malformed import Honest, Process

IDLE_BYTES = 150_000_000


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("model")
    malformed.make_model(folder)
    return Model.load(folder)


@pytest.fixture
def server(model: Model, tmp_path: Path) -> Iterator[Process]:
    assert model.folder is not None
    process = Process(model.folder, tmp_path / "state", tmp_path / "log")
    yield process
    if process.process.poll() is None:
        process.close()


def test_an_idle_server_is_small(server: Process) -> None:
    """Without keys there are no workers, and the memory is within the figure."""
    while (memory := server.memory())["workers"]:
        time.sleep(0.2)
    assert 20_000_000 < memory["server_pss"] <= memory["server_rss"] == memory["all_rss"] < IDLE_BYTES


def test_nonsense_is_no_error_of_the_server_and_an_honest_client_is_served(
    server: Process, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(malformed, "SLOW", 10)
    monkeypatch.setattr(malformed, "CONNECTIONS", 50)
    honest = Honest(server.url, model)
    try:
        answers = malformed.garbage(server, 200)
        assert sum(answers.values()) == 200
        assert set(answers) <= {"closed", "400", "403", "404", "405", "413", "431"}
        assert malformed.slow(server, 1.5)["senders"] == 10
        assert malformed.many(server, 0.5) == {"connections": 50, "answered": 50}
        memory = malformed.hour(server, model, 480)
        assert len(memory) == 13
        assert memory[-1]["server_rss"] < memory[0]["server_rss"] + (20 << 20)
    finally:
        honest.close()
    assert (honest.wrong, honest.failed) == (0, 0)
    assert honest.part(0)["answers"] > 0
    counted = server.counted()
    assert counted["200"] > 50
    assert not any(status.startswith("5") for status in counted)
    assert server.close() == 0
    assert b"Traceback" not in (tmp_path / "log").read_bytes()
