"""A network that thin clients send images to: `python -m studies.networks.thin --network NAME --model FILE`.

The model is compiled for thin clients and served by `keywright serve` in a process of its own; this process
is the client. Every byte between them is counted here. The record NETWORK-thin.jsonl is written image by
image, and the same command with the same --out goes on where it was cut off. NETWORK-thin.md is its table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import keywright as kw
import numpy as np
import onnx
from harness.console import Console
from harness.folders import HERE, record_folder
from harness.measurement import machine
from harness.pages.table import heading, markdown, spread
from keywright import client, compiler, runtime
from keywright.commands.helpers.inputs import parse_bytes
from keywright.compiler.checking import run_onnxruntime
from keywright.model import Model
from keywright.runtime import run_clear

from studies.networks.networks import NETWORKS
from studies.networks.report import agreement, clear_cut, label, share

PREDICTED = 2
"""Images on which the error of the scores is predicted."""
STARTS_S = 600.0
"""Within which a server starts."""


class CountedModel(client.RemoteModel):
    """A remote model that counts what its client sends and receives: bodies of requests and of answers."""

    sent = received = 0

    def exchange(
        self, method: str, path: str, body: bytes | None = None, **options: Any
    ) -> tuple[int, bytes]:
        """See `RemoteModel.exchange`, which all requests go through."""
        status, data = super().exchange(method, path, body, **options)
        self.sent += 0 if body is None else len(body)
        self.received += len(data)
        return status, data

    def take(self) -> tuple[int, int]:
        """Bytes sent and received since the last call."""
        traffic = self.sent, self.received
        self.sent = self.received = 0
        return traffic


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.networks.thin", description=__doc__)
    parser.add_argument("--network", choices=NETWORKS, default="resnet20-aespa")
    parser.add_argument("--model", type=Path, required=True, help="its ONNX file")
    parser.add_argument("--data", type=Path, required=True, help="as of studies.networks")
    parser.add_argument("--images", type=int, default=20, help="in all (default: 20)")
    parser.add_argument("--memory", default="6GB", help="most memory of the server (default: 6GB)")
    parser.add_argument("--key-memory", help="most bytes of its keys")
    parser.add_argument("--threads", type=int, default=2, help="of the server (default: 2)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-networks)")
    return parser.parse_args(arguments)


def compiled(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Compile the model into a folder; what that took and what is predicted."""
    network = NETWORKS[options.network]
    calibration = network.images(options.data, range(options.images, options.images + 20)).samples
    start = time.perf_counter()
    model = kw.compile(options.model, calibration, client="thin", batch=1)
    compile_s = time.perf_counter() - start
    if options.key_memory is not None:
        model = model.with_keys_within(parse_bytes(options.key_memory))
    _ = model.execution
    plan_s = time.perf_counter() - start - compile_s
    model.save(folder, options.network)
    samples = np.asarray(calibration[:PREDICTED], np.float64)
    return {
        "compile_s": compile_s,
        "plan_s": plan_s,
        "predicted_error": runtime.simulate(model.program, model.execution, samples).worst_error
        + entry_error(model, samples),
        "predicted_s": model.program.seconds,
        "parameters": repr(model.parameters),
        "entry": repr(model.entry and model.entry.plan),
        "keys": len(model.specs),
        "key_memory_bytes": sum(spec.bytes for spec in model.specs),
        "bootstraps": sum(step.opcode == "bootstrap" for step in model.program.instructions),
    }


