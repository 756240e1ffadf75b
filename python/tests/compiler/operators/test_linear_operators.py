"""Operators that move, pad, join and sum elements, against onnxruntime on integers where both are exact."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import ModelRefusedError
from numpy.typing import NDArray
from onnx import TensorProto, helper

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
Constants = dict[str, NDArray[np.generic]]
TARGET = compiler.Target(slots=1024, levels=4)


def integers(shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def ints(*values: int) -> NDArray[np.int64]:
    return np.asarray(values, np.int64)


def exact(model: onnx.ModelProto, shape: tuple[int, ...]) -> compiler.Program:
    program = compiler.compile_program(model, TARGET)
    assert compiler.check(program, integers((2, *shape), 99), model).max_abs_error == 0
    return program


def one(operator: str, operands: list[str], **attributes: Any) -> list[onnx.NodeProto]:
    return [node(operator, ["x", *operands], ["y"], **attributes)]


CASES: dict[str, tuple[list[onnx.NodeProto], tuple[int, ...], Constants]] = {
    "transpose": (one("Transpose", [], perm=[0, 3, 1, 2]), (3, 4, 2), {}),
    "transpose of the batch": (one("Transpose", [], perm=[1, 0, 2]), (3, 4), {}),
    "slice": (
        one("Slice", ["from", "to", "axes", "steps"]),
        (6, 5),
        {"from": ints(1, 4), "to": ints(6, -6), "axes": ints(1, 2), "steps": ints(2, -1)},
    ),
    "gather": (one("Gather", ["i"], axis=2), (3, 5), {"i": np.asarray([[4, 0], [2, 2]], np.int64)}),
    "gather one": (one("Gather", ["i"], axis=1), (3, 5), {"i": np.asarray(-1, np.int64)}),
    "pad with zeros": (one("Pad", ["p"]), (2, 3, 3), {"p": ints(0, 0, 1, 2, 0, 1, 0, 1)}),
    "pad with a constant": (
        one("Pad", ["p", "c"]),
        (2, 3),
        {"p": ints(0, 0, 2, 0, 1, 0), "c": np.asarray(5, np.float32)},
    ),
    "pad with reflections": (one("Pad", ["p"], mode="reflect"), (4, 4), {"p": ints(0, 1, 2, 0, 2, 1)}),
    "concatenation": (
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Concat", ["h", "x", "c", "h"], ["j"], axis=1),
            node("MatMul", ["j", "v"], ["y"]),
        ],
        (3,),
        {"w": integers((3, 2), 1), "c": integers((1, 2), 2), "v": integers((9, 4), 3)},
    ),
    "split": (
        [
            node("Split", ["x", "parts"], ["a", "b", "c"], axis=1),
            node("Sub", ["c", "a"], ["d"]),
            node("Concat", ["d", "b"], ["y"], axis=1),
        ],
        (7, 2),
        {"parts": ints(2, 3, 2)},
    ),
    "expansion": (one("Expand", ["s"]), (3, 1), {"s": ints(1, 3, 4)}),
    "tiles": (one("Tile", ["s"]), (3, 2), {"s": ints(1, 1, 3)}),
    "depth to space": (one("DepthToSpace", [], blocksize=2, mode="CRD"), (8, 2, 2), {}),
    "space to depth": (one("SpaceToDepth", [], blocksize=2), (2, 4, 4), {}),
    "choice": (
        [node("Where", ["mask", "x", "c"], ["y"])],
        (2, 3),
        {"mask": np.asarray([[1, 0, 1], [0, 1, 1]], bool), "c": np.asarray(3, np.float32)},
    ),
    "flatten": (one("Flatten", [], axis=2), (3, 4, 2), {}),
    "sum over an axis": (one("ReduceSum", ["a"], keepdims=0), (3, 4, 2), {"a": ints(2)}),
    "sum over all": (one("ReduceSum", []), (3, 4), {}),
    "mean over channels": (one("ReduceMean", [], axes=[1]), (4, 3, 3), {}),
    "mean over pixels": (one("GlobalAveragePool", []), (3, 8), {}),
    "sum of squares": (one("ReduceSumSquare", [], axes=[1]), (6,), {}),
    "product": (one("ReduceProd", [], axes=[2]), (4, 3), {}),
    "sum of three": (one("Sum", ["c", "x"]), (4,), {"c": integers((4,), 3)}),
    "mean of two": (one("Mean", ["c"]), (4,), {"c": integers((4,), 3)}),
    "broadcast sum": (
        [node("ReduceSum", ["x", "a"], ["s"]), node("Sub", ["x", "s"], ["y"])],
        (3, 4),
        {"a": ints(2)},
    ),
    "broadcast product": (
        [node("ReduceSum", ["x", "a"], ["s"]), node("Mul", ["x", "s"], ["y"])],
        (3, 4),
        {"a": ints(1)},
    ),
    "constant of more axes": (one("Mul", ["c"]), (1, 4), {"c": integers((3, 1), 3)}),
    "matrix to the left": ([node("MatMul", ["w", "x"], ["y"])], (3, 4), {"w": integers((5, 3), 1)}),
    "rows times a matrix": (one("MatMul", ["w"]), (3, 4), {"w": integers((4, 5), 1)}),
    "stacks of matrices": (one("MatMul", ["w"]), (2, 3, 4), {"w": integers((2, 4, 5), 1)}),
    "matrix times a vector": (one("MatMul", ["w"]), (3, 4), {"w": integers((4,), 1)}),
    "transposed Gemm": (
        [node("Squeeze", ["x", "a"], ["s"]), node("Gemm", ["s", "w", "b"], ["y"], transA=1)],
        (3, 2),
        {"a": ints(0), "w": integers((3, 4), 1), "b": integers((1, 4), 2)},
    ),
    "convolution of one axis": (
        one("Conv", ["w", "b"], strides=[2], pads=[1, 2], dilations=[2], group=2),
        (4, 11),
        {"w": integers((6, 2, 3), 1), "b": integers((6,), 2)},
    ),
    "transposed convolution": (
        one("ConvTranspose", ["w", "b"], strides=[2, 1], pads=[1, 0, 0, 1], dilations=[1, 2], group=2),
        (4, 3, 4),
        {"w": integers((4, 2, 3, 2), 1), "b": integers((4,), 2)},
    ),
    "transposed convolution of one axis": (
        one("ConvTranspose", ["w"], strides=[3], output_padding=[1]),
        (2, 5),
        {"w": integers((2, 3, 2), 1)},
    ),
    "nearest pixels": (
        one(
            "Resize",
            ["", "s"],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        (2, 3, 4),
        {"s": np.asarray([1, 1, 2, 2], np.float32)},
    ),
    "average pool of one axis": (one("AveragePool", [], kernel_shape=[2], strides=[2]), (3, 8), {}),
    "average pool whose last windows exceed the padding": (
        one("AveragePool", [], kernel_shape=[2, 2], strides=[2, 3], pads=[0, 1, 0, 0], ceil_mode=1),
        (2, 5, 6),
        {},
    ),
    "average pool whose last window would start in the padding": (
        one("AveragePool", [], kernel_shape=[2], strides=[3], pads=[1, 1], ceil_mode=1),
        (1, 5),
        {},
    ),
    "casts": (
        [node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE), node("Cast", ["d"], ["y"], to=1)],
        (3,),
        {},
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_onnxruntime(build: Build, case: str) -> None:
    nodes, shape, constants = CASES[case]
    model = build(nodes, shape, constants, batch=1)
    program = exact(model, shape)
    if case not in ("sum of squares", "product", "broadcast product"):
        assert program.depth <= 1


def test_moves_disappear_in_the_layers_around_them(build: Build) -> None:
    model = build(
        [
            node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
            node("Pad", ["t", "p"], ["z"]),
            node("Flatten", ["z"], ["f"]),
            node("MatMul", ["f", "w"], ["h"]),
            node("Split", ["h"], ["a", "b"], axis=1, num_outputs=2),
            node("Add", ["a", "b"], ["y"]),
        ],
        (3, 4),
        {"p": ints(0, 1, 0, 0, 0, 0), "w": integers((15, 6), 1)},
        opset=18,
    )
    assert exact(model, (3, 4)).depth == 1


@pytest.mark.parametrize("target", [(8, 12), (8, -1), (-1, 12), (24, 4), (0, -1)])
def test_a_batch_of_eight(build: Build, target: tuple[int, ...]) -> None:
    """A model for eight samples is compiled for one."""
    rows = 4 if target == (24, 4) else 12
    model = build(
        [
            node("Reshape", ["x", "shape"], ["f"]),
            node("MatMul", ["f", "w"], ["h"]),
            node("Reshape", ["h", "back"], ["y"]),
        ],
        (3, 4),
        {"shape": ints(*target), "w": integers((rows, 2), 1), "back": ints(8, -1)},
        batch=8,
    )
    program = exact(model, (3, 4))
    assert program.output.shape == (2 * 12 // rows,)


def test_a_batch_that_is_mixed_is_refused(build: Build) -> None:
    model = build(one("ReduceMean", [], axes=[0]), (3,), batch=8)
    with pytest.raises(ModelRefusedError, match="samples of a batch are independent"):
        compiler.compile_program(model, TARGET)


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_axes_as_attribute_and_as_operand(build: Build, opset: int) -> None:
    mean = node("ReduceMean", ["x"], ["y"], axes=[2], keepdims=0)
    if opset >= 18:
        mean = node("ReduceMean", ["x", "a"], ["y"], keepdims=0)
    exact(build([mean], (3, 4), {"a": ints(2)} if opset >= 18 else {}, opset=opset), (3, 4))


def test_a_result_has_the_shape_that_the_model_gives_it(build: Build) -> None:
    model = build(
        [node("Conv", ["x", "w"], ["h"]), node("Transpose", ["h"], ["y"], perm=[0, 2, 1])],
        (2, 6),
        {"w": integers((3, 2, 2), 1)},
    )
    assert exact(model, (2, 6)).output.shape == (5, 3)
    model = build([node("Neg", ["x"], ["n"]), node("Flatten", ["n"], ["y"])], (2, 6))
    assert exact(model, (2, 6)).output.shape == (12,)


@pytest.mark.parametrize("nodes", [one("Expand", ["s"]), one("Tile", ["s"]), one("Pad", ["s"])], ids=str)
def test_what_makes_much_of_little_is_refused_before_it_is_made(
    build: Build, nodes: list[onnx.NodeProto]
) -> None:
    sizes = {"Expand": ints(1, 1 << 40), "Tile": ints(1, 1 << 40), "Pad": ints(0, 0, 0, 1 << 40)}
    model = build(nodes, (1,), {"s": sizes[nodes[0].op_type]})
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(model, TARGET)
    assert caught.value.codes == {"size"}
