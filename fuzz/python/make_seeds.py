"""Writes the inputs that fuzzing of the package's readers begins from: small files of each format.

    python fuzz/python/make_seeds.py

They go into the archives of `fuzz/corpus`; what fuzzing added there stays.
"""

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import corpus
import numpy as np
import onnx
from keywright import compiler
from keywright.federated.array_layout import ArrayLayout
from keywright.model.exchange.identity import Identity
from keywright.model.exchange.messages import Message
from keywright.model.folder.files import DESCRIPTION
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Chain,
    CostModel,
    DerivationPlanner,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.ephemeral import EphemeralSwitch, FixedKeys
from keywright.plan.cost.operations import Operation
from keywright.plan.keys import plan_file
from keywright.plan.workload.workload import CommonWork
from keywright.search import Quantisation, Vote
from keywright.search.directory import Directory
from keywright.search.messages import AnswerPart
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from readers import MODEL_FOLDER
from tests.serve.network import make_full, make_thin

ROOT = Path(__file__).parents[2]
RANDOM = np.random.default_rng(1)
Constants = dict[str, NDArray[Any]]


def weights(*shape: int) -> NDArray[np.float32]:
    """Return weights of a layer."""
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def ints(*values: int) -> NDArray[np.int64]:
    """Return integers of an operand."""
    return np.asarray(values, np.int64)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int],
    constants: Constants | None = None,
    kind: int = TensorProto.FLOAT,
    result: Sequence[int | str] | None = None,
) -> onnx.ModelProto:
    """Return a model from "x" of (batch, *shape) to "y"."""
    graph = helper.make_graph(
        list(nodes),
        "seed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info("y", kind, result)],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def beside() -> onnx.ModelProto:
    """Return a model with weights in a file, which is refused."""
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], (4,), {"w": weights(4, 3)})
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    return model


def models() -> dict[str, onnx.ModelProto]:
    """Return a model for every family of operators."""
    node, image = helper.make_node, (2, 4, 4)
    return {
        "dense": model_of(
            [
                node("Gemm", ["x", "w", "b"], ["h"], transB=1),
                node("Mul", ["h", "h"], ["s"]),
                node("MatMul", ["s", "v"], ["y"]),
            ],
            (4,),
            {"w": weights(3, 4), "b": weights(3), "v": weights(3, 2)},
        ),
        "sigmoid": model_of(
            [node("MatMul", ["x", "w"], ["h"]), node("Sigmoid", ["h"], ["y"])], (4,), {"w": weights(4, 2)}
        ),
        "relu": model_of([node("Relu", ["x"], ["h"]), node("LeakyRelu", ["h"], ["y"], alpha=0.1)], (4,)),
        "convolution": model_of(
            [
                node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
                node("BatchNormalization", ["c", "a", "b", "m", "v"], ["n"]),
                node("GlobalAveragePool", ["n"], ["g"]),
                node("Flatten", ["g"], ["y"]),
            ],
            image,
            {
                "w": weights(3, 2, 3, 3),
                "a": weights(3),
                "b": weights(3),
                "m": weights(3),
                "v": weights(3) ** 2,
            },
        ),
        "transposed": model_of([node("ConvTranspose", ["x", "w"], ["y"])], image, {"w": weights(2, 1, 2, 2)}),
        "pools": model_of(
            [
                node("AveragePool", ["x"], ["a"], kernel_shape=[2, 2], strides=[2, 2]),
                node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2]),
            ],
            image,
        ),
        "moves": model_of(
            [
                node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
                node("Reshape", ["t", "shape"], ["r"]),
                node("Slice", ["r", "start", "stop", "axes"], ["s"]),
                node("Gather", ["s", "places"], ["g"], axis=2),
                node("Pad", ["g", "pads"], ["p"]),
                node("Concat", ["p", "p"], ["y"], axis=1),
            ],
            image,
            {
                "shape": ints(0, -1, 4),
                "start": ints(1),
                "stop": ints(7),
                "axes": ints(1),
                "places": ints(0, 2),
                "pads": ints(0, 1, 0, 0, 0, 1),
            },
        ),
        "split": model_of(
            [
                node("Split", ["x"], ["a", "b"], axis=1),
                node("Sub", ["a", "b"], ["d"]),
                node("ReduceSumSquare", ["d"], ["y"], axes=[1], keepdims=1),
            ],
            (4,),
        ),
        "computed": model_of(
            [
                node("Constant", [], ["c"], value=numpy_helper.from_array(weights(4), "c")),
                node("ConstantOfShape", ["n"], ["z"]),
                node("Add", ["c", "z"], ["d"]),
                node("Mul", ["x", "d"], ["m"]),
                node("Pow", ["m", "two"], ["y"]),
            ],
            (4,),
            {"n": ints(4), "two": np.float32(2) * np.ones((), np.float32)},
        ),
        "recurrent": model_of(
            [
                node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
                node("GRU", ["t", "w", "r"], ["", "h"], hidden_size=2),
                node("Squeeze", ["h", "axis"], ["y"]),
            ],
            (2, 3),
            {"w": weights(1, 6, 3), "r": weights(1, 6, 2), "axis": ints(0)},
        ),
        "client": model_of(
            [
                node("MatMul", ["x", "w"], ["h"]),
                node("Softmax", ["h"], ["p"]),
                node("ArgMax", ["p"], ["y"], axis=1),
            ],
            (4,),
            {"w": weights(4, 3)},
            TensorProto.INT64,
        ),
        "erfc": model_of([node("Erfc", ["x"], ["y"])], (4,), result=["batch", 4]),
        "written_out": model_of(
            [
                node("MatMul", ["x", "w"], ["h"]),
                node("ReduceMax", ["h"], ["m"], axes=[1]),
                node("Sub", ["h", "m"], ["d"]),
                node("Exp", ["d"], ["e"]),
                node("ReduceSum", ["e", "axis"], ["s"]),
                node("Div", ["e", "s"], ["y"]),
            ],
            (4,),
            {"w": weights(4, 3), "axis": ints(1)},
        ),
        "beside": beside(),
        "classical": model_of(
            [
                node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.0] * 4, scale=[1.0] * 4),
                node(
                    "LinearRegressor",
                    ["s"],
                    ["y"],
                    domain="ai.onnx.ml",
                    coefficients=[0.5, -1.0, 2.0, 0.25],
                    intercepts=[1.0],
                ),
            ],
            (4,),
            result=["batch", 1],
        ),
    }


