"""The adapters of examples/workloads, in folders like those of the workload's harness."""

import contextlib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from keywright.compiler.checking import run_onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parents[3]
INSTALL = ROOT / "examples" / "workloads" / "install.py"
STEPS = (
    "client_preprocess_input",
    "client_encode_encrypt_input",
    "server_encrypted_compute",
    "client_decrypt_decode",
    "client_postprocess",
)


def network() -> onnx.ModelProto:
    """784 pixels, a square, ten scores."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(784, 16)) / 28, rng.normal(size=(16, 10))
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w0"], ["h"]),
        helper.make_node("Mul", ["h", "h"], ["s"]),
        helper.make_node("MatMul", ["s", "w1"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 28, 28])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(w.astype(np.float32), f"w{k}") for k, w in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def called(checkout: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "harness").mkdir(parents=True)
    onnx.save(network(), tmp_path / "model.onnx")
    done = called(
        tmp_path, sys.executable, str(INSTALL), "ml-inference", str(folder), "--model", "model.onnx"
    )
    assert done.returncode == 0, done.stderr
    return folder


@contextlib.contextmanager
def module(checkout: Path, name: str = "steps") -> Iterator[Any]:
    """A module of the submission, in the checkout."""
    folder, before = str(checkout / "submission"), set(sys.modules)
    sys.path.insert(0, folder)
    try:
        with contextlib.chdir(checkout):
            yield importlib.import_module(name)
    finally:
        sys.path.remove(folder)
        for each in set(sys.modules) - before:
            if str(getattr(sys.modules[each], "__file__", "")).startswith(folder):
                del sys.modules[each]


def step(checkout: Path, name: str, size: str) -> None:
    """Run a step: for the smallest size as the harness does, for others in this process."""
    if size == "0":
        done = called(checkout, f"submission/build/{name}", size)
        assert done.returncode == 0, done.stderr
        return
    with module(checkout) as steps:
        steps.main(name, [size])


def test_every_step_of_every_kind_of_size(checkout: Path) -> None:
    """As the harness calls them: scripts, keys, the others, and the model's without a size."""
    for script in (("scripts/get_openfhe.sh",), ("scripts/build_task.sh", "./submission")):
        done = called(checkout, *script)
        assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(1)
    for size, name, count in (("0", "single", 1), ("1", "small", 15)):
        exchange = checkout / "io" / name
        exchange.mkdir(parents=True)
        step(checkout, "client_key_generation", size)
        assert (exchange / "secret_key").stat().st_mode & 0o077 == 0
        assert not list((exchange / "public_keys").glob("*secret*"))
        for folder in ("ciphertexts_upload", "ciphertexts_download"):
            (exchange / folder).mkdir()
            (exchange / folder / "999999-0.kw").write_bytes(b"of an earlier run")
        data = checkout / "datasets" / name / "intermediate"
        data.mkdir(parents=True)
        np.savetxt(data / "test_pixels.txt", rng.integers(0, 256, (count, 784)) / 255, fmt="%.6f")
        for name_of_step in STEPS:
            step(checkout, name_of_step, size)
        pixels = np.loadtxt(data / "test_pixels.txt").reshape(-1, 1, 28, 28)
        labels = (exchange / "encrypted_model_predictions.txt").read_text().split()
        assert labels == [str(label) for label in run_onnxruntime(network(), pixels).argmax(1)]
    done = called(checkout, "submission/build/server_preprocess_model")
    assert done.returncode == 0, done.stderr
    assert "large: 3 levels" in done.stdout


def test_what_does_not_fit_is_refused(checkout: Path, tmp_path: Path) -> None:
    done = called(tmp_path, sys.executable, str(INSTALL), "ml-inference", str(checkout))
    assert done.returncode == 1
    assert "exists; remove it first" in done.stderr
    done = called(tmp_path, sys.executable, str(INSTALL), "ml-inference", str(tmp_path))
    assert "has no folder harness" in done.stderr
    assert called(checkout, "scripts/build_task.sh", "./submission").returncode == 0
    data = checkout / "datasets" / "single" / "intermediate"
    data.mkdir(parents=True)
    with module(checkout) as steps:
        for text, message in (("0.5 " * 783, "expected (1, 784)"), ("0.5 " * 783 + "1.5", "not in [0, 1]")):
            (data / "test_pixels.txt").write_text(text + "\n")
            with pytest.raises(SystemExit, match=re.escape(message)):
                steps.main("client_preprocess_input", ["0"])
        with pytest.raises(SystemExit, match="holds no ciphertexts, because an earlier step failed"):
            steps.main("server_encrypted_compute", ["0"])
        with pytest.raises(SystemExit, match=re.escape("from 0 (single) to 3 (large)")):
            steps.main("client_postprocess", ["4"])


def unit(vectors: Any) -> Any:
    """Vectors of norm 1."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_payloads_of_similar_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of fetch-by-similarity in a small ring: two blocks, and records next to the threshold."""
    checkout, count = tmp_path / "checkout", 600
    (checkout / "harness").mkdir(parents=True)
    done = called(tmp_path, sys.executable, str(INSTALL), "fetch-by-similarity", str(checkout))
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(1)
    records, query = unit(rng.normal(size=(count, 128))), unit(rng.normal(size=128))
    records[::40] = unit(query + 0.3 * records[::40])
    across = unit(records[1] - (records[1] @ query) * query)
    for place, cosine in ((3, 0.801), (4, 0.799), (count - 1, 1.0)):
        records[place] = cosine * query + np.sqrt(1 - cosine**2) * across
    payloads = rng.integers(0, 512, (count, 7)).astype(np.int16)
    data = checkout / "datasets" / "toy"
    data.mkdir(parents=True)
    for name, values in (
        ("db", records.astype(np.float32)),
        ("query", query.astype(np.float32)),
        ("payloads", payloads),
    ):
        values.tofile(data / f"{name}.bin")
    with module(checkout, "search_steps") as steps:
        small = steps.similarity.parameters(10, insecure=True)
        monkeypatch.setattr(steps, "parameters", lambda: small)
        monkeypatch.setattr(steps, "SIZES", (("toy", count),))
        importlib.import_module("search_build").main()
        for name in steps.STEPS:
            steps.main(name, ["0"])
        matching = payloads[records @ query > 0.8]
        expected = matching[np.lexsort(matching.T[::-1])]
        assert np.fromfile("io/toy/results.bin", np.int16).reshape(-1, 7).tolist() == expected.tolist()
        assert len(expected) == 17
        payloads[5, 0] = 512
        payloads.tofile("datasets/toy/payloads.bin")
        with pytest.raises(SystemExit, match="not in"):
            steps.main("client_encode_encrypt_db", ["0"])
        with pytest.raises(SystemExit, match="without --count_only"):
            steps.main("client_encode_encrypt_db", ["0", "--count_only"])
