"""The study of networks with thin clients: what it counts, and its tables."""

from typing import Any

from keywright.client import RemoteModel
from studies.networks.thin import CountedModel, tables


def test_bodies_of_both_ways_are_counted(monkeypatch: Any) -> None:
    model = CountedModel.__new__(CountedModel)
    monkeypatch.setattr(RemoteModel, "exchange", lambda *_, **__: (200, b"12345"))
    model.request("GET", "/v1/model")
    model.request("PUT", "/v1/keys/1", b"abc")
    model.exchange("POST", "/v1/keys/1/jobs", b"abcd")
    assert model.take() == (7, 15)
    assert model.take() == (0, 0)


def line(number: int, scores: list[float]) -> dict[str, Any]:
    return {
        "image": number,
        "label": 1,
        "clear_label": 1,
        "scores": scores,
        "program_scores": [0.0, 1.0],
        "error": 0.25,
        "seconds": 2.0 + number,
        "sent_bytes": 400_000,
        "received_bytes": 300_000,
        "peak_bytes": 5_000_000_000,
    }


def test_the_table_sums_a_session() -> None:
    run = {
        "predicted_s": 11.0,
        "predicted_peak_bytes": 5_500_000_000,
        "predicted_error": 0.5,
        "key_memory_bytes": 1_000_000_000,
        "keys_s": 60.0,
        "keys": 3,
        "key_bytes": 700_000_000,
        "manifest_bytes": 30_000,
        "parameters": "p",
        "entry": "e",
        "bootstraps": 2,
    }
    text = "\n".join(tables([{"run": run}, line(0, [0.25, 0.75]), line(1, [0.75, 0.25])]))
    assert "| encrypted label is the model's | 1 of 2 (50.0 %) |" in text
    assert "| all of a session of 2 images | 701.43 |" in text
    assert "| seconds an image, as the client sees them | 2.5 (2 to 3) |" in text
    assert "| peak of the server, MB | 5000 |" in text
