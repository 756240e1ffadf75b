"""The study of the ml-inference workload, with its smallest size."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from studies import ml_inference


def write_mnist(folder: Path) -> None:
    """Ten thousand images of noise in the form of MNIST's files."""
    rng = np.random.default_rng(1)
    pixels, labels = rng.integers(0, 256, (10_000, 28, 28), np.uint8), rng.integers(0, 10, 10_000, np.uint8)
    for name, array in (("images-idx3", pixels), ("labels-idx1", labels)):
        head = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
        with gzip.open(folder / f"t10k-{name}-ubyte.gz", "wb", compresslevel=1) as file:
            file.write(head + array.tobytes())


@pytest.mark.full
def test_every_step_of_one_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mnist(tmp_path)
    arguments = ["study", "--data", str(tmp_path), "--sizes", "0", "--out", str(tmp_path / "record")]
    monkeypatch.setattr("sys.argv", arguments)
    ml_inference.main()
    (line,) = map(json.loads, (tmp_path / "record" / "raw.jsonl").read_text().splitlines())
    assert line["as_model"] == line["images"] == 1
    assert set(line["seconds"]) == set(ml_inference.STEPS)
    assert 0 < line["evaluate_s"] < line["seconds"]["server_encrypted_compute"]
    assert line["key_bytes"] < 100e6
    assert "| single, 1 |" in (tmp_path / "record" / "table.md").read_text()
