"""Models that would take too long or too much are refused early, in a process with little memory."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler import limits
from keywright.compiler.front_ends.model_file import load_model
from keywright.compiler.front_ends.operators.images.interpolation import BLOCK, linear, weights_at
from keywright.errors import FormatError, ModelRefusedError, RefusalError
from keywright.program.arrays import Vector
from keywright.program.client.last_steps import ClientPart
from onnx import TensorProto, helper, numpy_helper
from tests.processes import in_child

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
ADDRESS_SPACE = 3 << 29
"""Bytes of addresses in addition to those of the test's own process."""
SECONDS = 8.0
"""Of processor time."""


def refused(model: onnx.ModelProto | Path, folder: Path) -> list[tuple[str, str]]:
    """Return the reasons for which a process with little memory and time refuses a model."""
    path = folder / "model.onnx"
    if isinstance(model, Path):
        path = model
    else:
        # onnx asks for a shape of the output, which it does not infer where constants are computed.
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", "n"]))
        path.write_bytes(model.SerializeToString())

    def child() -> tuple[list[tuple[str, str]], float]:
        import resource  # not on Windows, where nothing is forked

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        allowed = pages * resource.getpagesize() + ADDRESS_SPACE
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
        reasons: list[tuple[str, str]] = []
        try:
            compiler.compile_program(path, compiler.Target(slots=32768, levels=5))
        except ModelRefusedError as refusal:
            reasons = [(reason.code, str(reason)) for reason in refusal.reasons]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return reasons, usage.ru_utime + usage.ru_stime

    reasons, seconds = in_child(child)
    assert seconds <= SECONDS
    return reasons


def test_an_image_of_four_million_pixels(build: Build, tmp_path: Path) -> None:
    weights = {"w": np.ones((1, 1, 3, 3), np.float32)}
    model = build([node("Conv", ["x", "w"], ["y"], pads=[1] * 4)], (1, 2048, 2048), weights)
    ((name, text),) = refused(model, tmp_path)
    assert name == "size"
    assert "(2048, 3, 2048, 3) takes 37748736 entries" in text


@pytest.mark.parametrize("size", [10**9, 2**40, 2**62])
def test_declared_shapes(build: Build, tmp_path: Path, size: int) -> None:
    ((name, text),) = refused(build([node("Identity", ["x"], ["y"])], (size,)), tmp_path)
    assert name == "size"
    assert str(size) in text


@pytest.mark.parametrize("size", [10**9, 2**40, 2**62])
def test_constants_that_are_computed(build: Build, tmp_path: Path, size: int) -> None:
    shape = {"shape": np.asarray([size], np.int64)}
    value = numpy_helper.from_array(np.ones(1, np.float32))
    fill = node("ConstantOfShape", ["shape"], ["c"], "fill", value=value)
    model = build([fill, node("Add", ["x", "c"], ["y"])], (4,), shape)
    refusals = refused(model, tmp_path)
    assert [name for name, _ in refusals] == ["size"]
    assert "'fill'" in refusals[0][1]
    assert str(size) in refusals[0][1]


@pytest.mark.parametrize(
    ("nodes", "word"),
    [
        ([node("Expand", ["one", "large"], ["c"], "wide")], "'wide'"),
        ([node("Tile", ["one", "large"], ["c"], "tiled")], "'tiled'"),
        ([node("Range", ["zero", "many", "step"], ["c"], "range")], "'range'"),
        ([node("Mul", ["row", "column"], ["c"], "outer")], "'outer'"),
    ],
)
def test_operators_that_make_much_of_little(
    build: Build, tmp_path: Path, nodes: list[onnx.NodeProto], word: str
) -> None:
    constants = {
        "one": np.ones(1, np.float32),
        "large": np.asarray([1 << 40], np.int64),
        "zero": np.asarray(0, np.int64),
        "many": np.asarray(1 << 40, np.int64),
        "step": np.asarray(1, np.int64),
        "row": np.ones((1, 1 << 16), np.float32),
        "column": np.ones((1 << 16, 1), np.float32),
    }
    used = {name: constants[name] for name in nodes[0].input}
    refusals = refused(build([*nodes, node("Add", ["x", "c"], ["y"])], (4,), used), tmp_path)
    assert [name for name, _ in refusals] == ["size"]
    assert word in refusals[0][1]


