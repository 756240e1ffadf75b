"""Reads what exporters write: `python -m studies.exporters`.

The frameworks of `studies.models`, in their environments, export small models of one operator each in every
opset that their exporters take. Every file is read, and its graph compared with the framework's own outputs;
those of the oldest and the newest opset are compiled with the polynomials that are chosen by default, and the
program is run in the clear. Writes results.json and table.md; a wrong result ends the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from harness.console import Console
from harness.folders import BUILD, HERE, record_folder, today
from harness.pages.table import markdown
from harness.programs.targets import Unavailable, environment

from studies.exporters.watching import WrongError, watch
from studies.exporters.writing.files import SAMPLES

EXPORTERS = {
    "torch": ("TorchScript", "dynamo"),
    "keras": ("tf2onnx",),
    "flax": ("jax2onnx",),
    "sklearn": ("skl2onnx", "skl2onnx double"),
}
"""Of each framework."""

IMPORTS = {"sklearn": "skl2onnx", "torch": "torch", "keras": "tf2onnx", "flax": "jax2onnx"}
"""A module of each environment."""

FIXTURES = (
    "TorchScript-BERT,_masked-20",
    "TorchScript-BERT-14",
    "TorchScript-Conv1d-13",
    "TorchScript-GELU_by_tanh-13",
    "TorchScript-GRU-13",
    "TorchScript-Gather-13",
    "TorchScript-LSTM-13",
    "TorchScript-LayerNorm-13",
    "TorchScript-MaxPool-13",
    "TorchScript-PReLU-13",
    "TorchScript-Pad-13",
    "TorchScript-TransformerEncoder-14",
    "TorchScript-ViT-17",
    "dynamo-ArgMax-25",
    "dynamo-BERT,_gelu_new-18",
    "dynamo-BERT,_masked-25",
    "dynamo-BERT,_pooled-23",
    "dynamo-Concat-25",
    "dynamo-GELU-25",
    "dynamo-GRU-25",
    "dynamo-GroupNorm-25",
    "dynamo-HardSwish-25",
    "dynamo-LSTM-25",
    "dynamo-Slice-25",
    "dynamo-Softmax-25",
    "dynamo-Split-25",
    "dynamo-TransformerDecoderLayer-18",
    "dynamo-TransformerEncoder,_causal-25",
    "dynamo-TransformerEncoder,_norm_first-18",
    "dynamo-ViT-18",
    "dynamo-ViT-25",
    "dynamo-cross-attention-23",
    "dynamo-double-25",
    "jax2onnx-GELU_by_tanh-21",
    "jax2onnx-LayerNorm-25",
    "jax2onnx-LogSoftmax-25",
    "jax2onnx-ReLU6-21",
    "jax2onnx-Softmax-21",
    "jax2onnx-Softplus-21",
    "skl2onnx_double-Normalizer,_l1-13",
    "skl2onnx-DecisionTreeClassifier-13",
    "skl2onnx-Normalizer,_l2-22",
    "skl2onnx-SVC,_poly-13",
    "tf2onnx-Clip-18",
    "tf2onnx-GELU-18",
    "tf2onnx-GRU-18",
    "tf2onnx-GRU_unrolled-13",
    "tf2onnx-LSTM-13",
    "tf2onnx-LeakyReLU-13",
    "tf2onnx-Transpose-18",
)
"""What the tests of the package read."""

LARGEST = 20_000
"""Bytes of a file above which values are numbered: TorchScript names each after all modules around it."""


def export(framework: str, folder: Path, build: Path, console: Console) -> None:
    """Have a framework write its files, unless they are there.

    Raises:
        SystemExit: the framework cannot be set up, or fails.
    """
    if all((folder / f"{exporter}.json").is_file() for exporter in EXPORTERS[framework]):
        return
    pins = HERE / "studies" / "models" / "frameworks" / f"{framework}.txt"
    try:
        python = environment(framework, IMPORTS[framework], Path(sys.executable), pins, build, console)
    except Unavailable as unavailable:
        raise SystemExit(f"{framework}: {unavailable}") from unavailable
    console.status(f"{framework}: exporting")
    command = [str(python), "-m", f"studies.exporters.writing.{framework}", str(folder)]
    with (folder / f"{framework}.log").open("w") as log:
        subprocess.run(command, cwd=HERE, check=True, stderr=log)


def watched(exporter: str, folder: Path) -> dict[str, Any]:
    """Return the outcome of every file of an exporter: its versions, and for each case the results by opset.

    Raises:
        SystemExit: a file is read wrongly.
    """
    about = json.loads((folder / f"{exporter}.json").read_text())
    opsets, cases = about["opsets"], {}
    for case in about["cases"]:
        stem = f"{exporter}-{case}".replace(" ", "_")
        arrays, outputs = np.load(folder / f"{stem}.npz"), {}
        for opset in opsets:
            path, compiled = folder / f"{stem}-{opset}.onnx", opset in (opsets[0], opsets[-1])
            if not path.is_file():
                outputs[opset] = {"not_exported": about["not_exported"][f"{case}-{opset}"]}
                continue
            try:
                result = watch(path, arrays["samples"], arrays["outputs"], SAMPLES, compiled=compiled)
            except WrongError as error:
                raise SystemExit(f"{path.name}: {error}") from error
            outputs[opset] = result.to_json()
        cases[case] = outputs
    return {"versions": about["versions"], "opsets": opsets, "cases": cases}


def cell(results: Mapping[int, Mapping[str, Any]] | None) -> str:
    """Opsets that are read, with the levels and the change of a program; what else became of them."""
    if results is None:
        return ""
    parts = []
    read = [opset for opset, result in results.items() if "difference" in result]
    if read:
        compiled = [result for result in results.values() if "depth" in result]
        depth, change = compiled[-1]["depth"], max(result["change"] for result in compiled)
        parts.append(f"{_span(read)}: {depth} level{'s' * (depth > 1)}, {_share(change)}")
    for what in ("refused", "not_exported"):
        others = [opset for opset, result in results.items() if what in result]
        parts += [f"{_span(others)} {what.replace('_', ' ')}"] if others else []
    return "; ".join(parts)


def _span(opsets: Sequence[int]) -> str:
    return f"{opsets[0]} to {opsets[-1]}" if len(opsets) > 1 else str(opsets[0])


def _share(change: float) -> str:
    if change < 1e-4:
        return "exact"
    return "below 0.1%" if change < 1e-3 else f"{change:.1%}"


def tables(results: Mapping[str, dict[str, Any]]) -> list[str]:
    """A table of modules and one of estimators, versions, and why files were refused."""
    lines = [f"Tested on {today()} with {_versions(results.values())}.", ""]
    for title, chosen in (
        ("operator", [name for name in results if not name.startswith("skl2onnx")]),
        ("estimator", [name for name in results if name.startswith("skl2onnx")]),
    ):
        names = dict.fromkeys(case for exporter in chosen for case in results[exporter]["cases"])
        rows = [[case, *(cell(results[e]["cases"].get(case)) for e in chosen)] for case in names]
        lines += [*markdown([title, *chosen], rows, aligned=False), ""] if chosen else []
    reasons: dict[str, list[str]] = {}
    for exporter, results_of_exporter in results.items():
        for case, results_of_case in results_of_exporter["cases"].items():
            for result in results_of_case.values():
                if "refused" in result:
                    reasons.setdefault(_without_node(result["refused"]), []).append(f"{case} ({exporter})")
    for reason, where in reasons.items():
        lines.append(f"* {', '.join(dict.fromkeys(where))}: {reason}")
    return lines


def _versions(results: Iterable[dict[str, Any]]) -> str:
    versions = {name: text for result in results for name, text in result["versions"].items()}
    return ", ".join(f"{name} {text}" for name, text in versions.items())


def _without_node(reasons: str) -> str:
    """The first reason, of whatever node."""
    first = reasons.partition("; node ")[0]
    return first.partition("': ")[2] or first


def keep(folder: Path, fixtures: Path) -> None:
    """Copy what tests read, without what exporters say of themselves and of their sources."""
    fixtures.mkdir(parents=True, exist_ok=True)
    for name in FIXTURES:
        model = onnx.load(folder / f"{name}.onnx")
        graph = model.graph
        values = (*graph.value_info, *graph.input, *graph.output, *graph.initializer)
        for part in (model, graph, *graph.node, *values):
            part.doc_string = ""
            del part.metadata_props[:]
        if model.ByteSize() > LARGEST:
            _number(graph)
        (fixtures / f"{name.replace(',', '')}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def _number(graph: onnx.GraphProto) -> None:
    """Name values inside a graph by numbers, without what the exporter says of their shapes."""
    names = {value.name: value.name for value in (*graph.input, *graph.output)}
    for part in graph.node:
        for values in (part.input, part.output):
            values[:] = [names.setdefault(name, str(len(names))) if name else "" for name in values]
    for tensor in graph.initializer:
        tensor.name = names.setdefault(tensor.name, str(len(names)))
    del graph.value_info[:]


def main() -> None:
    """Export, read, compare, write."""
    parser = argparse.ArgumentParser(prog="python -m studies.exporters", description=__doc__)
    parser.add_argument(
        "--frameworks", nargs="+", choices=EXPORTERS, default=[*EXPORTERS], help="by default all four"
    )
    parser.add_argument("--exported", type=Path, help="folder of exported files (default: .build/exporters)")
    parser.add_argument("--fixtures", type=Path, help="folder for the files that the package's tests read")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the frameworks' environments")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-exporters)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console, build = Console(), options.build.resolve()
    folder = (options.exported or options.build / "exporters").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for framework in options.frameworks:
        export(framework, folder, build, console)
    chosen = [exporter for framework in options.frameworks for exporter in EXPORTERS[framework]]
    results = {exporter: watched(exporter, folder) for exporter in chosen}
    record = record_folder(options.out, "exporters")
    (record / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = tables(results)
    (record / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if options.fixtures is not None:
        keep(folder, options.fixtures)


if __name__ == "__main__":
    main()
