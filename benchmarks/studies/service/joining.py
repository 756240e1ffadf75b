"""The time of simultaneous requests of one client, evaluated together and one by one.

    cd benchmarks && python -m studies.service.joining [--requests 8] [--runs 3] [--out FOLDER]

The model is the shipped digits for thin clients, with 128-bit security, compiled for a batch of as many
samples as there are requests. A client sends one digit in each request, all at once. The server is in this
process, its worker is not. Every answer is decrypted and compared with the program in the clear.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from harness.folders import record_folder
from harness.measurement.machine import describe
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from prometheus_client.parser import text_string_to_metric_families

TOLERANCE = 1e-2


def evaluations(service: Service) -> int:
    """The number of evaluations that succeeded."""
    return int(
        sum(
            sample.value
            for family in text_string_to_metric_families(service.measure())
            for sample in family.samples
            if sample.name == "keywright_evaluations_total" and sample.labels["outcome"] == "done"
        )
    )


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quiet", action="store_true", help="say that nothing else ran")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    samples = np.random.default_rng(0).uniform(0, 1, (options.requests, 1, 8, 8))
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        onnx = Path(str(files("keywright") / "data" / "digits.onnx"))
        command = [sys.executable, "-m", "keywright", "compile", str(onnx), "--client", "thin"]
        command += ["--batch", str(options.requests), "--out", f"{name}/model"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        model = Model.load(Path(name) / "model")
        expected = run_clear(model.program, samples)
        service = Service(model, Path(name) / "state")
        with Server(service) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            remote = RemoteModel(server.url, insecure=True)
            with remote.session() as session:
                session.infer(samples[0])
                # In turns, so that both have the same neighbours.
                for number in range(2 * options.runs):
                    remote.joins = number % 2 == 0
                    results = np.zeros_like(expected)

                    def infer(place: int, results: np.ndarray[Any, Any] = results) -> None:
                        results[place] = session.infer(samples[place])

                    threads = [threading.Thread(target=infer, args=(i,)) for i in range(options.requests)]
                    before, start = evaluations(service), time.monotonic()
                    for each in threads:
                        each.start()
                    for each in threads:
                        each.join()
                    seconds, error = time.monotonic() - start, float(np.abs(results - expected).max())
                    assert error < TOLERANCE, error
                    joined = evaluations(service) - before
                    runs.append(
                        {"joined": remote.joins, "seconds": seconds, "evaluations": joined, "error": error}
                    )
                    print(json.dumps(runs[-1]), file=sys.stderr)
            server.shutdown()
            thread.join()
        service.close()
    command = [
        "python",
        "-m",
        "studies.service.joining",
        *("PATH" if "/" in part else part for part in sys.argv[1:]),
    ]
    record = {"command": " ".join(command), "quiet": options.quiet, "machine": describe()}
    record |= {"requests": options.requests, "key_bytes": model.manifest.keys.size, "runs": runs}
    out = record_folder(options.out, "service")
    (out / "joining.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