@pytest.mark.parametrize("equation", ["bi,kl->bikl", "bi,kl->blki", "bi,il->bil", "bi,kl->bik", "bi,il->bl"])
def test_products_that_an_einsum_makes_of_little(build: Build, tmp_path: Path, equation: str) -> None:
    """The first ones have more results than the limit, and the others more entries of their matrices."""
    rows, columns = (1 << 11, 1 << 11) if ",k" in equation else (1 << 14, 1025)
    weights = {"w": np.ones((rows, columns), np.float32)}
    model = build([node("Einsum", ["x", "w"], ["y"], "wide", equation=equation)], (rows,), weights)
    refusals = refused(model, tmp_path)
    assert [name for name, _ in refusals] == ["size"]
    assert "'wide'" in refusals[0][1]


@pytest.mark.parametrize("size", [1 << 24, 1 << 40, 1 << 62])
def test_shapes_that_onnx_would_infer_without_end(build: Build, tmp_path: Path, size: int) -> None:
    """Also of values that no result needs, and in a client's part of a model."""
    unread = [node("Split", ["x"], ["u"], "wide", num_outputs=size, axis=1), node("Relu", ["x"], ["y"])]
    split = build(unread, (4,), {})
    split.opset_import[0].version = 18
    with pytest.raises(FormatError, match="num_outputs"):
        ClientPart(split.SerializeToString(), (1, 4))
    reasons = refused(split, tmp_path)
    assert [name for name, _ in reasons] == ["attribute"]
    assert "'wide'" in reasons[0][1]
    cast = node("Cast", ["wide"], ["u"], to=TensorProto.INT64)
    counted = build([cast, node("Relu", ["x"], ["y"])], (4,), {})
    counted.graph.input.append(helper.make_tensor_value_info("wide", TensorProto.INT64, [size]))
    # The vector is not followed, and no result needs it: what is refused is Relu without calibration data.
    assert [name for name, _ in refused(counted, tmp_path)] == ["activations"]


@pytest.mark.parametrize(
    "first",
    [
        node("ConstantOfShape", ["large"], ["c"], "c", value=numpy_helper.from_array(np.ones(1, np.int64))),
        node("Expand", ["unit", "large"], ["c"], "c"),
        node("Tile", ["unit", "large"], ["c"], "c"),
        node("Range", ["zero", "many", "step"], ["c"], "c"),
    ],
    ids=lambda first: first.op_type,
)
def test_long_vectors_of_integers_are_not_followed(
    build: Build, tmp_path: Path, first: onnx.NodeProto
) -> None:
    entries = {"large": [1 << 36], "unit": [1], "zero": 0, "many": 1 << 36, "step": 1}
    used = {name: np.asarray(entries[name], np.int64) for name in first.input}
    unread = [first, node("Cast", ["c"], ["u"], to=TensorProto.INT32)]
    reasons = refused(build([*unread, node("Identity", ["x"], ["y"])], (4,), used), tmp_path)
    assert {name for name, _ in reasons} == {"size"}
    assert "'c'" in reasons[0][1]


LONG = [
    node("Mul", ["half", "half"], ["size"]),
    node("ConstantOfShape", ["size"], ["c"], "wide", value=numpy_helper.from_array(np.ones(1, np.int64))),
]
READERS: dict[str, tuple[list[str], dict[str, Any]]] = {
    **dict.fromkeys(["Add", "Mul", "Sub"], (["c", "c"], {})),
    "Cast": (["c"], {"to": TensorProto.INT32}),
    "Concat": (["c", "c"], {"axis": 0}),
    "Gather": (["c", "zero"], {}),
    **dict.fromkeys(["Shape", "Size", "Squeeze"], (["c"], {})),
    "Slice": (["c", "zero", "zero"], {}),
    "Unsqueeze": (["c", "zero"], {}),
}
"""Operands and attributes of the operators through which onnx follows the entries of vectors."""


@pytest.mark.parametrize(
    "operator",
    sorted({each.name for each in onnx.defs.get_all_schemas() if each.has_data_propagation_function}),
)
def test_vectors_whose_length_is_computed_are_not_followed(
    build: Build, tmp_path: Path, operator: str
) -> None:
    operands, attributes = READERS[operator]
    constants = {"half": np.asarray([1 << 18]), "zero": np.asarray([0])}
    used = {name: array for name, array in constants.items() if name in ("half", *operands)}
    unread = [*LONG, node(operator, operands, ["u"], **attributes)]
    reasons = refused(build([*unread, node("Identity", ["x"], ["y"])], (4,), used), tmp_path)
    assert reasons[0][0] == "size"
    assert "'wide'" in reasons[0][1]


