"""A network of squares with Keywright and Orion, image by image in turns: `python -m
studies.networks.beside_orion`.

Both run the same weights in separate processes, which stay for all images; both results are compared with the
model's in the clear. Orion's own LeNet (--widths 32 64 512 of examples/train_mnist.py) takes it 10 to 24 GB
of memory. For ResNet-20, whose weights are made here, Orion keeps diagonals and keys of linear layers in
files. If Orion's process is killed, the record says so and has Keywright alone. Writes NETWORK.jsonl and
NETWORK.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from harness.console import Console
from harness.folders import BUILD, record_folder
from harness.pages.table import heading, markdown, quotients, spread
from harness.programs.process import PeerEnded, PeerProcess
from harness.programs.schedule import pin
from harness.programs.targets import Unavailable
from keywright.commands.helpers.inputs import parse_bytes
from keywright.compiler.checking import run_onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper

from studies.networks.networks import Images, cifar, mnist
from studies.networks.process import Measured
from studies.networks.square_resnet import build

LAYERS = {"convolution0": "conv1", "convolution2": "conv2", "dense5": "dense1", "dense7": "dense2"}
"""Names of the layers of examples/train_mnist.py, and of the peer's."""

LARGEST_ERROR = {"lenet": 0.01, "resnet20": 0.1}
"""Of the peer, which states no bound, beside scores of some 20 and of some 3: a wrong result is off by more
than 1."""

TITLES = {"lenet": "A LeNet of squares", "resnet20": "A ResNet-20 of squares"}
CALIBRATION = 20
"""Images on which the weights of ResNet-20 are scaled and Keywright calibrates it; they are not run."""


def weights(model: onnx.ModelProto) -> dict[str, NDArray[np.float32]]:
    """Weights and biases by the peer's names.

    Raises:
        SystemExit: the model is none of examples/train_mnist.py.
    """
    weights = {}
    for tensor in model.graph.initializer:
        layer, _, role = tensor.name.partition(".")
        if layer not in LAYERS:
            raise SystemExit(f"the model has {tensor.name}; one of examples/train_mnist.py is needed")
        weights[f"{LAYERS[layer]}.{role}"] = numpy_helper.to_array(tensor)
    return weights


def setup_s(own: dict[str, Any]) -> float:
    """Seconds of Keywright's compiler, planner, keys and diagonals."""
    return float(sum(own[name] for name in ("compile_s", "plan_s", "keys_s", "prepare_s")))


def alone(ours: list[dict[str, Any]], facts: dict[str, dict[str, Any]]) -> list[str]:
    """How Orion's process ended, and Keywright."""
    theirs = facts["orion"]
    rows = [
        ("seconds an image", "", spread([line["seconds"] for line in ours])),
        (
            "compile, with keys, s",
            f"ended after {theirs['after_s']:.0f}",
            f"{setup_s(facts['keywright']):.1f}",
        ),
        (
            "peak, MB",
            f"{theirs['peak_rss_bytes'] / 1e6:.0f}, without swap space",
            f"{max(line['peak_bytes'] for line in ours) / 1e6:.0f}",
        ),
        ("largest error of a score", "", f"{max(line['model_error'] for line in ours):.2g}"),
    ]
    text = f"Orion's process ended with status {theirs['ended']} while it compiled."
    return [text, "", *markdown(["", "Orion", "Keywright"], rows)]


def table(
    orion: list[dict[str, Any]], ours: list[dict[str, Any]], facts: dict[str, dict[str, Any]]
) -> list[str]:
    """Both, and their ratio image by image."""
    if "ended" in facts["orion"]:
        return alone(ours, facts)
    seconds = [[line["seconds"] for line in lines] for lines in (orion, ours)]
    peaks = [
        max(line["peak_rss_bytes"] for line in orion) / 1e6,
        max(line["peak_bytes"] for line in ours) / 1e6,
    ]
    theirs, setup = facts["orion"], setup_s(facts["keywright"])
    errors = [max(line["model_error"] for line in lines) for lines in (orion, ours)]
    rows = [
        ("seconds an image", *map(spread, seconds), spread(quotients(*seconds))),
        (
            "compile, with keys, s",
            f"{theirs['compile_s']:.1f}",
            f"{setup:.1f}",
            f"{theirs['compile_s'] / setup:.3g}",
        ),
        ("peak, MB", *(f"{peak:.0f}" for peak in peaks), f"{peaks[0] / peaks[1]:.3g}"),
        ("largest error of a score", *(f"{error:.2g}" for error in errors), ""),
    ]
    return markdown(["", f"Orion {theirs['version']}", "Keywright", "ratio"], rows)


def compile_peer(peer: PeerProcess, request: dict[str, Any]) -> dict[str, Any]:
    """What Orion says about compiling, or how its process ended."""
    start = time.perf_counter()
    try:
        return peer.ask(request)
    except PeerEnded as ended:
        return {
            "ended": ended.status,
            "after_s": time.perf_counter() - start,
            "peak_rss_bytes": ended.peak_rss_bytes,
        }


