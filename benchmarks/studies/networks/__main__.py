"""Networks on encrypted images, one row of a table a command: `python -m studies.networks --network NAME`.

A separate process is client and server, as `keywright infer` is; the record has its memory. The scores of
every image are compared with those of the program and of the model (onnxruntime) in the clear. The record
NETWORK.jsonl is written image by image, and the same command with the same --out resumes an interrupted run,
with new keys. NETWORK.md is its table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
import onnx
from harness.console import Console
from harness.folders import record_folder
from harness.measurement import machine
from harness.pages.table import heading
from harness.record import BadRecord
from keywright.commands.helpers.inputs import parse_bytes
from keywright.compiler.checking import run_onnxruntime
from keywright.runtime import run_clear
from numpy.typing import NDArray

from studies.networks.networks import NETWORKS, Network
from studies.networks.process import Measured
from studies.networks.record import Record, read
from studies.networks.reference import rotation_seconds
from studies.networks.report import agreement, tables
from studies.networks.session import groups

INTERRUPTED = 130
TEST_IMAGES = 10_000


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read and check the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.networks", description=__doc__)
    names = "; ".join(f"{name}: {network.title}" for name, network in NETWORKS.items())
    parser.add_argument("--network", choices=NETWORKS, required=True, help=names)
    parser.add_argument("--model", type=Path, help="its ONNX file, where it does not come with Keywright")
    parser.add_argument("--data", type=Path, help="folder of MNIST's files, tar of CIFAR-10's test images")
    parser.add_argument("--images", type=int, default=10, help="encrypted images in all (default: 10)")
    parser.add_argument("--first", type=int, default=0, help="number of the first image (default: 0)")
    parser.add_argument(
        "--activation",
        action="append",
        default=[],
        metavar="NAME=METHOD",
        help="polynomials for a function, as relu=minimax:13; by default chosen; may be repeated",
    )
    parser.add_argument("--preset", help="parameters (default: as `keywright infer` chooses)")
    parser.add_argument("--batch", type=int, default=1, help="images in a ciphertext (default: 1)")
    parser.add_argument(
        "--memory",
        type=parse_bytes,
        help="most memory of the process, as 5GB (default: most of what is free)",
    )
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "--key-memory", type=parse_bytes, help="most bytes of keys in memory at a time (default: as fit)"
    )
    keys.add_argument(
        "--key-bytes", type=parse_bytes, help="most bytes of all keys, in memory (default: as fit)"
    )
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-networks)")
    options = parser.parse_args(arguments)
    if min(options.images, options.threads, options.batch) < 1:
        parser.error("--images, --threads and --batch are at least 1")
    if options.first < 0:
        parser.error(f"--first {options.first} is not the number of an image: give 0 or more")
    if bad := [text for text in options.activation if not all(text.partition("="))]:
        parser.error(f"--activation {bad[0]}: write NAME=METHOD, as relu=minimax:13")
    options.activation = dict(text.split("=", 1) for text in options.activation)
    options.model = options.model or NETWORKS[options.network].model
    if options.model is None:
        parser.error(f"--model names the ONNX file of {options.network}: see examples/README.md")
    return options


def name(options: argparse.Namespace) -> str:
    """Of a record's files."""
    network: str = options.network
    limit = options.key_memory or options.key_bytes
    bound = "" if limit is None else f"-keys{limit / 1e6:.0f}MB"
    return network + (f"-batch{options.batch}" if options.batch > 1 else "") + bound


