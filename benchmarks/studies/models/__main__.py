"""Models of four frameworks, encrypted, a row of a table a command: `python -m studies.models --model NAME`.

The framework trains the model in a separate environment, on data that needs no download, and its own exporter
writes ONNX; `keywright.compile` takes that file as it is. A separate process encrypts, evaluates and decrypts
all tests, in the fastest batches. Its results are compared with the program in the clear, and its accuracy
with what the framework itself predicts. Writes NAME.json and table.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.console import Console
from harness.folders import BUILD, HERE, record_folder
from harness.measurement import machine
from harness.pages.table import heading, markdown, significant
from harness.programs.targets import Unavailable, environment
from keywright.commands.helpers.inputs import parse_bytes


@dataclass(frozen=True)
class Kind:
    """A model by its name: NAME is FRAMEWORK-WHAT.

    Attributes:
        title: what it is, and of which data.
        exporter: who wrote the ONNX file.
        classes: whether accuracy is the share of right labels; R² where not.
        activations: of `keywright.compile`.
    """

    title: str
    exporter: str
    classes: bool = True
    activations: dict[str, str] = field(default_factory=dict)


MODELS = {
    "sklearn-logistic": Kind("logistic regression 64-10, digits", "skl2onnx"),
    "sklearn-perceptron": Kind(
        "perceptron 30-32-16-2, ReLU, breast cancer", "skl2onnx", activations={"relu": "chebyshev:31"}
    ),
    "sklearn-svm": Kind("support vectors, radial kernel, diabetes", "skl2onnx", classes=False),
    "torch-convolutional": Kind("two convolutions, ReLU, digits", "torch, dynamo"),
    "torch-mnist": Kind("perceptron 784-64-10, SiLU, MNIST", "torch, TorchScript"),
    "torch-recurrent": Kind("recurrent, tanh, 4 steps, digits", "torch, dynamo"),
    "keras-convolutional": Kind("two convolutions, ELU, digits", "tf2onnx"),
    "keras-dense": Kind("perceptron 13-16-3, tanh, wine", "tf2onnx"),
    "flax-classifier": Kind("perceptron 30-16-16-2, SiLU, breast cancer", "jax2onnx"),
    "flax-regression": Kind("perceptron 10-16-16-1, tanh, diabetes", "jax2onnx", classes=False),
}

IMPORTS = {"sklearn": "skl2onnx", "torch": "torch", "keras": "tf2onnx", "flax": "jax2onnx"}
"""A module of each environment."""

HEADINGS = (
    "model",
    "exporter",
    "tests",
    "in the clear",
    "encrypted",
    "same labels",
    "s, all tests",
    "ms a test",
    "keys, MB",
    "sent, returned, kB a test",
    "peak, MB",
)


def train(name: str, folder: Path, data: Path | None, build: Path, console: Console) -> None:
    """Have the framework write NAME.onnx and NAME.npz, unless they are there.

    Raises:
        SystemExit: the framework cannot be set up, or fails.
    """
    if (folder / f"{name}.npz").is_file():
        return
    framework = name.partition("-")[0]
    pins = HERE / "studies" / "models" / "frameworks" / f"{framework}.txt"
    try:
        python = environment(framework, IMPORTS[framework], Path(sys.executable), pins, build, console)
    except Unavailable as unavailable:
        raise SystemExit(f"{framework}: {unavailable}") from unavailable
    command = [str(python), "-m", f"studies.models.training.{framework}", name, str(folder)]
    console.status(f"{name}: training")
    subprocess.run([*command, *([] if data is None else ["--data", str(data)])], cwd=HERE, check=True)


def measure(name: str, folder: Path, memory: int | None, threads: int) -> dict[str, Any]:
    """Run the process that is measured."""
    setting = folder / f"{name}.json"
    setting.write_text(json.dumps(asdict(MODELS[name]) | {"memory": memory}))
    done = subprocess.run(
        [sys.executable, "-m", "studies.models.measure", folder, name, setting],
        cwd=HERE,
        env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    line: dict[str, Any] = json.loads(done.stdout)
    return line | {"threads": threads, "commit": machine.commit(), "load": os.getloadavg()[0]}


def row(line: dict[str, Any]) -> list[str]:
    """Cells of a model."""
    kind, tests = MODELS[line["model"]], line["tests"]
    show = "{:.1%}" if kind.classes else "R² {:.3f}"
    seconds = line["encrypt_s"] + line["evaluate_s"] + line["decrypt_s"]
    return [
        f"{line['model']}: {kind.title}",
        kind.exporter,
        str(tests),
        show.format(line["clear"]),
        show.format(line["encrypted"]),
        f"{line['same_labels']}" if kind.classes else "",
        significant(seconds),
        significant(1e3 * seconds / tests),
        significant(line["key_bytes"] / 1e6),
        ", ".join(significant(line[name] / 1e3 / tests) for name in ("sent_bytes", "returned_bytes")),
        f"{line['peak_bytes'] / 1e6:.0f}",
    ]


def main() -> None:
    """Train and measure one model, and write the table of all that are there."""
    parser = argparse.ArgumentParser(prog="python -m studies.models", description=__doc__)
    names = "; ".join(f"{name}: {kind.title}" for name, kind in MODELS.items())
    parser.add_argument("--model", choices=MODELS, required=True, help=names)
    parser.add_argument("--data", type=Path, help="folder of MNIST's files, for torch-mnist")
    parser.add_argument("--memory", type=parse_bytes, help="most memory of the process, as 4GB")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default: 2)")
    parser.add_argument("--trained", type=Path, help="folder of trained models (default: .build/models)")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the frameworks' environments")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-models)")
    options = parser.parse_args()
    data = None if options.data is None else options.data.resolve()
    trained = (options.trained or options.build / "models").resolve()
    trained.mkdir(parents=True, exist_ok=True)
    train(options.model, trained, data, options.build.resolve(), Console())
    line = measure(options.model, trained, options.memory, options.threads)
    folder = record_folder(options.out, "models")
    (folder / f"{options.model}.json").write_text(json.dumps(line, indent=1) + "\n")
    reports = [
        json.loads((folder / f"{name}.json").read_text())
        for name in MODELS
        if (folder / f"{name}.json").is_file()
    ]
    text = [
        *heading("Models of four frameworks, encrypted", f"{line['threads']} threads"),
        *markdown(HEADINGS, map(row, reports)),
    ]
    (folder / "table.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
