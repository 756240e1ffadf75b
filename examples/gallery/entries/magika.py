"""The type of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from gallery.entry import Array, Case, Entry

SIZE, ENDS, PADDING = 2048, 1024, 256


def beginnings(paths: list[Path]) -> Array:
    """The first and the last 1,024 bytes of files without white space at their ends."""
    tokens = np.full((len(paths), SIZE), PADDING)
    for row, path in zip(tokens, paths, strict=True):
        content = path.read_bytes().strip()
        first, last = content[:ENDS], content[-ENDS:]
        row[: len(first)] = list(first)
        row[SIZE - len(last) :] = list(last)
    return tokens


def load(folder: Path) -> Case:
    """The network as shipped, from 2,048 bytes to 214 types of files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 200)
    model = onnx.load(folder / "magika" / "models" / "standard_v3_3" / "model.onnx")

    def outputs(samples: Array) -> Array:
        import onnxruntime as ort

        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {"bytes": samples.astype(np.int32)})[0])

    return Case(model, beginnings(files[1:]), beginnings(files[:1]), options={"samples": 1}, clear=outputs)


ENTRY = Entry(
    title="the type of a file by 2,048 of its bytes, one of 214; embeddings, a wide convolution, GELU",
    licence="Apache-2.0",
    data="files of the package itself",
    load=load,
)