@pytest.mark.parametrize(
    ("first", "then", "count"),
    [
        (node("Unsqueeze", ["v", "zero"], ["v0"]), {"op_type": "Concat", "axis": 0}, 40),
        (node("Unsqueeze", ["v", "zero"], ["v0"]), {"op_type": "Cast", "to": TensorProto.INT64}, 1 << 11),
        (node("Gather", ["x", "v"], ["v0"]), {"op_type": "Gather"}, 40),
        (node("Reshape", ["x", "v"], ["v0"]), {"op_type": "Neg"}, 1 << 11),
        (node("Unsqueeze", ["x", "v"], ["v0"]), {"op_type": "Neg"}, 1 << 11),
    ],
    ids=["entries", "values", "axes", "shapes", "new axes"],
)
def test_what_little_nodes_infer_is_bounded(
    build: Build, tmp_path: Path, first: onnx.NodeProto, then: dict[str, Any], count: int
) -> None:
    """Entries of rows of two axes as well, which onnx follows as those of vectors."""
    constants = {"v": np.ones(1 << 12, np.int64), "zero": np.asarray([0])}
    used = {name: array for name, array in constants.items() if name in first.input}
    kind, options = then["op_type"], {name: value for name, value in then.items() if name != "op_type"}
    operands = 2 if kind in ("Concat", "Gather") else 1
    nodes = [node(kind, [f"v{k}"] * operands, [f"v{k + 1}"], **options) for k in range(count)]
    model = build([node("Identity", ["x"], ["y"])], (4,), used)
    model.graph.node.extend([first, *nodes])  # here, nothing bounds what onnx infers
    assert {name for name, _ in refused(model, tmp_path)} <= {"size"}


def test_axes_that_go_again_are_not_counted(build: Build) -> None:
    """Of a thousand steps of an unrolled layer."""
    nodes = [node("Identity", ["x"], ["h0"])]
    for step in range(1000):
        nodes.append(node("Unsqueeze", [f"h{step}", "first"], [f"u{step}"]))
        nodes += [node("Neg", [f"{name}{step}"], [f"{after}{step}"]) for name, after in pairwise("uabcdefgn")]
        nodes.append(node("Squeeze", [f"n{step}", "first"], [f"h{step + 1}"]))
    model = build([*nodes, node("Identity", ["h1000"], ["y"])], (4,), {"first": np.asarray([1])})
    assert load_model(model).graph.node


@pytest.mark.parametrize("place", ["graph", "nested graph", "function"])
def test_look_ups_in_themselves_are_refused_before_their_axes_are_inferred(
    build: Build, tmp_path: Path, place: str
) -> None:
    """Also in the last steps of a client."""
    model = build([node("Identity", ["x"], ["y"])], (4,), {"first": np.zeros((1, 1), np.int64)})
    look_ups = [node("Gather", [f"v{k}"] * 2, [f"v{k + 1}"]) for k in range(40)]
    begin = node("Gather", ["x", "first"], ["v0"])
    if place == "graph":
        model.graph.node.extend([begin, *look_ups])
        with pytest.raises(FormatError, match="axes together"):
            ClientPart(model.SerializeToString(), (1, 4))
    elif place == "nested graph":
        branch = helper.make_graph(look_ups, "b", [], [onnx.ValueInfoProto(name="v40")])
        truth = node("Constant", [], ["truth"], value=numpy_helper.from_array(np.asarray(True)))
        model.graph.node.extend(
            [begin, truth, node("If", ["truth"], ["u"], then_branch=branch, else_branch=branch)]
        )
    else:
        opsets = [helper.make_opsetid("", 17)]
        model.functions.append(
            helper.make_function("own", "F", ["a"], ["b"], [node("Gather", ["a", "a"], ["b"])], opsets)
        )
        model.opset_import.append(helper.make_opsetid("own", 1))
        model.graph.node.extend(
            [begin, *(node("F", [f"v{k}"], [f"v{k + 1}"], domain="own") for k in range(40))]
        )
    reasons = refused(model, tmp_path)
    assert [name for name, _ in reasons] == ["operator" if place == "function" else "size"]