def programs() -> dict[str, compiler.Program]:
    """Return programs with a polynomial, ranges and a report; with samples that share ciphertexts; with a
    client's part."""
    samples = RANDOM.normal(size=(20, 4))
    programs = models()
    fit = compiler.Fit(calibration=samples, activations={"sigmoid": "chebyshev:7"})
    return {
        "sigmoid": compiler.compile_program(programs["sigmoid"], compiler.Target(slots=4, levels=9), fit),
        "batch": compiler.compile_program(programs["dense"], compiler.Target(slots=16, levels=3, batch=4)),
        "client": compiler.compile_program(programs["client"], compiler.Target(slots=4, levels=2)),
    }


def stored(write: Callable[[Path], None]) -> bytes:
    """Return the bytes that are written to a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


def workload() -> Workload:
    """Return a workload with one of everything."""
    return Workload(
        "everything",
        Chain(12, (40, 30, 30), (40,), 240),
        (make_group(AutomorphismGroup(12), "one", 2, [1, 2, 3, 5, 8, 40]),),
        (Relinearizations(2, 1),),
        9.0,
        (Operation("sum", 2, 1, visits=2),),
        CommonWork((EphemeralSwitch(32, 1, 1, 1),), (FixedKeys(1, 1, 2),), (((1, 2), (2, 1)),)),
    )


def plans() -> dict[str, bytes]:
    """Return plans with keys of one kind, and with derived keys."""
    cost = CostModel()
    powers = STRATEGIES["all-required"].plan(workload(), cost)
    derived = DerivationPlanner(powers, cost).priced[0].planned
    return {"direct": plan_file.to_json(powers).encode(), "derived": plan_file.to_json(derived).encode()}


def calibration() -> bytes:
    """Return a few measurements of the tests' calibration."""
    entry = json.loads((ROOT / "python" / "tests" / "plan" / "calibration.json").read_text())
    kinds = {str((each["what"], (each["operation"] or {}).get("what"))): each for each in entry["measured"]}
    entry["measured"] = list(kinds.values())
    return json.dumps(entry, separators=(",", ":")).encode()