def entry_error(model: Model, samples: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """What the predicted error of the bootstrap by which images enter changes scores by, at most."""
    assert model.entry is not None
    bits = model.entry.plan.predicted_bits()
    assert bits is not None
    noise = np.random.default_rng(0).normal(0, np.sqrt(np.pi / 2) * 2.0 ** -bits[0], samples.shape)
    return float(np.abs(run_clear(model.program, samples + noise) - run_clear(model.program, samples)).max())


@contextmanager
def served(
    folder: Path, options: argparse.Namespace
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process that serves a model, and what it says when it does."""
    command = ["serve", str(folder), "--port", "0", "--memory", options.memory, "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "keywright", *command, "--threads", str(options.threads)],
        cwd=HERE,
        env={**os.environ, "RAYON_NUM_THREADS": str(options.threads)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the server ended with status {process.wait()}")
        yield process, json.loads(line)
    finally:
        process.terminate()
        process.wait(STARTS_S)


def peak_bytes(process: int) -> int:
    """The most memory of a process and of those that it started, each at its own peak."""
    status = Path(f"/proc/{process}/status").read_text()
    own = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return own + sum(peak_bytes(int(child)) for child in children)


def measure(options: argparse.Namespace, path: Path, console: Console) -> list[dict[str, Any]]:
    """Run the images that the record lacks; all lines of the record."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {line["image"] for line in lines if "image" in line}
    missing = [number for number in range(options.images) if number not in done]
    if not missing:
        return lines
    images = NETWORKS[options.network].images(options.data, missing)
    scores = run_onnxruntime(onnx.load(options.model), images.samples.astype(np.float64))
    with tempfile.TemporaryDirectory() as scratch, path.open("a") as raw:
        folder = Path(scratch) / "model"
        console.status("compiling")
        run = compiled(options, folder)
        program = compiler.load(folder / "program.kwp")
        console.status("encoding")
        with served(folder, options) as (process, said):
            remote = CountedModel(said["url"])
            start = time.perf_counter()
            with remote.session() as session:
                session.upload_keys()
                sent, received = remote.take()
                run |= {"keys_s": time.perf_counter() - start, "key_bytes": sent, "manifest_bytes": received}
                run |= {"predicted_peak_bytes": said["predicted_peak_bytes"], "memory": said["memory"][0]}
                run |= {"commit": machine.commit(), "load": os.getloadavg()[0]}
                lines.append(take({"run": run}, raw))
                for place, number in enumerate(missing):
                    sample = images.samples[place].astype(np.float64)
                    start = time.perf_counter()
                    outputs = np.ravel(session.infer(sample))
                    seconds = time.perf_counter() - start
                    sent, received = remote.take()
                    clear, model = np.ravel(run_clear(program, sample)), np.ravel(scores[place])
                    line = {
                        "image": number,
                        "label": int(images.labels[place]),
                        "clear_label": label(model.tolist()),
                        "scores": outputs.tolist(),
                        "program_scores": clear.tolist(),
                        "error": float(np.abs(outputs - clear).max()),
                        "seconds": seconds,
                        "sent_bytes": sent,
                        "received_bytes": received,
                        "peak_bytes": peak_bytes(process.pid),
                    }
                    lines.append(take(line, raw))
                    console.status(f"{place + 1} of {len(missing)} images")
    return lines


def take(line: dict[str, Any], raw: IO[str]) -> dict[str, Any]:
    """Write a line of the record."""
    print(json.dumps(line), file=raw, flush=True)
    return line


def tables(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Everything, in Markdown."""
    runs = [line["run"] for line in lines if "run" in line]
    images, place = [], -1
    for line in lines:
        place += "run" in line
        if "image" in line:
            images.append({**line, "of_run": place})

    def of(name: str, unit: float, among: Sequence[dict[str, Any]] = images) -> str:
        return spread(line[name] / unit for line in among)

    sent, received = ([line[name] for line in images] for name in ("sent_bytes", "received_bytes"))
    keys = max(run["key_bytes"] for run in runs)
    whole = keys + max(run["manifest_bytes"] for run in runs) + sum(sent) + sum(received)
    rows = [
        ("seconds an image, as the client sees them", of("seconds", 1)),
        (
            "predicted seconds of the program, one thread, without entering and leaving",
            of("predicted_s", 1, runs),
        ),
        ("peak of the server, MB", f"{max(line['peak_bytes'] for line in images) / 1e6:.0f}"),
        ("the same, predicted", of("predicted_peak_bytes", 1e6, runs)),
        ("all keys, in memory, MB", of("key_memory_bytes", 1e6, runs)),
        ("make and send keys, s", of("keys_s", 1, runs)),
        ("largest error of scores against the program in the clear", of("error", 1)),
        ("the same, predicted", of("predicted_error", 1, runs)),
        ("encrypted label is the model's", share(*agreement(images))),
        ("and the program's, where its two best scores differ by more", share(*clear_cut(images, runs))),
    ]
    bytes_rows = [
        (
            "manifest and other answers before the first image, once",
            f"{runs[-1]['manifest_bytes'] / 1e6:.4g}",
        ),
        (f"{runs[-1]['keys']} keys, once", f"{keys / 1e6:.6g}"),
        ("an image, sent", of("sent_bytes", 1e6)),
        ("its scores, received", of("received_bytes", 1e6)),
        (f"all of a session of {len(images)} images", f"{whole / 1e6:.6g}"),
    ]
    settings = (
        f"{runs[-1]['parameters']}; {runs[-1]['bootstraps']} bootstraps, entered by {runs[-1]['entry']}"
    )
    return [
        *markdown(["", "median (smallest to largest)"], rows, aligned=False),
        "",
        "## Bytes between client and server",
        "",
        *markdown(["", "MB"], bytes_rows),
        "",
        f"{settings}.",
        "",
    ]


def main() -> int:
    """Measure what the record lacks, then write its table."""
    options = parse_options()
    kw.set_threads(options.threads)
    folder, console = record_folder(options.out, "networks"), Console()
    path = folder / f"{options.network}-thin.jsonl"
    lines = measure(options, path, console)
    title = f"{NETWORKS[options.network].title}, images from a thin client"
    text = [*heading(title, f"{options.threads} threads of the server"), *tables(lines)]
    path.with_suffix(".md").write_text("\n".join(text))
    print("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
