"""Small files whose values, functions or calls double with every node are refused, or stay small."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.front_ends.model_file import load_model
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.graph.graph import Activation, Graph
from keywright.compiler.graph.piecewise import PiecewiseLinear
from keywright.compiler.graph.simplify import MAX_FUSED, simplify
from keywright.errors import FormatError, ModelRefusedError, RefusalError
from keywright.program.client.last_steps import ClientPart
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from tests.processes import in_child

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
OPSET, NODES = 21, 16
MEMORY, SECONDS = 700, 30.0
"""MB beyond the process's own, and of processor time for all chains of an operator."""

CONSTANTS: dict[str, np.ndarray[Any, Any]] = {
    "numbers": np.ones(4, np.float32),
    "rows": np.ones((4, 1), np.float32),
    "image": np.ones((1, 1, 2, 2), np.float32),
    "long": np.ones(1 << 11, np.float32),
    "integers": np.full(2, 3, np.int64),
    "large": np.full(2, 1 << 13, np.int64),
    "texts": np.asarray(["ab", "cd"], object),
}
VALUES: dict[str, Any] = {
    "axis": 0,
    "blocksize": 2,
    "direction": "LEFT",
    "kernel_shape": [1, 1],
    "perm": [0],
    "scales": [2.0, 2.0],
    "to": TensorProto.FLOAT,
}
KINDS: dict[Any, Any] = {
    AttributeProto.INT: 1,
    AttributeProto.INTS: [1],
    AttributeProto.FLOAT: 1.0,
    AttributeProto.STRING: "a",
}


def attributes(schema: onnx.defs.OpSchema, operands: int) -> dict[str, Any] | None:
    """Return the attributes that an operator requires; None if one is a graph."""
    if schema.name == "Einsum":
        letters = "abcdefgh"[:operands]
        return {"equation": ",".join(f"...{each}" for each in letters) + f"->...{letters}"}
    required = [each for each in schema.attributes.values() if each.required]
    if any(each.name not in VALUES and each.type not in KINDS for each in required):
        return None
    return {each.name: VALUES.get(each.name, KINDS.get(each.type)) for each in required}


def chains(schema: onnx.defs.OpSchema) -> list[onnx.GraphProto]:
    """Return graphs with chains of an operator that reads its last result in every place."""
    result = []
    least = max(schema.min_input, 1)
    starts = ["numbers", "large", "texts"] if schema.max_input == 1 else list(CONSTANTS)
    for count in sorted({least, min(8, schema.max_input)}):
        if count and (given := attributes(schema, count)) is not None:
            nodes = [node(schema.name, [f"v{k}"] * count, [f"v{k + 1}"], **given) for k in range(NODES)]
            result += [
                helper.make_graph(
                    [*nodes, node("Identity", ["x"], ["y"])],
                    start,
                    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 4])],
                    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", "n"])],
                    [numpy_helper.from_array(CONSTANTS[start], "v0")],
                )
                for start in starts
            ]
    return result


