"""The network of KDS's table 6: its gradients, its features, its file."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from studies.executed_keys import subjects  # noqa: F401  # its import makes the example's module known
from train_nsl_kdd import (
    FIELDS,
    GROUPS,
    Features,
    Records,
    accuracy,
    forward,
    gradients,
    initial_weights,
    save_onnx,
)

ROW = ["0", "tcp", "http", "SF", *["1"] * (FIELDS - 4), "normal", "20"]


def test_gradients_are_those_of_the_loss() -> None:
    """Compare with steps into the complex plane, which give a derivative to rounding: f(w + ih) is f + ih f'
    up to h^2, and h is 1e-20."""
    rng = np.random.default_rng(3)
    weights = {name: value.astype(np.float64) for name, value in initial_weights(7, rng).items()}
    for name in ("input.b", "state.b"):
        weights[name] += rng.normal(size=3 * 128) / 4
    x, labels = rng.random((5, 3, 7)), np.array([0, 1, 2, 3, 4])
    slopes, loss = gradients(weights, x, labels)  # type: ignore[arg-type]

    def entropy(changed: dict[str, np.ndarray]) -> complex:
        scores = forward(changed, x)["scores"]  # type: ignore[arg-type]
        terms = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(5), labels]
        return complex(terms.mean())

    assert loss == pytest.approx(entropy(weights).real, rel=1e-12)
    for name, value in weights.items():
        place = tuple(rng.integers(size) for size in value.shape)
        moved = value.astype(np.complex128)
        moved[place] += 1e-20j
        slope = entropy({**weights, name: moved}).imag / 1e-20
        # Each is a sum of some thousand terms of at most the largest slope, each rounded.
        assert slopes[name][place] == pytest.approx(slope, abs=1e4 * 2**-52 * np.abs(slopes[name]).max())


def test_features_are_scaled_by_the_training_set(tmp_path: Path) -> None:
    rows = [ROW, ["9", "udp", *ROW[2:]]]
    (tmp_path / "train.gz").write_bytes(gzip.compress("\n".join(",".join(row) for row in rows).encode()))
    features = Features(Records(tmp_path / "train.gz"))
    (tmp_path / "test.txt").write_text(",".join(["99", "icmp", *ROW[2:-2], "mscan", "1"]))
    test = Records(tmp_path / "test.txt")
    (row,) = features(test)
    # Nine columns of the connection, one of whose words is of two; 13, 9 and 10 of the other groups.
    assert row.shape == (len(GROUPS), features.width) == (4, 13)
    assert row[0, 0] == 1.0  # above all of the training set
    # Two unknown protocols; the one service and the one flag; then numbers.
    assert row[0, 1:5].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert row[1].all()
    assert row[2, :9].all()
    assert not row[2, 9:].any()
    assert [len(columns) for columns in GROUPS] == [9, 13, 9, 10]
    assert test.labels().tolist() == [2]
    (tmp_path / "short.txt").write_text("1,2,3")
    with pytest.raises(ValueError, match="41 fields"):
        Records(tmp_path / "short.txt")


def test_the_file_computes_what_is_trained(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(4)
    weights = initial_weights(7, rng)
    save_onnx(weights, 7, tmp_path / "m.onnx")
    x = rng.random((20, len(GROUPS), 7)).astype(np.float32)
    (scores,) = runtime.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"features": x})
    expected = forward(weights, x)["scores"]
    # Sums of 128 products of values of size 1 and weights of size 1, in another order.
    assert np.abs(scores - expected).max() <= 128 * 4 * 2**-23 * np.abs(expected).max()
    assert accuracy(weights, x, expected.argmax(axis=1)) == 1.0
