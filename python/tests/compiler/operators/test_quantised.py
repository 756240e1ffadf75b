"""Quantised models in real numbers, beside onnxruntime's integers.

Samples of single operators are on the quantiser's grid, so that only the result is rounded: it is off by half
a step at most, and by one where the runtime looks the function up in a table of rounded values.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright.compiler.front_ends.model_file import load_model
from keywright.compiler.front_ends.rewriting.quantised import QUANTISED, with_real_numbers
from keywright.compiler.front_ends.rewriting.runtime_operators import RuntimeOperators
from keywright.errors import ModelRefusedError, RefusalError
from keywright.program.fit_report import DEFAULT_CHANGE
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ort = pytest.importorskip("onnxruntime")

Array = NDArray[Any]
RNG = np.random.default_rng(3737)
FLOAT = TensorProto.FLOAT
STEP, ZERO, RESULT = np.float32(0.0625), np.uint8(120), np.float32(0.125)
SINGLE = 1e-4
"""Rounding of single precision in sums of some dozen products of size 10."""


def node(operator: str, sources: str, output: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """Return a node, with its operands separated by spaces; a dot is an absent one."""
    names = ["" if name == "." else name for name in sources.split()]
    return helper.make_node(
        operator, names, output.split(), name=f"{operator}/{output}", domain=domain, **attributes
    )


def microsoft(operator: str, sources: str, output: str = "q", **attributes: Any) -> onnx.NodeProto:
    """Return a node of onnxruntime's own operators."""
    return node(operator, sources, output, "com.microsoft", **attributes)


@dataclass
class Case:
    """Operators between "x" on the grid, "a" its integers, and "q", which is dequantised; or the result "y".

    Attributes:
        steps: of the result, by which the runtime may differ.
    """

    nodes: list[onnx.NodeProto]
    shape: tuple[int, ...] = (4,)
    constants: dict[str, Any] = field(default_factory=dict)
    steps: float = 0.5
    opset: int = 17
    grid: bool = True

    @property
    def samples(self) -> Array:
        """Samples of single precision."""
        drawn = np.random.default_rng(1).integers(-60, 60, (12, *self.shape))
        return np.asarray(drawn * STEP, np.float32)

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        nodes = list(self.nodes)
        if self.grid:
            nodes.insert(0, node("QuantizeLinear", "x s z", "a"))
        if any("q" in each.output for each in nodes):
            nodes.append(node("DequantizeLinear", "q u z", "y"))
        table = {"s": STEP, "z": ZERO, "u": RESULT, **self.constants}
        read = {name for each in nodes for name in each.input}
        tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in table.items() if name in read]
        source = helper.make_tensor_value_info("x", FLOAT, ["N", *self.shape])
        graph = helper.make_graph(nodes, "case", [source], [onnx.ValueInfoProto(name="y")], tensors)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        graph = model.graph
        graph.output[0].type.tensor_type.elem_type = FLOAT
        sizes = ["N", *(f"size{axis}" for axis in range(1, self.rank))]
        graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, sizes))
        return model

    @property
    def rank(self) -> int:
        """Number of the result's axes."""
        return 1 + len(self.shape)


