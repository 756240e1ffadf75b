"""Odd graphs that a compiler or a runtime once read otherwise, with the runtime's outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

ort = pytest.importorskip("onnxruntime")

Array = NDArray[Any]
FLOAT, INT64, INT32, DOUBLE = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.DOUBLE
RNG = np.random.default_rng(3535)
COUNT = 6


def drawn(*shape: int) -> Array:
    """Return a constant of single precision."""
    return RNG.normal(size=shape).astype(np.float32)


def node(operator: str, sources: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    """Return a node, with its operands separated by spaces; a dot is an absent one."""
    names = ["" if name == "." else name for name in sources.split()]
    return helper.make_node(operator, names, output.split(), name=f"{operator}/{output}", **attributes)


@dataclass
class Case:
    """A model of one input "x".

    Attributes:
        nodes, constants: of the graph.
        shape: of a sample.
        refused: part of the refusal; None if the model is compiled.
        outputs: by name, with their types.
        kind: type of the input.
        batch: size of the first axis, or its name.
        samples: calibration data; normal numbers by default.
    """

    nodes: list[onnx.NodeProto]
    shape: tuple[int, ...]
    constants: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    outputs: dict[str, int] = field(default_factory=lambda: {"y": FLOAT})
    opset: int = 17
    kind: int = FLOAT
    batch: int | str = "N"
    samples: Array | None = None
    encrypted: bool = False

    @property
    def data(self) -> Array:
        """The samples."""
        if self.samples is not None:
            return self.samples
        return (
            np.random.default_rng(7).normal(size=(COUNT, *self.shape)).astype(np.float32).astype(np.float64)
        )

    def model(self) -> onnx.ModelProto:
        """Return the model; the outputs' shapes are those that the runtime gives."""
        source = helper.make_tensor_value_info("x", self.kind, [self.batch, *self.shape])
        constants = [numpy_helper.from_array(np.asarray(a), name) for name, a in self.constants.items()]
        outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in self.outputs.items()]
        graph = helper.make_graph(self.nodes, "case", [source], outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        for value, array in zip(graph.output, self.run(model, self.data[:1]), strict=True):
            sizes = [f"{value.name}{axis}" for axis in range(array.ndim)]
            value.CopyFrom(helper.make_tensor_value_info(value.name, self.outputs[value.name], sizes))
        del model.graph.output[:]
        model.graph.output.extend(graph.output)
        return model

    def run(self, model: onnx.ModelProto, samples: Array) -> list[Array]:
        """Return the runtime's outputs."""
        options = ort.SessionOptions()
        options.log_severity_level = 4
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        kind = helper.tensor_dtype_to_np_dtype(self.kind)
        return [np.asarray(each) for each in session.run(None, {"x": samples.astype(kind)})]

    def expected(self, model: onnx.ModelProto) -> Array:
        """Return the runtime's outputs of single samples, (count, elements)."""
        rows = [self.run(model, sample[None]) for sample in self.data]
        return np.asarray([np.concatenate([each.ravel() for each in row]) for row in rows], np.float64)


INTEGERS = np.arange(24.0).reshape(6, 4) - 11
TIES = np.tile([1.0, 2, 2, 0], (COUNT, 1))
EYE = {"eye": 2 * np.eye(4, dtype=np.float32)}
HEAD = node("MatMul", "x eye", "t")


def resized(coordinates: str, rounding: str) -> Case:
    """Return a case of pixels at positions that single and double precision round to different sides."""
    attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding, "mode": "nearest"}
    scales = np.array([1, 1, 1.5, 1 / 3 if coordinates == "asymmetric" else 0.6], np.float32)
    return Case([node("Resize", "x . s", **attributes)], (1, 4, 9), {"s": scales}, encrypted=True)


def interpolated(coordinates: str, mode: str, **more: Any) -> Case:
    """Return a case of an image that grows along one axis, and becomes one pixel along the other."""
    attributes = {"coordinate_transformation_mode": coordinates, "mode": mode, **more}
    scales = np.array([1, 1, 1.5, 0.3], np.float32)
    return Case([node("Resize", "x . s", **attributes)], (2, 4, 5), {"s": scales}, opset=18, encrypted=True)