def arrays() -> dict[str, bytes]:
    """Return arrays of several types and shapes."""
    arrays: Constants = {
        "numbers": np.linspace(-1, 1, 6).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        "other_order": np.arange(3, dtype=">f4"),
        "truth": np.asarray([True, False]),
        "one": np.asarray(1.5, np.float16),
        "none": np.zeros((0, 5), np.uint8),
    }
    return {name: stored_array(array) for name, array in arrays.items()}


def stored_array(array: NDArray[Any]) -> bytes:
    """Return an array in numpy's format."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def stored_image(image: Image.Image, kind: str) -> bytes:
    """Return an image in a file format."""
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def images() -> dict[str, bytes]:
    """Return images of every format that is read."""
    pixels = Image.fromarray(RANDOM.integers(0, 256, (5, 4, 3), np.uint8))
    modes = {"rgb": "RGB", "grey": "L", "palette": "P"}
    images = {name: stored_image(pixels.convert(mode), "PNG") for name, mode in modes.items()}
    images |= {kind.lower(): stored_image(pixels, kind) for kind in ("BMP", "JPEG")}
    return images


def description() -> bytes:
    """Return the description of a model for thin clients, whose other files are next to the readers."""
    with tempfile.TemporaryDirectory() as folder:
        make_thin().write(Path(folder))
        MODEL_FOLDER.mkdir(exist_ok=True)
        for path in Path(folder).iterdir():
            if path.name != DESCRIPTION:
                shutil.copyfile(path, MODEL_FOLDER / path.name)
        return (Path(folder) / DESCRIPTION).read_bytes()


def directories() -> dict[str, bytes]:
    """Return directories of one index and of two shards."""
    quantisation = Quantisation(2, "euclidean", 100, 3.0, np.ones(2))
    runs = np.array([[7, 3], [-5, -2], [100, 1]])
    shards = [Directory(bytes([number]) * 16, bytes(16), quantisation, runs).to_bytes() for number in (1, 2)]
    plain = Directory(bytes(16), bytes(16), Quantisation(3), np.zeros((0, 2), np.int64))
    thin = Directory(bytes(16), bytes(16), Quantisation(3, thin=True), runs)
    return {"one": shards[0], "two": b"".join(shards), "empty": plain.to_bytes(), "thin": thin.to_bytes()}


def manifests() -> dict[str, bytes]:
    """Return manifests of models for each kind of client, and of samples in two parts."""
    full = make_full(2).manifest
    entering, leaving = (replace(end.places, ciphertexts=2, parts=2) for end in (full.input, full.output))
    joined = replace(
        full, input=replace(full.input, places=entering), output=replace(full.output, places=leaving)
    )
    return {"thin": make_thin().manifest.encoded, "full": full.encoded, "joined": joined.encoded}


def seeds() -> dict[str, dict[str, bytes]]:
    """Return the seeds by reader and name."""
    layout = ArrayLayout.of(
        {"w": weights(2, 3), "b": np.zeros(3, np.int32), "one": np.float64(1) * np.ones(())}
    )
    accounts = {"format": "keywright-accounts-1", "tenants": {"a": ["0" * 64], "b": ["1" * 64, "f" * 64]}}
    return {
        "program": {name: stored(partial(compiler.save, program)) for name, program in programs().items()},
        "manifest": manifests(),
        "model_description": {"thin": description()},
        "plan": plans(),
        "workload": {"everything": workload().to_json().encode()},
        "calibration": {"few": calibration()},
        "array": arrays(),
        "image": images(),
        "onnx_model": {name: model.SerializeToString() for name, model in models().items()},
        "message": {
            "two": Message(2, [b"one", b"other"], Identity(bytes(32))).to_bytes(),
            "one": Message(None, [b"x"], Identity(bytes(32))).to_bytes(),
        },
        "array_layout": {"three": layout.to_bytes()},
        "search_directory": directories(),
        "search_parts": {"two": AnswerPart(bytes(16), bytes(16), bytes(16), b"scores").to_bytes() * 2},
        "search_vote": {"three": Vote(2, "distance", ["a", 1, 0.5]).to_bytes()},
        "accounts": {"two": json.dumps(accounts).encode()},
    }


def main() -> None:
    """Write them."""
    for reader, files in seeds().items():
        corpus.add(reader, {corpus.SEED + name: data for name, data in files.items()})


if __name__ == "__main__":
    main()
