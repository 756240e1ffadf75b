"""Files that PyTorch, Keras, Flax and scikit-learn exported, written by `python -m studies.exporters` in
`benchmarks`: read, compiled, and computed as onnxruntime computes them."""

import warnings
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import onnxruntime
import pytest
from keywright import compiler
from keywright.compiler.front_ends.model_file import load_model, sample_shape
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.front_ends.parts.client_end import load_parts
from keywright.compiler.graph.simplify import simplify
from keywright.errors import ModelRefusedError
from keywright.runtime import run_clear
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

EXPORTED = sorted(Path(__file__).with_name("exported").glob("*.onnx"))
REFUSED = {
    "tf2onnx-GRU-18": "Loop is not supported; .*unroll=True",
}
TREES = ("skl2onnx-DecisionTreeClassifier-13",)  # tests/compiler/trees compares these with their library
READ = [path for path in EXPORTED if path.stem not in (*REFUSED, *TREES)]
ENCRYPTED = (
    "TorchScript-Pad-13",
    "dynamo-Softmax-25",
    "jax2onnx-GELU_by_tanh-21",
    "skl2onnx-SVC_poly-13",
    "tf2onnx-LeakyReLU-13",
)
COUNT = 80
RUN = 8
"""Of them, samples that compiled programs run on."""


def samples_of(model: onnx.ModelProto) -> NDArray[Any]:
    kind = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    shape = [int(str(size)) for size in sample_shape(model)]
    return np.random.default_rng(4).normal(size=(COUNT, *shape)).astype(kind)


def own_outputs(model: onnx.ModelProto, samples: NDArray[Any]) -> NDArray[Any]:
    """The first output, sample by sample: exporters fix the size of a batch."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except InvalidArgument as error:
        # Only the oldest onnxruntime that pyproject.toml allows is older than the newest files.
        known = "official support for domain ai.onnx is till opset" in str(error)
        if not known or not onnxruntime.__version__.startswith("1.20."):
            raise
        version = model.opset_import[0].version
        pytest.skip(f"onnxruntime {onnxruntime.__version__} does not read models of opset {version}")
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: sample[None]})[0] for sample in samples])


def read(model: onnx.ModelProto, samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return scores of the graph with exact functions, and the outputs of the client's part."""
    server, client = load_parts(model)
    imported = import_model(server, requested=() if client is None else client.shapes)
    assert not imported.reasons
    graph = simplify(imported.graph)
    scores = graph.evaluate(samples.reshape(COUNT, -1).astype(np.float64))[graph.output]
    if client is None:
        return scores, scores
    return scores, next(iter(client.part(imported.scores, imported.known).run(scores).values()))


def test_there_are_files() -> None:
    assert len(EXPORTED) > 30
    assert {path.stem for path in EXPORTED} >= REFUSED.keys()
    assert max(path.stat().st_size for path in EXPORTED) < 20_000


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_what_exporters_write(path: Path) -> None:
    model = load_model(path)
    samples = samples_of(model)
    expected = own_outputs(model, samples)
    scores, outputs = read(model, samples)
    outputs = outputs.reshape(expected.shape)
    if expected.dtype.kind == "f":
        # Values are below 8, and single precision rounds each of at most 1,000 operations on the way to one.
        np.testing.assert_allclose(outputs, expected, rtol=0, atol=1000 * 8 * 2**-24)
    else:
        assert outputs.tolist() == expected.tolist()
    program = compiler.compile_program(
        model, compiler.Target(slots=1024, levels=80), compiler.Fit(calibration=samples)
    )
    change = np.abs(run_clear(program, samples[:RUN]).reshape(RUN, -1) - scores[:RUN]).max()
    # What polynomials are chosen for by default is a 16th of the largest output, on calibration data.
    assert change <= np.abs(scores).max() / 16 + 1e-6


@pytest.mark.parametrize("name", TREES)
def test_trees_that_exporters_write(name: str) -> None:
    model = load_model(next(path for path in EXPORTED if path.stem == name))
    samples = samples_of(model)
    expected = own_outputs(model, samples)
    fit = compiler.Fit(calibration=samples, thresholds="public")
    program = compiler.compile_program(model, compiler.Target(slots=1024, levels=60), fit)
    outputs = next(iter(program.answers(run_clear(program, samples)).values()))
    assert outputs.tolist() == expected.tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    path = next(path for path in EXPORTED if path.stem == name)
    with pytest.raises(ModelRefusedError, match=REFUSED[name]):
        compiler.compile_program(path, compiler.Target(slots=1024, levels=60))


@pytest.mark.parametrize("name", ENCRYPTED)
def test_encrypted(name: str) -> None:
    path = next(path for path in EXPORTED if path.stem == name)
    samples = samples_of(load_model(path)).astype(np.float64)
    model = kw.compile(path, samples)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "encryption changes output")  # some have unscaled features
        outputs, simulated = model.predict(samples[:3]), model.simulate(samples[:3])
    assert np.abs(outputs - run_clear(model.program, samples[:3])).max() < 10 * simulated.worst_error