class Measurement:
    """One network.

    Args:
        options: of the command line.
        folder: where its record is.

    Raises:
        BadRecord: the record is malformed, or has another model's images.
    """

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.path = options, folder / f"{name(options)}.jsonl"
        self.subject = {
            "model": sha256(options.model.read_bytes()).hexdigest(),
            "activations": options.activation,
        }
        self.record = read(self.path)
        for run in self.record.runs:
            for key, own in self.subject.items():
                if run[key] != own:
                    raise BadRecord(
                        f"{self.path} has {key} {run[key]}, not {own}; name another folder with --out"
                    )

    @property
    def numbers(self) -> range:
        """The images of this command."""
        return range(self.options.first, self.options.first + self.options.images)

    def run(self, console: Console) -> None:
        """Run the images that the record lacks.

        Raises:
            SystemExit: the process that runs them failed.
        """
        missing = [number for number in self.numbers if number not in self.record.images]
        if not missing:
            return
        network = NETWORKS[self.options.network]
        images = network.images(self.options.data, missing)
        model = onnx.load(self.options.model)
        scores = run_onnxruntime(model, images.samples.astype(np.float64)).reshape(len(missing), -1)
        console.status("a reference rotation")
        rotation = rotation_seconds()
        with (
            tempfile.TemporaryDirectory() as scratch,
            Measured(
                Path(scratch),
                self.options.model,
                images.samples,
                self._calibration(network),
                activations=self.options.activation,
                preset=self.options.preset,
                batch=self.options.batch,
                memory=self.options.memory,
                key_memory=self.options.key_memory,
                key_bytes=self.options.key_bytes,
                threads=self.options.threads,
            ) as measured,
            self.path.open("a") as raw,
        ):
            console.status("compiling, keys, diagonals")
            facts = measured.facts()
            added = {"commit": machine.commit(), "load": os.getloadavg()[0], "rotation_s": rotation}
            added |= self.subject
            self._take({"run": facts | added}, raw)
            program = measured.program()
            for places in groups(missing, facts["batch"]):
                clear = run_clear(program, images.samples[places].astype(np.float64))
                for place, expected, line in zip(places, clear, measured.classify(places), strict=True):
                    own = scores[place]
                    difference = np.subtract(line["scores"], expected.ravel())
                    line |= {"program_scores": expected.ravel().tolist()}
                    line |= {"error": float(np.abs(difference).max())}
                    line |= {"image": missing[place], "label": int(images.labels[place])}
                    line |= {"clear_label": int(own.argmax()), "model_scores": own.tolist()}
                    self._take(line, raw)
                console.status(self.progress())

    def _calibration(self, network: Network) -> NDArray[np.float32] | None:
        """The images that activations are fitted on."""
        if not network.calibration:
            return None
        last = range(TEST_IMAGES - network.calibration, TEST_IMAGES)
        if self.numbers.stop > last.start:
            raise SystemExit(
                f"{self.numbers.start} to {self.numbers.stop - 1}: images from {last.start} on calibrate"
            )
        return network.images(self.options.data, last).samples

    def _take(self, line: dict[str, Any], raw: IO[str]) -> None:
        self.record.add(line)
        print(json.dumps(line), file=raw, flush=True)

    def progress(self) -> str:
        """How far it is."""
        images = list(self.record.images.values())
        left = self.options.images - len(images)
        each = float(np.median([line["seconds"] for line in images]))
        same, total = agreement(images)
        return f"{len(images)} images, {same} of {total} labels agree, about {left * each:.0f} s left"


def write(folder: Path, options: argparse.Namespace, record: Record) -> None:
    """Write the table and print it."""
    title = f"{NETWORKS[options.network].title}, encrypted"
    lines = [*heading(title, f"{options.threads} threads, one process"), *tables(record)]
    (folder / f"{name(options)}.md").write_text("\n".join(lines))
    print("\n".join(lines))


def main() -> int:
    """Measure what the record lacks, then write its table. Returns the exit status."""
    options = parse_options()
    console = Console()
    folder = record_folder(options.out, "networks")
    status = 0
    try:
        measurement = Measurement(options, folder)
        try:
            measurement.run(console)
        except KeyboardInterrupt:
            console.line("interrupted; the same command resumes from here")
            status = INTERRUPTED
    except BadRecord as error:
        raise SystemExit(str(error)) from error
    if measurement.record.images:
        write(folder, options, measurement.record)
        console.line(f"written: {folder}")
    return status


if __name__ == "__main__":
    sys.exit(main())
