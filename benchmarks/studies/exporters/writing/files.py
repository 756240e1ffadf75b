"""What an exporter leaves: a file for each case and opset, samples and the framework's own outputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLES = 80
"""Of each case: normally distributed, and as many that only a comparison sees."""


@dataclass(frozen=True)
class Case:
    """A model of one operator, or of a few that go together.

    Attributes:
        name: what it is watched for, a row of the table.
        samples: (2 SAMPLES, *shape).
        outputs: the framework's own, of all samples.
        export: opset to the bytes of an ONNX file.
    """

    name: str
    samples: NDArray[Any]
    outputs: NDArray[Any]
    export: Callable[[int], bytes]


def normal(*shape: int, kind: type = np.float32) -> NDArray[Any]:
    """Samples, the same for every case of a shape."""
    return np.random.default_rng(11).normal(size=(2 * SAMPLES, *shape)).astype(kind)


def write(exporter: str, cases: Iterable[Case], opsets: Iterable[int], versions: Mapping[str, str]) -> None:
    """Write EXPORTER-CASE-OPSET.onnx and EXPORTER-CASE.npz into the folder of the command line, and what was
    not exported with EXPORTER's versions into EXPORTER.json."""
    folder, refused, written = Path(sys.argv[1]), {}, []
    opsets = list(opsets)
    for case in cases:
        stem = f"{exporter}-{case.name}".replace(" ", "_")
        np.savez(folder / f"{stem}.npz", samples=case.samples, outputs=case.outputs)
        for opset in opsets:
            try:
                (folder / f"{stem}-{opset}.onnx").write_bytes(case.export(opset))
            except Exception as error:  # noqa: BLE001 (exporters raise errors of any class)
                refused[f"{case.name}-{opset}"] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        written.append(case.name)
    about = {"versions": dict(versions), "opsets": opsets, "cases": written, "not_exported": refused}
    (folder / f"{exporter}.json").write_text(json.dumps(about, indent=1) + "\n")