def run(model: onnx.ModelProto, samples: Array) -> Array:
    """Return the runtime's result of single samples."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # Otherwise it computes some operators without rounding, and others with rounding of its own.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray([session.run(None, {"x": sample[None]})[0] for sample in samples])


BYTES = RNG.integers(-127, 127, (4, 3)).astype(np.int8)
KERNEL = RNG.integers(-127, 127, (2, 1, 3, 3)).astype(np.int8)
SMALL, EACH = np.float32(0.01), np.array([0.01, 0.02, 0.015], np.float32)
NONE = np.int8(0)
IMAGE = (1, 5, 5)
OTHER = {"b": RNG.integers(100, 140, (1, 4)).astype(np.uint8), "t": np.float32(0.03)}
PRODUCT = {"w": BYTES, "v": SMALL, "n": NONE}
CONVOLUTION = {"w": KERNEL, "v": np.array([0.01, 0.02], np.float32), "n": np.zeros(2, np.int8)}
BIAS = {"i": np.array([300, -200], np.int32)}

CASES = {
    "QLinearAdd": Case([microsoft("QLinearAdd", "a s z b t z u z")], constants=OTHER),
    "QLinearMul": Case([microsoft("QLinearMul", "a s z b t z u z")], constants=OTHER),
    "QLinearAveragePool": Case(
        [microsoft("QLinearAveragePool", "a s z u z", kernel_shape=[2, 2], strides=[1, 1])], IMAGE
    ),
    "QLinearGlobalAveragePool": Case(
        [microsoft("QLinearGlobalAveragePool", "a s z u z", channels_last=0)], IMAGE
    ),
    "QLinearLeakyRelu": Case([microsoft("QLinearLeakyRelu", "a s z u z", alpha=0.25)], steps=1),
    "QLinearSigmoid": Case(
        [microsoft("QLinearSigmoid", "a s z u z")], constants={"u": np.float32(1 / 128)}, steps=1
    ),
    "QLinearSoftmax": Case(
        [microsoft("QLinearSoftmax", "a s z u z", axis=-1, opset=13)],
        constants={"u": np.float32(1 / 128)},
        steps=1,
    ),
    "QLinearConcat": Case([microsoft("QLinearConcat", "u z a s z b t z", axis=1)], constants=OTHER),
    "QLinearWhere": Case(
        [microsoft("QLinearWhere", "c a s z b t z u z")],
        constants=OTHER | {"c": np.array([[True, False, True, True]])},
    ),
    "QLinearMatMul": Case([node("QLinearMatMul", "a s z w v n u z", "q")], constants=PRODUCT),
    "QLinearMatMul by column": Case(
        [node("QLinearMatMul", "a s z w v n u z", "q")],
        constants=PRODUCT | {"v": EACH, "n": np.zeros(3, np.int8)},
    ),
    "QLinearConv": Case(
        [node("QLinearConv", "a s z w v n u z i", "q", pads=[1, 1, 1, 1])], IMAGE, CONVOLUTION | BIAS
    ),
    "QLinearConv of opset 11": Case(
        [node("QLinearConv", "a s z w v n u z i", "q", strides=[2, 2])], IMAGE, CONVOLUTION | BIAS, opset=11
    ),
    "QGemm": Case(
        [microsoft("QGemm", "a s z w v n i u z", transB=1)],
        constants={"w": BYTES.T.copy(), "v": SMALL, "n": NONE, "i": np.array([5, -3, 900], np.int32)},
    ),
    "MatMulInteger": Case(
        [
            node("MatMulInteger", "a w z n", "i"),
            node("Cast", "i", "f", to=FLOAT),
            node("Mul", "f v", "y"),
        ],
        constants=PRODUCT | {"v": np.float32(STEP * SMALL)},
        steps=0,
    ),
    "ConvInteger": Case(
        [
            node("ConvInteger", "a w z", "i", pads=[1, 0, 0, 1]),
            node("Cast", "i", "f", to=FLOAT),
            node("Mul", "f v", "y"),
        ],
        IMAGE,
        {"w": KERNEL, "v": np.float32(STEP * SMALL)},
        steps=0,
    ),
    "DynamicQuantizeLinear": Case(
        [
            node("DynamicQuantizeLinear", "x", "a own_scale own_zero"),
            node("DequantizeLinear", "a own_scale own_zero", "y"),
        ],
        grid=False,
    ),
    "DynamicQuantizeMatMul": Case(
        [microsoft("DynamicQuantizeMatMul", "x w v n o", "y")],
        constants=PRODUCT | {"o": np.array([1, 2, -3], np.float32)},
        grid=False,
    ),
    "MatMulIntegerToFloat": Case(
        [
            node("DynamicQuantizeLinear", "x", "a own_scale own_zero"),
            microsoft("MatMulIntegerToFloat", "a w own_scale v own_zero n o", "y"),
        ],
        constants=PRODUCT | {"o": np.array([1, 2, -3], np.float32)},
        grid=False,
    ),
    "QuantizeLinear": Case(
        [microsoft("DequantizeLinear", "a s z", "d"), node("QuantizeLinear", "d u z", "q")]
    ),
    "DequantizeLinear of a constant": Case(
        [
            node("DequantizeLinear", "w v n", "m", axis=1),
            node("MatMul", "x m", "y"),
        ],
        constants={"w": BYTES, "v": EACH, "n": np.array([3, 0, -5], np.int8)},
        steps=0,
        grid=False,
    ),
    "QuantizeLinear of a constant": Case(
        [
            node("QuantizeLinear", "o v n", "r", axis=0),
            node("DequantizeLinear", "r v n", "m", axis=0),
            node("Add", "x m", "y"),
        ],
        (3,),
        {"o": np.array([0.123, -0.456, 0.789], np.float32), "v": EACH, "n": np.zeros(3, np.int8)},
        steps=0,
        grid=False,
    ),
    "a clipped side": Case(
        [
            node("DequantizeLinear", "a s z", "d"),
            node("QuantizeLinear", "d u none", "r"),
            node("DequantizeLinear", "r u none", "y2"),
            node("Identity", "y2", "e"),
            node("QuantizeLinear", "e u z", "q"),
        ],
        constants={"none": np.uint8(0)},
    ),
    "weights of one scale without a zero point": Case(
        [
            node("DequantizeLinear", "a s z", "d"),
            node("DequantizeLinear", "w v", "m"),
            node("MatMul", "d m", "y"),
        ],
        constants={"w": BYTES, "v": SMALL},
    ),
}
OWN_STEPS = {"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
"""Cases whose operand is rounded too, in steps that follow the data."""


def bound_of(name: str, case: Case) -> float:
    """Return by how much the runtime may differ from real numbers."""
    if name not in OWN_STEPS:
        unit = case.constants.get("u", RESULT)
        return float(case.steps * unit) + SINGLE
    # 255 steps cover the operand's range with 0, and the zero point is rounded to a step.
    spans = [max(sample.max(), 0) - min(sample.min(), 0) for sample in case.samples]
    weights = np.asarray(case.constants.get("w", [[1 / SMALL]]), np.float64)
    gain = np.abs(weights).sum(axis=0).max() * SMALL
    return float(max(spans)) / 255 * float(gain) + SINGLE


@pytest.mark.parametrize("name", CASES)
def test_real_numbers_are_within_half_a_step_of_the_integers(name: str) -> None:
    case = CASES[name]
    model = case.model()
    real, difference = with_real_numbers(model, case.samples)
    onnx.checker.check_model(real)
    evaluator = ReferenceEvaluator(real)
    results = [evaluator.run(None, {"x": sample[None]}) for sample in case.samples]
    own = np.asarray([next(iter(result)) for result in results])
    expected = run(model, case.samples)
    error = np.abs(own - expected)
    assert error.max() <= bound_of(name, case)
    assert difference is not None
    table = 1 if case.steps == 1 else 0
    unit = float(case.constants.get("u", RESULT))
    assert abs(difference.largest_change - error.max()) <= table * unit + SINGLE


def test_every_rule_has_a_case() -> None:
    read = {each.op_type for case in CASES.values() for each in case.model().graph.node}
    missing = (set(RuntimeOperators([]).rules) | QUANTISED) - read
    assert missing == {"QLinearReduceMean"}, "the runtime has no kernel of it on a processor to compare with"


def test_the_mean_of_a_quantised_axis_is_written_in_standard_operators() -> None:
    nodes: list[onnx.NodeProto] = []
    RuntimeOperators(nodes).node(microsoft("QLinearReduceMean", "a s z u z", axes=[1], keepdims=1))
    written = [each.op_type for each in nodes]
    assert written == ["DequantizeLinear", "ReduceMean", "QuantizeLinear"]
    assert list(nodes[0].input) == ["a", "s", "z"]
    assert list(nodes[2].input)[1:] == ["u", "z"]


def test_a_side_is_clipped_where_calibration_data_pass_it_and_no_other() -> None:
    real, _ = with_real_numbers(CASES["a clipped side"].model(), CASES["a clipped side"].samples)
    clips = [each for each in real.graph.node if each.op_type == "Clip"]
    assert len(clips) == 1
    assert len(clips[0].input) == 2, "the least value alone"


REFUSED = {
    "a scale of the data": (
        Case(
            [
                node("ReduceMax", "x", "m", keepdims=0),
                node("QuantizeLinear", "x m z", "a"),
                node("DequantizeLinear", "a m z", "y"),
            ],
            grid=False,
        ),
        "constant scale",
    ),
    "channels last": (
        Case([microsoft("QLinearGlobalAveragePool", "a s z u z", channels_last=1)], IMAGE),
        "channels_last",
    ),
    "alpha beside a bias": (
        Case(
            [microsoft("QGemm", "a s z w v n i u z", transB=1, alpha=2.0)],
            constants={"w": BYTES.T.copy(), "v": SMALL, "n": NONE, "i": np.array([5, -3, 900], np.int32)},
        ),
        "alpha",
    ),
    "blocks": (
        Case(
            [node("DequantizeLinear", "w v .", "m", axis=0, block_size=2), node("MatMul", "x m", "y")],
            constants={"w": BYTES, "v": RNG.uniform(0.01, 0.02, (2, 3)).astype(np.float32)},
            opset=21,
            grid=False,
        ),
        "block_size",
    ),
    "several scales that clip": (
        Case(
            [node("QuantizeLinear", "x v n", "a", axis=1), node("DequantizeLinear", "a v n", "y", axis=1)],
            constants={"v": np.full(4, 1e-3, np.float32), "n": np.zeros(4, np.int8)},
            grid=False,
        ),
        "several scales",
    ),
    "more zero points than scales": (
        Case(
            [node("DequantizeLinear", "w v n", "m"), node("MatMul", "x m", "y")],
            constants={"w": BYTES, "v": SMALL, "n": np.zeros(3, np.int8)},
            grid=False,
        ),
        "one for each scale",
    ),
    "floating-point bytes": (
        Case(
            [
                node("QuantizeLinear", "x s .", "a", output_dtype=TensorProto.FLOAT8E4M3FN),
                node("DequantizeLinear", "a s", "y"),
            ],
            opset=21,
            grid=False,
        ),
        "integers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_in_real_numbers_is_refused(name: str) -> None:
    case, part = REFUSED[name]
    model = case.model()
    with pytest.raises(RefusalError, match=part):
        with_real_numbers(model, case.samples)


@pytest.mark.parametrize("name", CASES)
def test_malformed_operators_are_refused(name: str) -> None:
    """ONNX's checker does not know the operators of runtimes: those without their operands are refused."""
    case = CASES[name]
    model = case.model()
    for index, whole in enumerate(model.graph.node):
        for count in range(len(whole.input)):
            malformed = onnx.ModelProto()
            malformed.CopyFrom(model)
            del malformed.graph.node[index].input[count:]
            with contextlib.suppress(RefusalError):
                with_real_numbers(load_model(malformed), case.samples)