@pytest.mark.parametrize("operator", ["AveragePool", "Conv", "ConvTranspose"])
@pytest.mark.parametrize("name", ["strides", "dilations", "kernel_shape"])
@pytest.mark.parametrize("size", [0, -1, -(1 << 62)])
def test_windows_without_size(build: Build, operator: str, name: str, size: int) -> None:
    weights = {} if operator == "AveragePool" else {"w": np.ones((1, 1, 2, 2), np.float32)}
    given: dict[str, Any] = {"kernel_shape": [2, 2], name: [1, size]}
    model = build([node(operator, ["x", *weights], ["y"], **given)], (1, 8, 8), weights)
    model.opset_import[0].version = 19
    with pytest.raises(ModelRefusedError):
        compiler.compile_program(model, compiler.Target(slots=64, levels=8))


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "ReduceProd", "CumSum", "Slice"])
@pytest.mark.parametrize("axes", [[1, 1], [-1, 1], [7], [0.5], [np.nan]])
def test_axes_that_are_none(build: Build, operator: str, axes: list[float]) -> None:
    constants = {"a": np.asarray(axes), "s": np.asarray([0]), "e": np.asarray([1])}
    sources = ["x", "s", "e", "a"] if operator == "Slice" else ["x", "a"]
    model = build([node(operator, sources, ["y"])], (4,), {each: constants[each] for each in sources[1:]})
    model.opset_import[0].version = 18
    with pytest.raises(ModelRefusedError):
        compiler.compile_program(model, compiler.Target(slots=16, levels=8))


@pytest.mark.parametrize(("old", "new"), [(1 << 20, 4), (1 << 22, 1), (4, 1 << 20), (1 << 12, 1 << 12)])
def test_an_interpolation_computes_many_weights_at_a_time(old: int, new: int) -> None:
    calls = []

    def kernel(distance: Vector) -> Vector:
        calls.append(distance.size)
        return linear(distance)

    stretch = min(new / old, 1.0)
    places = (np.arange(new) + 0.5) * old / new - 0.5
    weights = weights_at(places, old, kernel, 1, stretch=stretch, exclude_outside=False)
    assert np.abs(weights.sum(axis=1) - 1).max() < 1e-9
    assert len(calls) <= 64
    assert max(calls) <= max(BLOCK, new)


@pytest.mark.parametrize("operator", ["Conv", "AveragePool"])
def test_paddings_and_windows_without_end(build: Build, tmp_path: Path, operator: str) -> None:
    if operator == "Conv":
        weights = {"w": np.ones((1, 1, 1, 1), np.float32)}
        wide = node("Conv", ["x", "w"], ["y"], "wide", pads=[1 << 40] * 4)
    else:
        weights = {}
        wide = node("AveragePool", ["x"], ["y"], "wide", kernel_shape=[1 << 20] * 2, pads=[(1 << 20) - 1] * 4)
    ((name, text),) = refused(build([wide], (1, 8, 8), weights), tmp_path)
    assert name == "size"
    assert "'wide'" in text