def checked(line: dict[str, Any], expected: NDArray[np.float64], network: str) -> dict[str, Any]:
    """A result with its error against the model in the clear.

    Raises:
        SystemExit: it is wrong.
    """
    line["model_error"] = float(np.abs(np.subtract(line["scores"], expected)).max())
    if line["model_error"] > LARGEST_ERROR[network]:
        raise SystemExit(f"a score is off by {line['model_error']}")
    return line


def memory_of_machine() -> str:
    """Memory and swap space."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    sizes = [int(lines[name].split()[0]) / 1e6 * 1.024 for name in ("MemTotal", "SwapTotal")]
    return f"memory {sizes[0]:.1f} GB, swap space {sizes[1]:.1f} GB"


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.networks.beside_orion", description=__doc__)
    parser.add_argument("--network", choices=TITLES, default="lenet", help="default: lenet")
    parser.add_argument("--model", type=Path, help="ONNX file of examples/train_mnist.py, for lenet")
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of MNIST's files, tar of CIFAR-10's test images"
    )
    parser.add_argument("--images", type=int, default=5, help="images (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="of each (default: 2)")
    parser.add_argument(
        "--log-n",
        type=int,
        choices=(14, 15),
        default=14,
        help="log2 of Orion's ring degree for lenet (default: 14)",
    )
    parser.add_argument(
        "--memory", type=parse_bytes, help="of Keywright's process (default: most of what is free)"
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the peers' builds")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-orion)")
    options = parser.parse_args()
    if options.network == "lenet" and options.model is None:
        parser.error("--model names an ONNX file of examples/train_mnist.py")
    if options.network == "resnet20" and options.model is not None:
        parser.error(f"--model {options.model}: the ResNet-20 is made here")
    return options


def subject(
    options: argparse.Namespace, scratch: Path
) -> tuple[Path, Images, NDArray[np.float32] | None, dict[str, NDArray[np.float32]]]:
    """The ONNX file, the images that are run, those of calibration, and the weights."""
    if options.network == "lenet":
        return (
            options.model,
            mnist(options.data, range(options.images)),
            None,
            weights(onnx.load(options.model)),
        )
    images = cifar(options.data, range(CALIBRATION, CALIBRATION + options.images))
    calibration = cifar(options.data, range(CALIBRATION)).samples
    path = scratch / "square_resnet20.onnx"
    return path, images, calibration, build(calibration, path)


def main() -> None:
    """Run both in turns, compare, write."""
    options = parse_options()
    console = Console()
    pin(options.threads)
    folder = record_folder(options.out, "orion")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        path, images, calibration, own_weights = subject(options, scratch)
        expected = run_onnxruntime(onnx.load(path), images.samples.astype(np.float64))
        np.savez(scratch / "weights.npz", allow_pickle=False, **own_weights)
        try:
            peer = PeerProcess("orion", "peers.orion", options.build.resolve(), console, options.threads)
        except Unavailable as unavailable:
            raise SystemExit(f"orion: {unavailable}") from unavailable
        log_n = options.log_n if options.network == "lenet" else 16
        request = {
            "network": options.network,
            "folder": None if options.network == "lenet" else str(scratch),
            "weights": str(scratch / "weights.npz"),
            "samples": str(scratch / "samples.npy"),
            "log_n": log_n,
            "threads": options.threads,
        }
        np.save(scratch / "samples.npy", images.samples)
        console.status("Orion compiles")
        theirs_facts = compile_peer(peer, request)
        with (
            Measured(
                scratch,
                path,
                images.samples,
                calibration,
                preset=None,
                memory=options.memory,
                threads=options.threads,
            ) as measured,
            (folder / f"{options.network}.jsonl").open("w") as raw,
        ):
            facts = {"keywright": measured.facts(), "orion": theirs_facts}
            print(json.dumps(facts), file=raw, flush=True)
            orion, ours = [], []
            for place in range(options.images):
                line: dict[str, Any] = {"image": place}
                if "ended" not in theirs_facts:
                    line["orion"] = checked(peer.ask({"place": place}), expected[place], options.network)
                    orion.append(line["orion"])
                (own,) = measured.classify([place])
                line["keywright"] = checked(own, expected[place], options.network)
                ours.append(own)
                print(json.dumps(line), file=raw, flush=True)
                console.status(f"image {place + 1} of {options.images}")
    text = heading(
        f"{TITLES[options.network]} beside Orion",
        f"{options.images} images, {options.threads} threads, in turns; {path.name}",
        f"Orion: N = 2^{log_n}; Keywright: {facts['keywright']['parameters']}",
        memory_of_machine(),
        f"load of the machine {os.getloadavg()[0]:.1f}",
    )
    text += [*table(orion, ours, facts), ""]
    (folder / f"{options.network}.md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