def cropped(mode: str, rows: int, beyond: float) -> Case:
    """Return a case of a region that leaves its image on three sides."""
    region = np.array([0, 0, 0.2, -0.4, 1, 1, 1.1, 1.2], np.float32)
    crop: dict[str, Any] = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": beyond,
    }
    sizes = np.array([1, 2, rows, 7])
    nodes = [node("Resize", "x roi . s", mode=mode, **crop)]
    return Case(nodes, (2, 5, 6), {"roi": region, "s": sizes}, opset=18, batch=1, encrypted=True)


def proportionate(policy: str, mode: str) -> Case:
    """Return a case of an image whose sizes keep its proportions."""
    sizes: dict[str, Any] = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
    nodes = [node("Resize", "x . . s", mode=mode, **sizes)]
    return Case(nodes, (2, 5, 6), {"s": np.array([7, 12])}, opset=18, encrypted=True)


def states(operator: str, direction: str, output: int) -> Case:
    """Return a case of one output of a recurrent network."""
    ways, gates = (2 if direction == "bidirectional" else 1), {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    names = ["all", "last", "cell"][: 3 if operator == "LSTM" else 2]
    weights = {"w": drawn(ways, 3 * gates, 2), "r": drawn(ways, 3 * gates, 3), "b": drawn(ways, 6 * gates)}
    order = [2, 0, 1, 3] if output == 0 else [1, 0, 2]
    nodes = [
        node("Transpose", "x", "steps", perm=[1, 0, 2]),
        node(operator, "steps w r b", " ".join(names), hidden_size=3, direction=direction),
        node("Transpose", names[output], perm=order),
    ]
    return Case(nodes, (3, 2), weights)


CASES: dict[str, Case] = {
    # Windows.
    "a pool with windows in the padding": Case(
        [node("MaxPool", "x", kernel_shape=[2, 1], dilations=[3, 1], pads=[1, 0, 1, 0])],
        (1, 2, 3),
        refused="a window without pixels",
    ),
    "a ceiled mean": Case(
        [node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1)],
        (2, 6, 7),
        encrypted=True,
    ),
    "a mean with its padding": Case(
        [node("AveragePool", "x", kernel_shape=[2, 3], pads=[1, 0, 0, 1], count_include_pad=1)],
        (2, 5, 7),
        opset=19,
        encrypted=True,
    ),
    "uneven padding": Case(
        [node("Conv", "x w b", pads=[0, 2, 1, 0], strides=[2, 1], dilations=[1, 2])],
        (2, 5, 7),
        {"w": drawn(3, 2, 2, 3), "b": drawn(3)},
        encrypted=True,
    ),
    "padding of the output": Case(
        [
            node(
                "ConvTranspose",
                "x w b",
                strides=[3, 2],
                output_padding=[2, 1],
                pads=[1, 0, 0, 1],
                dilations=[1, 2],
                group=2,
            )
        ],
        (4, 4, 5),
        {"w": drawn(4, 2, 3, 2), "b": drawn(4)},
        encrypted=True,
    ),
    "a pool in ceil_mode": Case(
        [node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)], (1, 3, 3)
    ),
    # Normalisations.
    "statistics of a batch": Case(
        [node("BatchNormalization", "x s b m v", "y rm rv", training_mode=1)],
        (3,),
        {name: np.abs(drawn(3)) for name in "sbmv"},
        refused="training_mode",
    ),
    "a negative variance": Case(
        [node("BatchNormalization", "x s b m v")],
        (3,),
        {name: np.array([-1, 1, 1], np.float32) for name in "sbmv"},
        refused="not finite",
    ),
    "one pixel": Case([node("InstanceNormalization", "x s b")], (3, 1, 1), {"s": drawn(3), "b": drawn(3)}),
    "rows of hardly any variance": Case(
        [node("LayerNormalization", "x s")],
        (6,),
        {"s": drawn(6)},
        samples=np.arange(6.0)[:, None] + np.random.default_rng(1).normal(size=(6, 6)) / 64,
    ),
    "groups": Case(
        [node("GroupNormalization", "x s b", num_groups=2)],
        (4, 3, 3),
        {"s": drawn(4), "b": drawn(4)},
        opset=21,
    ),
    "dropout in training": Case(
        [node("Dropout", "x r t")],
        (8,),
        {"r": np.float32(0.5), "t": np.array(True)},
        refused="training_mode",
    ),
    "noise": Case(
        [node("RandomNormalLike", "c", "r"), node("Add", "x r")],
        (3,),
        {"c": drawn(3)},
        refused="drawn at random",
    ),
    "constants that are dropped": Case(
        [node("Dropout", "c r t", "d"), node("Add", "x d")],
        (300,),
        {"c": drawn(300), "r": np.float32(0.5), "t": np.array(True)},
        refused="drawn at random",
    ),
    **{
        f"an image resized, {mode}, {coordinates}": interpolated(coordinates, mode)
        for mode in ("linear", "cubic")
        for coordinates in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
    },
    **{
        f"an image made smaller, {mode}, {coordinates}, exclude_outside = {outside}": interpolated(
            coordinates, mode, antialias=1, exclude_outside=outside
        )
        for mode in ("linear", "cubic")
        for coordinates in ("half_pixel", "align_corners")
        for outside in (0, 1)
    },
    "a cubic resize without pixels outside": interpolated("half_pixel", "cubic", exclude_outside=1),
    "a cubic resize of another kernel": interpolated("half_pixel", "cubic", cubic_coeff_a=-0.5),
    **{
        f"a region of an image, {mode}, {rows} rows, {beyond} outside": cropped(mode, rows, beyond)
        for mode in ("nearest", "linear", "cubic")
        for rows, beyond in ((8, 0.0), (1, 2.5))
    },
    **{
        f"an image resized in proportion, {policy}, {mode}": proportionate(policy, mode)
        for policy in ("not_larger", "not_smaller")
        for mode in ("nearest", "linear")
    },
    "a part of an image by scales": Case(
        [node("Resize", "x roi s", coordinate_transformation_mode="tf_crop_and_resize")],
        (1, 4, 4),
        {
            "roi": np.array([0, 0, 0, 0, 1, 1, 0.5, 0.5], np.float32),
            "s": np.array([1, 1, 2, 2], np.float32),
        },
        refused="sizes, for a part of the image",
    ),
    "a region without numbers": Case(
        [node("Resize", "x . s", coordinate_transformation_mode="tf_crop_and_resize")],
        (1, 4, 4),
        {"s": np.array([1, 1, 2, 2], np.float32)},
        refused="8 constant numbers",
    ),
    "a resized constant": Case(
        [node("Resize", "c . s", "d", mode="nearest", nearest_mode="floor"), node("Add", "x d")],
        (1, 3),
        {"c": drawn(1, 1, 9), "s": np.array([1, 1, 1 / 3], np.float32)},
        refused="store the resized constant",
    ),
    # Old operators.
    **{
        f"{operator} of opset 11, {where}": Case(
            [node("MatMul", "x w", "t"), node(operator, "t", "y", **attributes)],
            (3, 4),
            {"w": drawn(4, 4)},
            opset=11,
        )
        for operator in ("Softmax", "LogSoftmax", "Hardmax")
        for where, attributes in (("by default", {}), ("the last", {"axis": 2}), ("the first", {"axis": 1}))
    },
    "bounds of opset 6": Case([node("Clip", "x", min=-0.5, max=0.2)], (4,), opset=6),
    "bounds in the other order": Case(
        [node("Clip", "x a b")], (4,), {"a": np.float32(1), "b": np.float32(-1)}, refused="below max"
    ),
    # The axis of samples.
    **{
        f"{operator} {sources} along the samples": Case(
            [HEAD, node(operator, sources, "y", **attributes)],
            (4,),
            {**EYE, "zero": np.array([0]), "last": np.array([-1])},
            refused="axis 0, the axis of the samples",
            outputs={"y": INT64 if operator == "ArgMax" else FLOAT},
            opset=18,
        )
        for operator, sources, attributes in (
            ("Softmax", "t", {"axis": 0}),
            ("ArgMax", "t", {"axis": -2}),
            ("Concat", "t x", {"axis": 0}),
            ("ReduceMean", "t zero", {}),
            ("ReduceMax", "t", {}),
            ("LpNormalization", "t", {"axis": 0}),
            ("Gather", "t zero", {"axis": 0}),
            ("CumSum", "t zero", {}),
            ("Flatten", "t", {"axis": 0}),
            ("Slice", "t zero last zero", {}),
            ("Slice", "t last zero zero last", {}),
        )
    },
    **{
        f"{operator} {sources}, of every two samples": Case(
            [
                node("Transpose", "x", "c"),
                node("Unsqueeze", "x zero", "r"),
                node("Unsqueeze", "x one", "s"),
                last,
            ],
            (4,),
            {"zero": np.array([0]), "one": np.array([1])},
            refused="the samples, and encrypted samples are independent",
        )
        for operator, sources, last in (
            (last.op_type, " ".join(last.input), last)
            for last in (
                node("MatMul", "x c"),
                node("MatMul", "c x"),
                node("Gemm", "x x", transA=1),
                node("Sub", "r s"),
                node("Einsum", "x x", equation="ni,mi->nm"),
                node("Einsum", "x", equation="ni->i"),
            )
        )
    },
    "a product without an arrow": Case([node("Einsum", "x w", equation="ij,jk")], (4,), {"w": drawn(4, 3)}),
    "every sample beside the sum of all": Case(
        [node("Einsum", "x x", equation="ni,mj->ni")],
        (4,),
        refused="axis 0, the axis of the samples",
    ),
    "a slice of samples, by Constant nodes": Case(
        [
            *(node("Constant", "", name, value_ints=[value]) for name, value in (("s", 0), ("e", 1))),
            node("Slice", "x s e s"),
        ],
        (4,),
        refused="axis 0, the axis of the samples",
    ),
    "a slice of features, along the axis of a Constant node": Case(
        [HEAD, node("Constant", "", "axis", value_ints=[1]), node("Slice", "t start end axis")],
        (4,),
        {**EYE, "start": np.array([1]), "end": np.array([3])},
    ),
    "a slice of all samples": Case(
        [HEAD, node("Slice", "t zero most zero")],
        (4,),
        {**EYE, "zero": np.array([0]), "most": np.array([2**63 - 1])},
    ),
    "a mean over one sample": Case(
        [node("ReduceMean", "x axes")], (3, 4), {"axes": np.array([0, 1], np.int64)}, opset=18, batch=1
    ),
    # Moves.
    "indices from the end": Case(
        [node("Gather", "x i", axis=1)], (4,), {"i": np.array([-1, 0, -2], np.int64)}, encrypted=True
    ),
    "steps backwards": Case(
        [node("Slice", "x s e a p")],
        (5, 6),
        {
            "s": np.array([3, 100], np.int64),
            "e": np.array([0, -(2**62)], np.int64),
            "a": np.array([2, 1], np.int64),
            "p": np.array([-1, -1], np.int64),
        },
        encrypted=True,
    ),
    **{
        f"padding by {mode}": Case(
            [node("Pad", "x p", mode=mode)],
            (4, 5),
            {"p": np.array([0, 1, 2, 0, 2, 1], np.int64)},
            opset=19,
            encrypted=mode == "reflect",
        )
        for mode in ("constant", "reflect", "edge", "wrap")
    },
    **{
        f"pixels by {coordinates}, {rounding}": resized(coordinates, rounding)
        for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    },
    # Labels.
    **{
        f"{operator} of ties, last {last}": Case(
            [HEAD, node(operator, "t", axis=1, keepdims=0, select_last_index=last)],
            (4,),
            EYE,
            outputs={"y": INT64},
            samples=TIES,
        )
        for operator in ("ArgMax", "ArgMin")
        for last in (0, 1)
    },
    "the smallest, with ties": Case(
        [HEAD, node("TopK", "t k", "y i", axis=1, largest=0)],
        (4,),
        {**EYE, "k": np.array([3], np.int64)},
        outputs={"y": FLOAT, "i": INT64},
        samples=TIES,
    ),
    "one class": Case([node("Softmax", "x", "t", axis=2), node("Mul", "t w")], (3, 1), {"w": drawn(3, 1)}),
    # Integers.
    "integers over integers": Case(
        [node("Div", "x c")],
        (4,),
        {"c": np.array([3], np.int64)},
        refused="divided without a remainder",
        outputs={"y": INT64},
        kind=INT64,
        samples=INTEGERS,
    ),
    "a mean of integers": Case(
        [node("ReduceMean", "x", axes=[1])],
        (4,),
        refused="divided without a remainder",
        outputs={"y": INT64},
        kind=INT64,
        samples=INTEGERS,
    ),
    "integers that wrap": Case(
        [node("Mul", "x c")],
        (4,),
        {"c": np.array([2**30], np.int32)},
        refused="of this size wrap",
        outputs={"y": INT32},
        kind=INT32,
        samples=INTEGERS,
    ),
    "integers below 0": Case(
        [node("Sub", "x c")],
        (4,),
        {"c": np.array([3], np.uint64)},
        refused="of this size wrap",
        outputs={"y": TensorProto.UINT64},
        kind=TensorProto.UINT64,
        samples=INTEGERS + 11,
    ),
    "integers as numbers": Case(
        [node("Cast", "x", "t", to=FLOAT), node("Div", "t c")],
        (4,),
        {"c": np.float32(3)},
        kind=INT64,
        samples=INTEGERS,
    ),
    "integers times integers": Case(
        [node("Mul", "x c")],
        (4,),
        {"c": np.array([3], np.int64)},
        outputs={"y": INT64},
        kind=INT64,
        samples=INTEGERS,
        encrypted=True,
    ),
    **{
        f"whole points, then {last.op_type}": Case(
            [node("MatMul", "x c", "s"), node("GreaterOrEqual", "s t", "g"), last],
            (4,),
            {"c": np.array([[5], [-3], [2], [7]]), "t": np.array(7)},
            outputs={"y": INT64 if last.op_type == "Where" else TensorProto.BOOL},
            kind=INT64,
            samples=INTEGERS,
        )
        for last in (node("Where", "g t s"), node("Not", "g"))
    },
    "whole points and a share": Case(
        [
            node("MatMul", "x c", "s"),
            node("GreaterOrEqual", "s t", "y"),
            node("Cast", "s", "f", to=FLOAT),
            node("Mul", "f h", "z"),
        ],
        (4,),
        {"c": np.array([[5], [-3], [2], [7]]), "t": np.array(7), "h": np.float32(0.3)},
        outputs={"y": TensorProto.BOOL, "z": FLOAT},
        kind=INT64,
        samples=INTEGERS,
    ),
    "a label over two": Case(
        [HEAD, node("ArgMax", "t", "a", axis=1, keepdims=0), node("Sub", "a o", "b"), node("Div", "b d")],
        (4,),
        {**EYE, "o": np.int64(3), "d": np.int64(2)},
        outputs={"y": INT64},
    ),
    # Numbers.
    "denormal weights": Case([node("MatMul", "x w")], (4,), {"w": drawn(4, 3) * np.float32(1e-41)}),
    "weights of half precision": Case(
        [node("Cast", "w", "v", to=FLOAT), node("MatMul", "x v")], (4,), {"w": drawn(4, 3).astype(np.float16)}
    ),
    **{
        f"a weight of {value}": Case(
            [node("MatMul", "x w")], (4,), {"w": np.full((4, 1), value, np.float32)}, refused="not finite"
        )
        for value in (np.nan, np.inf, -np.inf)
    },
    "a statistic of a folded batch": Case(
        [node("BatchNormalization", "c s s s s", "d"), node("Add", "x d")],
        (3,),
        {"c": drawn(1, 3), "s": np.abs(drawn(3))},
        opset=9,
    ),
    # Outputs.
    "the input as an output": Case(
        [node("MatMul", "x w")], (4,), {"w": drawn(4, 3)}, outputs={"y": FLOAT, "x": FLOAT}
    ),
    "a value and its softmax": Case(
        [node("MatMul", "x w", "t"), node("Softmax", "t")],
        (4,),
        {"w": drawn(4, 3)},
        outputs={"t": FLOAT, "y": FLOAT},
    ),
    "an output without the input": Case(
        [node("MatMul", "x w")],
        (4,),
        {"w": drawn(4, 3)},
        refused="does not depend",
        outputs={"y": FLOAT, "w": FLOAT},
    ),
    # States.
    **{
        f"{operator} {direction}, output {output}": states(operator, direction, output)
        for operator, output in (("RNN", 0), ("GRU", 1), ("LSTM", 0), ("LSTM", 2))
        for direction in ("forward", "reverse", "bidirectional")
    },
}