def test_ten_gigabytes_of_model(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(10 << 30)  # holes: nothing is written
    ((name, text),) = refused(path, tmp_path)
    assert name == "size"
    assert str(10 << 30) in text
    assert str(limits.MAX_MODEL_BYTES) in text


def test_ten_gigabytes_of_weights_beside_a_model(build: Build, tmp_path: Path) -> None:
    model = build([node("Add", ["x", "w"], ["y"])], (4,), {"w": np.ones(4, np.float32)})
    weights = model.graph.initializer[0]
    onnx.external_data_helper.set_external_data(weights, "weights.bin", 0, 16)
    weights.ClearField("raw_data")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(10 << 30)
    ((name, text),) = refused(model, tmp_path)
    assert name == "size"
    assert "with its weights" in text
    (tmp_path / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (kept,) = load_model(tmp_path / "model.onnx").graph.initializer
    assert numpy_helper.to_array(kept).tolist() == [0, 1, 2, 3]


def test_weights_that_do_not_fill_their_shape(build: Build, tmp_path: Path) -> None:
    model = build([node("Add", ["x", "w"], ["y"])], (4,), {"w": np.ones(4, np.float32)})
    model.graph.initializer[0].dims[:] = [1 << 40]
    refusals = refused(model, tmp_path)
    assert {name for name, _ in refusals} == {"model"}
    assert "'w'" in refusals[0][1] or "size" in refusals[0][1]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_constants_of_every_kind_are_finite(build: Build, value: float) -> None:
    bad = numpy_helper.from_array(np.asarray([0, value, 0, 0], np.float32))
    inside = build([node("Constant", [], ["c"], "bad", value=bad), node("Add", ["x", "c"], ["y"])], (4,))
    half = build([node("Add", ["x", "w"], ["y"])], (4,), {"w": np.ones(4, np.float32)})
    half.graph.initializer[0].CopyFrom(
        helper.make_tensor("w", TensorProto.BFLOAT16, [4], [0.0, value, 0.0, 0.0])
    )
    for model, name in ((inside, "'c'"), (half, "'w'")):
        with pytest.raises(ModelRefusedError) as caught:
            compiler.compile_program(model, compiler.Target(slots=4, levels=2))
        assert "not finite" in str(caught.value)
        assert name in str(caught.value)


def test_weights_that_become_infinite_where_they_meet(build: Build) -> None:
    """A variance of -1 has no square root."""
    constants = {
        name: np.full(2, start, np.float32) for name, start in zip("sbmv", (1, 0, 0, -1), strict=True)
    }
    model = build([node("BatchNormalization", ["x", *"sbmv"], ["y"], "norm")], (2, 2, 2), constants)
    with pytest.raises(ModelRefusedError, match="'norm': weights are not finite"):
        compiler.compile_program(model, compiler.Target(slots=8, levels=2))


def test_dense_weights_are_counted_before_they_are_written_out(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = {"w": np.ones((64, 64), np.float32)}
    model = build([node("MatMul", ["x", "w"], ["y"])], (64,), weights)
    monkeypatch.setattr("keywright.compiler.front_ends.operators.dense.MAX_ENTRIES", 64 * 64)
    assert compiler.compile_program(model, compiler.Target(slots=64, levels=1)).depth == 1
    monkeypatch.setattr("keywright.compiler.front_ends.operators.dense.MAX_ENTRIES", 64 * 64 - 1)
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(model, compiler.Target(slots=64, levels=1))
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "size"
    assert (reason.size, reason.allowed) == (64 * 64, 64 * 64 - 1)


def _with_weights_in_a_file(build: Build, name: str) -> onnx.ModelProto:
    model = build([helper.make_node("Add", ["x", "w"], ["y"])], (4,), {"w": np.ones(4, np.float32)})
    (tensor,) = model.graph.initializer
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=name)
    return model


def test_files_of_a_model_that_is_none_are_not_looked_for(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current directory may contain a file of that name, and the model may come from somebody else."""
    monkeypatch.chdir(tmp_path)
    np.ones(4, np.float32).tofile("weights")
    model, target = _with_weights_in_a_file(build, "weights"), compiler.Target(slots=4, levels=1)
    for given in (model, model.SerializeToString()):
        with pytest.raises(ModelRefusedError, match="separate file 'weights'; give the model's path"):
            compiler.compile_program(given, target)
    with pytest.raises(
        FormatError, match="separate file 'weights'", check=lambda error: error.code == "program"
    ):
        ClientPart(model.SerializeToString(), (1, 4))
    Path("model.onnx").write_bytes(model.SerializeToString())
    assert compiler.compile_program("model.onnx", target).input.shape == (4,)


def test_files_that_attributes_name_are_counted(build: Build, tmp_path: Path) -> None:
    model = _with_weights_in_a_file(build, "weights")
    (tensor,) = model.graph.initializer
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=tensor))
    del model.graph.initializer[:]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with (tmp_path / "weights").open("wb") as file:
        file.truncate(limits.MAX_MODEL_BYTES)
    with pytest.raises(ModelRefusedError, match="with its weights"):
        compiler.compile_program(path, compiler.Target(slots=4, levels=1))


def test_a_constant_of_no_known_type(build: Build) -> None:
    """Also where decomposed operators are searched."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("ReduceMax", ["h"], ["r"], axes=[1]),
        helper.make_node("Max", ["r", "c"], ["m"]),
        helper.make_node("Sub", ["h", "m"], ["d"]),
        helper.make_node("Exp", ["d"], ["e"]),
        helper.make_node("ReduceSum", ["e", "axis"], ["s"]),
        helper.make_node("Div", ["e", "s"], ["y"]),
    ]
    constants = {"c": np.float32(-np.inf), "axis": np.asarray([1])}
    model = build(nodes, (4,), constants | {"w": np.eye(4, dtype=np.float32)})
    assert compiler.compile_program(model, compiler.Target(slots=4, levels=1)).output.client_part is not None
    model.graph.initializer[0].data_type = 99
    with pytest.raises(ModelRefusedError, match="'c' have type 99"):
        compiler.compile_program(model, compiler.Target(slots=4, levels=1))
