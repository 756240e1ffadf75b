"""The workload fhe-benchmarking/ml-inference step by step: `python -m studies.ml_inference --data MNIST`.

Without its harness: pixels of MNIST test images are written as the harness writes them; then each program of
examples/workloads/ml-inference runs in a separate process, as the harness starts it, and is timed. The
predicted labels are compared with the true ones and with those of the model in the clear. Writes raw.jsonl
and table.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from harness.console import Console
from harness.folders import HERE, record_folder
from harness.measurement import machine
from harness.pages.table import heading, markdown
from keywright.compiler.checking import run_onnxruntime

from studies.networks.networks import mnist

INSTALL = HERE.parent / "examples" / "workloads" / "install.py"
MODEL = HERE.parent / "examples" / "models" / "lenet_mnist.onnx"
SIZES = (("single", 1), ("small", 15), ("medium", 1_000), ("large", 10_000))
STEPS = (
    "client_key_generation",
    "client_preprocess_input",
    "client_encode_encrypt_input",
    "server_encrypted_compute",
    "client_decrypt_decode",
    "client_postprocess",
)
SERVER = {
    "read_s": r"model and keys read in ([\d.]+) s",
    "encode_s": r"diagonals encoded in ([\d.]+) s",
    "evaluate_s": r"evaluation: ([\d.]+) s",
}
"""What the server's step says of its parts."""


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run_size(checkout: Path, size: int, data: Path, seed: int) -> dict[str, Any]:
    """Every step of a size.

    Raises:
        CalledProcessError: a step failed.
    """
    name, count = SIZES[size]
    chosen = np.random.default_rng(seed).permutation(10_000)[:count]
    images = mnist(data, [int(number) for number in chosen])
    pixels = checkout / "datasets" / name / "intermediate" / "test_pixels.txt"
    pixels.parent.mkdir(parents=True)
    np.savetxt(pixels, images.samples.reshape(count, -1), fmt="%.8g")
    seconds: dict[str, float] = {}
    said = ""
    for step in STEPS:
        start = time.perf_counter()
        program = str(checkout / "submission" / "build" / step)
        done = subprocess.run([program, str(size)], cwd=checkout, check=True, capture_output=True, text=True)
        seconds[step] = time.perf_counter() - start
        said += done.stdout
    exchange = checkout / "io" / name
    predictions = np.loadtxt(exchange / "encrypted_model_predictions.txt", dtype=int, ndmin=1)
    scores = run_onnxruntime(onnx.load(MODEL), images.samples.astype(np.float64)).reshape(count, -1)
    parts = {key: float(re.findall(pattern, said)[0]) for key, pattern in SERVER.items()}
    return {
        "size": name,
        "images": count,
        "seed": seed,
        "seconds": seconds,
        **parts,
        "key_bytes": folder_bytes(exchange / "public_keys"),
        "upload_bytes": folder_bytes(exchange / "ciphertexts_upload"),
        "download_bytes": folder_bytes(exchange / "ciphertexts_download"),
        "as_model": int((predictions == scores.argmax(axis=1)).sum()),
        "right": int((predictions == images.labels).sum()),
        "model_right": int((scores.argmax(axis=1) == images.labels).sum()),
        "commit": machine.commit(),
    }


def installed(folder: Path) -> float:
    """Put the submission into a folder and build it; the seconds of building."""
    (folder / "harness").mkdir()
    subprocess.run([sys.executable, str(INSTALL), "ml-inference", str(folder)], check=True)
    start = time.perf_counter()
    subprocess.run(["sh", str(folder / "scripts" / "build_task.sh"), "submission"], cwd=folder, check=True)
    return time.perf_counter() - start


def rows(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each size."""
    for line in lines:
        count, server = line["images"], line["seconds"]["server_encrypted_compute"]
        yield (
            f"{line['size']}, {count}",
            f"{server:.3g}",
            f"{line['evaluate_s'] / count:.3g}",
            f"{sum(line['seconds'].values()):.3g}",
            f"{line['key_bytes'] / 1e6:.1f}",
            f"{line['upload_bytes'] / count / 1e3:.0f}, {line['download_bytes'] / count / 1e3:.0f}",
            f"{line['as_model']} of {count}",
            f"{line['right']} ({line['model_right']})",
        )


def main() -> None:
    """Run the sizes, compare, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.ml_inference", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MNIST's files")
    parser.add_argument("--sizes", type=int, nargs="+", choices=range(4), default=[0, 1, 2, 3])
    parser.add_argument("--seed", type=int, default=3, help="chooses the images (default: 3)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-ml-inference)")
    options = parser.parse_args()
    folder, console = record_folder(options.out, "ml-inference"), Console()
    lines = []
    with tempfile.TemporaryDirectory() as scratch, (folder / "raw.jsonl").open("w") as raw:
        console.status("compiling for every size")
        build = installed(Path(scratch))
        for size in options.sizes:
            console.status(SIZES[size][0])
            lines.append(run_size(Path(scratch), size, options.data.resolve(), options.seed))
            print(json.dumps(lines[-1]), file=raw, flush=True)
    head = [
        "size, images",
        "server's step, s",
        "evaluation, s an image",
        "all steps, s",
        "public keys, MB",
        "sent and returned, kB an image",
        "labels as the model's",
        "right (the model's)",
    ]
    title = "fhe-benchmarking/ml-inference with Keywright, without its harness"
    text = [
        *heading(title, f"{MODEL.name}; compiling for every size took {build:.1f} s"),
        *markdown(head, rows(lines)),
        "",
    ]
    (folder / "table.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