def bounded(run: Callable[[], object]) -> None:
    """Run in a process, and require it to take little memory and time."""

    def child() -> tuple[float, float]:
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF)
        allowed = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (3 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
        resource.setrlimit(resource.RLIMIT_CPU, (2 * int(SECONDS),) * 2)
        run()
        after = resource.getrusage(resource.RUSAGE_SELF)
        return (after.ru_maxrss - before.ru_maxrss) / 1024, after.ru_utime + after.ru_stime

    memory, seconds = in_child(child)
    assert memory <= MEMORY
    assert seconds <= SECONDS


@pytest.mark.parametrize(
    "operator",
    sorted({each.name for each in onnx.defs.get_all_schemas() if each.domain == "" and not each.deprecated}),
)
def test_constants_that_grow_by_any_operator(operator: str) -> None:
    try:
        schema = onnx.defs.get_schema(operator, OPSET)
    except onnx.defs.SchemaError:
        pytest.skip(f"opset {OPSET} does not have it: a later one defines it")

    def run() -> None:
        for graph in chains(schema):
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
            try:
                reasons = import_model(load_model(model)).reasons
            except RefusalError as refusal:
                reasons = [refusal]
            assert "MemoryError" not in str(reasons)

    bounded(run)


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("domain", ["own", ""])
@pytest.mark.parametrize("nested", [False, True])
def test_functions_that_call_each_other(build: Build, calls: int, domain: str, nested: bool) -> None:
    """Also in branches, and in the last steps of a client."""
    model = build([node("Identity", ["x"], ["y"])], (4,))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for k in range(40):
        steps = [node(f"F{k + 1}", [f"a{i}"], [f"a{i + 1}"], domain=domain) for i in range(calls)]
        if nested:
            branch = helper.make_graph(steps, "b", [], [onnx.ValueInfoProto(name=f"a{calls}")])
            steps = [node("If", ["a0"], [f"a{calls}"], then_branch=branch, else_branch=branch)]
        model.functions.append(helper.make_function(domain, f"F{k}", ["a0"], [f"a{calls}"], steps, opsets))
    last = [node("Identity", ["a"], ["b"])]
    model.functions.append(helper.make_function(domain, "F40", ["a"], ["b"], last, opsets))
    model.graph.node[0].op_type, model.graph.node[0].domain = "F0", domain
    model.opset_import.append(opsets[1])
    with pytest.raises(FormatError, match="function"):
        ClientPart(model.SerializeToString(), (1, 4))
    refused = r"F0 is not supported; .*inline_local_functions" if domain else "No Op registered for F0"

    def run() -> None:
        with pytest.raises(ModelRefusedError, match=refused):
            compiler.compile_program(model, compiler.Target(slots=4, levels=5))

    bounded(run)


@pytest.mark.parametrize(
    ("domain", "operator"),
    [("own", "F"), ("com.microsoft", "FastGelu"), ("com.microsoft", "F"), ("", "Relu")],
)
def test_functions_that_add_axes(build: Build, domain: str, operator: str) -> None:
    """Those of operators that are known are not read: these stay what they are."""
    model = build([node("Identity", ["x"], ["y"])], (4,))
    axes = numpy_helper.from_array(np.arange(2000, dtype=np.int64))
    steps = [node("Constant", [], ["k"], value=axes), node("Unsqueeze", ["a", "k"], ["b"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 17 if domain == "" else 1)]
    model.functions.append(helper.make_function(domain, operator, ["a"], ["b"], steps, opsets[:1]))
    model.opset_import.extend(opsets[1:] if domain else [])
    names = ["x", *(f"v{k}" for k in range(200)), "y"]
    del model.graph.node[:]
    model.graph.node.extend(node(operator, [a], [b], domain=domain) for a, b in pairwise(names))
    with pytest.raises(FormatError, match="function"):
        ClientPart(model.SerializeToString(), (1, 4))

    def run() -> None:
        try:
            reasons = import_model(load_model(model)).reasons
        except RefusalError as refusal:
            reasons = [refusal]
        assert bool(reasons) == (operator == "F")
        assert all("F is not supported" in str(each) for each in reasons)

    bounded(run)


def chain(build: Build, count: int, steps: list[tuple[str, str]]) -> Graph:
    """Return the graph of a chain, each link of it operators on the value before (v), on the result before
    (r), and on a constant (c)."""
    nodes, constants, last = [node("Identity", ["x"], ["s"])], {}, "s"
    for k in range(count):
        value = last
        for place, (operator, operands) in enumerate(steps):
            names = {"v": value, "r": last, "c": f"c{k}"}
            if "c" in operands:
                constants[f"c{k}"] = np.full(4, -(2.0 ** -(k + 1)), np.float32)
            last = f"v{k}_{place}"
            nodes.append(node(operator, [names[each] for each in operands], [last]))
    return import_model(build([*nodes, node("Identity", [last], ["y"])], (4,), constants)).graph


@pytest.mark.parametrize(
    "steps",
    [
        [("Abs", "v"), ("Add", "rc")],
        [("Sigmoid", "v"), ("Mul", "vr")],
        [("Sigmoid", "v"), ("Add", "vr")],
        [("Abs", "v"), ("Mul", "vr")],
        [("Relu", "v"), ("Add", "rv")],
        [("Tanh", "v")],
    ],
    ids=str,
)
def test_functions_that_double_when_they_are_fused(build: Build, steps: list[tuple[str, str]]) -> None:
    graph = simplify(chain(build, 60, steps))
    functions = [each.function for each in graph.nodes.values() if isinstance(each, Activation)]
    for each in functions:
        assert not isinstance(each, PiecewiseLinear) or len(each.kinks) <= MAX_FUSED
    bounded(lambda: [each(np.linspace(-1, 1, 4)) for each in functions])


@pytest.mark.parametrize(
    "steps", [[("Add", "vc")], [("Mul", "vc")], [("Mul", "vc"), ("Add", "rc")], [("Relu", "v")]], ids=str
)
def test_a_chain_is_simplified_in_steps_by_its_length(
    build: Build, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, str]]
) -> None:
    orders, plain = [], Graph.topological_order

    def counted(graph: Graph) -> list[int]:
        orders.append(graph)
        return plain(graph)

    monkeypatch.setattr(Graph, "topological_order", counted)
    simplify(chain(build, 200, steps))
    assert len(orders) <= 20


def test_long_texts_count_by_their_length(build: Build) -> None:
    """Casts give all texts of an array one length."""
    texts = np.asarray(["a" * 20_000, "b"], object)
    nodes = [
        node("Expand", ["texts", "shape"], ["a"]),
        node("Cast", ["a"], ["b"], to=TensorProto.STRING),
        node("Identity", ["x"], ["y"]),
    ]
    model = build(nodes, (4,), {"texts": texts, "shape": np.asarray([10_000, 2])})

    def run() -> None:
        with pytest.raises(RefusalError, match="elements"):
            raise next(iter(import_model(load_model(model)).reasons))

    bounded(run)


@pytest.mark.parametrize(
    ("steps", "arrays"),
    [
        (
            [node("Resize", ["image", "", "", "sizes"], ["a"], mode="cubic")],
            {"image": np.ones((1, 768, 14, 14), np.float32), "sizes": np.asarray([1, 768, 24, 24])},
        ),
        (
            [node("Conv", ["image", "kernel"], ["a"])],
            {"image": np.ones((1, 3, 32, 32), np.float32), "kernel": np.ones((8, 3, 3, 3), np.float32)},
        ),
        (
            [node("MaxPool", ["image"], ["a"], kernel_shape=[2, 2])],
            {"image": np.ones((1, 3, 64, 64), np.float32)},
        ),
        (
            [node("Einsum", ["left", "right"], ["a"], equation="ij,jk->ik")],
            {"left": np.ones((512, 256), np.float32), "right": np.ones((256, 512), np.float32)},
        ),
    ],
)
def test_constants_of_usual_models_are_computed(
    build: Build, steps: list[onnx.NodeProto], arrays: dict[str, np.ndarray]
) -> None:
    nodes = [
        *steps,
        node("ReduceMean", ["a"], ["b"], keepdims=0),
        node("Mul", ["x", "b"], ["y"]),
    ]
    assert not import_model(load_model(build(nodes, (4,), arrays))).reasons
