"""What an entry of the gallery is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

Array = NDArray[Any]

HERE = Path(__file__).parent


def first_of_largest(outputs: Array) -> Array:
    """Indices of the largest of several outputs; of a single one, whether it is above 0."""
    flat = outputs.reshape(len(outputs), -1)
    return flat.argmax(1) if flat.shape[1] > 1 else (flat[:, 0] > 0).astype(np.int64)


@dataclass(frozen=True)
class Case:
    """A published model with samples.

    Attributes:
        model: what `keywright.compile` takes, unchanged or with the package's weights.
        calibration, tests: inputs, (count, *input_shape), of which none is in both.
        options: of `keywright.compile`.
        output: the name of the model's output that is compared, if it has several.
        clear: the outputs of the model in the clear for inputs; by default onnxruntime computes them.
        decide: labels of outputs, (count, *output_shape).
        agree: whether labels are equal, one by one.
        truth: true labels of the tests, if they are known.
    """

    model: Any
    calibration: Array
    tests: Array
    options: dict[str, Any] = field(default_factory=dict)
    output: str | None = None
    clear: Callable[[Array], Array] | None = None
    decide: Callable[[Array], Array] = first_of_largest
    agree: Callable[[Array, Array], Array] = np.equal
    truth: Array | None = None

    def first(self, count: int) -> Case:
        """The same model with fewer tests."""
        truth = None if self.truth is None else self.truth[:count]
        return replace(self, tests=self.tests[:count], truth=truth)

    def outputs(self, samples: Array) -> Array:
        """The model's output for samples, (count, *output_shape), in the clear."""
        if self.clear is not None:
            return self.clear(samples)
        return run_onnx(self.model, samples, self.output)


@dataclass(frozen=True)
class Entry:
    """A row of the gallery.

    Attributes:
        title: the model, what it computes, its layers.
        licence: of the package and of its weights.
        data: what the tests are.
        load: reads the model of the folder in which the package is installed; some take a number of tests.
        changes: what differs from the published model, if anything.
    """

    title: str
    licence: str
    data: str
    load: Callable[..., Case]
    changes: str = ""


def names() -> list[str]:
    """Names of all entries."""
    return sorted(path.stem for path in (HERE / "entries").glob("[!_]*.py"))


def entry(name: str) -> Entry:
    """The entry of a name."""
    module = import_module(f"gallery.entries.{name}").ENTRY
    assert isinstance(module, Entry)
    return module


def run_onnx(model: onnx.ModelProto, samples: Array, output: str | None = None) -> Array:
    """An output of an ONNX model, by default the first, for samples one by one, in onnxruntime."""
    import onnxruntime as ort

    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    name, expected = session.get_inputs()[0].name, None if output is None else [output]
    feeds = ({name: sample[None].astype(np.float32)} for sample in samples)
    return np.concatenate([np.asarray(session.run(expected, feed)[0]) for feed in feeds])