def network() -> tuple[onnx.ModelProto, Array]:
    """Return a perceptron, and samples."""
    shapes = {"w": (6, 8), "b": (8,), "v": (8, 3), "c": (3,)}
    table = {name: RNG.normal(size=shape).astype(np.float32) / 2 for name, shape in shapes.items()}
    nodes = [node("Gemm", "x w b", "h"), node("Relu", "h", "r"), node("Gemm", "r v c", "y")]
    source = helper.make_tensor_value_info("x", FLOAT, ["N", 6])
    result = helper.make_tensor_value_info("y", FLOAT, ["N", 3])
    tensors = [numpy_helper.from_array(array, name) for name, array in table.items()]
    graph = helper.make_graph(nodes, "perceptron", [source], [result], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, RNG.normal(size=(120, 6)).astype(np.float32)


@pytest.mark.parametrize("how", ["QDQ", "QOperator", "dynamic"])
def test_a_quantised_network_is_compiled_as_the_runtime_runs_it(how: str, tmp_path: Any) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    model, samples = network()
    source, target = tmp_path / "model.onnx", tmp_path / "quantised.onnx"
    onnx.save(model, source)
    if how == "dynamic":
        quantization.quantize_dynamic(source, target)
    else:

        class Reader(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
            """Gives the samples one at a time."""

            def __init__(self) -> None:
                self.left = iter(samples)

            def get_next(self) -> dict[str, Array] | None:
                sample = next(self.left, None)
                return None if sample is None else {"x": sample[None]}

        quantization.quantize_static(
            source, target, Reader(), quant_format=getattr(quantization.QuantFormat, how)
        )
    compiled = kw.compile(target, samples)
    report = compiled.report.fit
    assert report is not None
    assert report.export.rounding is not None
    assert "instead of integers" in str(report)
    expected = run(onnx.load(target), samples[:40])[:, 0]
    simulated = compiled.simulate(samples[:40])
    off = np.abs(simulated.outputs - expected).max()
    promised = DEFAULT_CHANGE * np.abs(expected).max()
    assert off <= report.export.rounding.largest_change + promised + SINGLE
    compiled.save(tmp_path / "folder")
    assert kw.load(tmp_path / "folder").report.fit == report


def test_rounding_is_judged_by_what_an_output_varies() -> None:
    """Steps of a half, of values around a hundred, are no sixteenth of the largest."""
    constants = {
        "w": np.ones((4, 1), np.float32),
        "b": np.float32(100),
        "u": np.float32(0.5),
        "z": np.uint8(0),
    }
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b", "e"), node("QuantizeLinear", "e u z", "q")]
    samples = np.random.default_rng(18).normal(size=(200, 4)).astype(np.float32) / 2
    model = Case(nodes, constants=constants, grid=False).model()
    _, rounding = with_real_numbers(model, samples)
    assert rounding is not None
    assert rounding.largest_change < DEFAULT_CHANGE * rounding.largest_output
    assert 0.05 < rounding.share < 0.25
    (warning,) = kw.compile(model, samples).report.warnings
    assert f"integers, an output changes by {rounding.share:.3g} times half of its range" in warning


def test_a_model_of_bytes_takes_them_as_numbers() -> None:
    coarse = np.float32(16)
    case = replace(CASES["QLinearMatMul"], constants=PRODUCT | {"u": coarse})
    model = case.model()
    del model.graph.node[0]
    model.graph.node[0].input[0] = "x"
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    samples = np.random.default_rng(2).integers(0, 255, (60, 4)).astype(np.uint8)
    compiled = kw.compile(model, samples)
    expected = run(model, samples)[:, 0]
    assert np.abs(compiled.simulate(samples).outputs - expected).max() <= coarse / 2 + SINGLE


def test_refusals_reach_who_compiles() -> None:
    case, part = REFUSED["channels last"]
    with pytest.raises(ModelRefusedError, match=part):
        kw.compile(case.model(), case.samples)
