"""Rewrites a quantised model as what its integers mean: the same operators on real numbers.

A quantiser maps x to clip(round(x / scale) + zero, least, most). Here it does not round: encrypted values are
real numbers, and rounding them would cost more than the model. It clips only at an end that calibration data
pass by more than a step, because exporters write a ReLU so. Weights keep the values they were rounded to.
By how much the outputs differ from those of the rounded model is measured on calibration data.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from keywright.compiler.activations.spread import half_range_of
from keywright.errors import RefusalError
from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.fit_report import OutputDifference
from keywright.program.stored_tensors import array_of

from .decomposed_operators import drop_unread
from .runtime_operators import RuntimeOperators, ranks_of, with_standard_operators

QUANTISED = frozenset(
    ["ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QuantizeLinear"]
)
"""Standard operators that this file gives a meaning in real numbers."""

MOST_SAMPLES = 64
"""Calibration samples on which the rounded model is run."""

Array = NDArray[Any]


def is_quantised(model: onnx.ModelProto) -> bool:
    """Whether a model computes with integers that stand for real numbers."""
    runtime = RuntimeOperators([]).rules
    return any(
        node.op_type in QUANTISED or node.op_type.startswith("QLinear") or node.op_type in runtime
        for node in model.graph.node
    )


def with_real_numbers(
    model: onnx.ModelProto, calibration: ArrayLike | None
) -> tuple[onnx.ModelProto, OutputDifference | None]:
    """Return a model of real numbers, and how its outputs differ from those of the integers.

    Args:
        model: in ONNX's and onnxruntime's operators; one that is not quantised stays as it is.
        calibration: samples, (count, *shape). Without them every quantiser clips, and nothing is compared.

    Raises:
        RefusalError: a scale or a zero point is no constant, or an operator has no such form.
    """
    if not is_quantised(model):
        return model, None
    integers = with_standard_operators(model)
    samples = None if calibration is None else _samples(integers, calibration)
    measured = None if samples is None else _RoundedRun.of(integers, samples)
    real = _Rewriter(integers, {} if measured is None else measured.ranges, rounds=False).run()
    if measured is None or samples is None:
        return real, None
    return real, _difference(_run(real, samples), measured.outputs)


@dataclass(frozen=True)
class _Quantiser:
    """A node that quantises.

    Attributes:
        scale, zero: shaped so that they broadcast to the operand.
        least, most: of the integers.
    """

    scale: Array
    zero: Array
    least: float
    most: float

    @property
    def ends(self) -> tuple[float, float]:
        """Real numbers between which every result is."""
        lows, highs = (self.least - self.zero) * self.scale, (self.most - self.zero) * self.scale
        return float(np.min(lows)), float(np.max(highs))


@dataclass(frozen=True, eq=False)
class _RoundedRun:
    """A run of the rounded model.

    Attributes:
        outputs: for each sample.
        ranges: of the operand of each quantiser, by the operand's name.
    """

    outputs: list[list[Array]]
    ranges: Mapping[str, tuple[float, float]]

    @staticmethod
    def of(model: onnx.ModelProto, samples: Sequence[Array]) -> "_RoundedRun":
        """Run a model of standard operators."""
        constants = _constants(model)
        watched = [
            node.input[0]
            for node in model.graph.node
            if node.op_type == "QuantizeLinear" and node.input[0] not in constants
        ]
        shown = _Rewriter(model, {}, rounds=True).run(watched)
        named = {value.name for value in model.graph.output}
        extra = [name for name in dict.fromkeys(watched) if name not in named]
        shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
        results = _run(shown, samples)
        names = [value.name for value in shown.graph.output]
        ranges: dict[str, tuple[float, float]] = {}
        for result in results:
            for name, array in zip(names, result, strict=True):
                if name in watched and array.size:
                    low, high = ranges.get(name, (math.inf, -math.inf))
                    ranges[name] = min(low, float(array.min())), max(high, float(array.max()))
        count = len(model.graph.output)
        return _RoundedRun([result[:count] for result in results], ranges)


class _Rewriter:
    """Replaces quantised operators.

    Args:
        model: in standard operators.
        ranges: of the operands of quantisers; one that is not among them clips at both ends.
        rounds: whether quantisers round and clip, so that the result computes what the model does. Then
            operators on integers stay.
    """

    def __init__(
        self, model: onnx.ModelProto, ranges: Mapping[str, tuple[float, float]], *, rounds: bool
    ) -> None:
        self.model, self.ranges, self.rounds = model, ranges, rounds
        self.constants = _constants(model)
        self.ranks = ranks_of(model)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.quantisers: dict[str, tuple[_Quantiser, str]] = {}
        self.rules = {"DequantizeLinear": self._dequantised, "QuantizeLinear": self._quantised}
        if not rounds:
            self.rules |= {
                "ConvInteger": self._convolution,
                "DynamicQuantizeLinear": self._dynamic,
                "MatMulInteger": self._product,
            }

    def run(self, kept: Sequence[str] = ()) -> onnx.ModelProto:
        """Return the model in real numbers, with the nodes that results and values to keep depend on."""
        for node in self.model.graph.node:
            rule = self.rules.get(node.op_type)
            if rule is None:
                self.nodes.append(node)
                continue
            try:
                rule(node)
            except (ArithmeticError, TypeError, ValueError) as error:  # of texts, or of other shapes
                raise RefusalError(
                    f"node {node.name or node.op_type!r}: operands do not fit: {error}"
                ) from error
        result = onnx.ModelProto()
        result.CopyFrom(self.model)
        graph = result.graph
        del graph.node[:], graph.value_info[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(self.tensors)
        for value in [*graph.input, *graph.output]:
            kind = value.type.tensor_type.elem_type
            if value.name not in self.constants and kind in (TensorProto.INT8, TensorProto.UINT8):
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        drop_unread(graph, kept)
        return result

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], f"{output}/{operator}", **attributes))
        return output

    def _constant(self, name: str, array: ArrayLike, kind: type[np.float32 | np.uint8] = np.float32) -> str:
        array = np.asarray(array, kind)
        self.tensors.append(numpy_helper.from_array(array, name))
        self.constants[name] = array
        return name

    def _known(self, node: onnx.NodeProto, index: int) -> Array | None:
        """Return a scale or zero point; None if it is absent."""
        if index >= len(node.input) or not node.input[index]:
            return None
        array = self.constants.get(node.input[index])
        if array is None:
            what = "a value that depends on the input"
            if node.input[index] in self.constants:
                what = "the result of other operators"
            raise unsupported_attribute(
                node.name, node.op_type, f"operand {index}", what, "a constant scale or zero point"
            )
        return array

    def _quantiser(self, node: onnx.NodeProto) -> _Quantiser:
        """Return the scale, zero point and ends of a QuantizeLinear or DequantizeLinear."""
        attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        if attributes.get("block_size", 0):
            raise unsupported_attribute(
                node.name, node.op_type, "block_size", attributes["block_size"], "one scale for each channel"
            )
        scale = self._known(node, 1)
        if scale is None:
            raise unsupported_attribute(node.name, node.op_type, "operand 1", "absent", "a constant scale")
        zero = self._known(node, 2)
        kind = numpy_helper.from_array(zero).data_type if zero is not None else 0
        kind = kind or attributes.get("output_dtype", 0) or TensorProto.UINT8
        axis, rank = attributes.get("axis", 1), self.ranks.get(node.input[0])
        if scale.size > 1 and rank is None:
            raise unsupported_attribute(
                node.name, node.op_type, "operand 0", "of unknown rank", "a known shape beside several scales"
            )
        shape = [1] * (rank or 0)
        if scale.size > 1:
            shape[axis % len(shape)] = scale.size
        least, most = _ends(node, kind)
        zeros = np.zeros(1) if zero is None else np.asarray(zero, np.float64)
        if zeros.size not in (1, scale.size):
            sizes = f"{zeros.size} numbers for {scale.size} scales"
            raise unsupported_attribute(node.name, node.op_type, "operand 2", sizes, "one for each scale")
        zeros = np.broadcast_to(zeros.ravel(), scale.size).reshape(scale.shape)
        parts = [np.asarray(part, np.float64) for part in (scale, zeros)]
        parts = [part.reshape(shape) if part.size > 1 else part.reshape(()) for part in parts]
        return _Quantiser(parts[0], parts[1], least, most)

    def _quantised(self, node: onnx.NodeProto) -> None:
        quantiser, output, real = self._quantiser(node), node.output[0], node.input[0]
        if (known := self.constants.get(real)) is not None:
            integers = np.round(np.asarray(known, np.float64) / quantiser.scale) + quantiser.zero
            self._constant(output, np.clip(integers, quantiser.least, quantiser.most))
            return
        unit = self._constant(f"{output}/unit", quantiser.scale)
        zero = self._constant(f"{output}/zero", quantiser.zero)
        if self.rounds or real in self.constants:
            steps = self._add("Div", [real, unit], f"{output}/steps")
            rounded = self._add("Round", [steps], f"{output}/rounded")
            shifted = self._add("Add", [rounded, zero], f"{output}/shifted")
            ends = [
                self._constant(f"{output}/{at}", end)
                for at, end in zip(("least", "most"), (quantiser.least, quantiser.most), strict=True)
            ]
            self._add("Clip", [shifted, *ends], output)
            return
        real = self._clipped(node, quantiser)
        self.quantisers[output] = quantiser, real
        steps = self._add("Div", [real, unit], f"{output}/steps")
        self._add("Add", [steps, zero], output)

    def _clipped(self, node: onnx.NodeProto, quantiser: _Quantiser) -> str:
        """Return a quantiser's operand, clipped where calibration data pass an end by more than a step."""
        low, high = quantiser.ends
        step = float(np.max(quantiser.scale))
        least, most = self.ranges.get(node.input[0], (-math.inf, math.inf))
        bounds = {"least": low if least < low - step else None, "most": high if most > high + step else None}
        if all(bound is None for bound in bounds.values()):
            return str(node.input[0])
        if quantiser.scale.size > 1:
            raise unsupported_attribute(
                node.name, node.op_type, "operand 1", "several scales", "one where values are clipped"
            )
        output = node.output[0]
        names = [
            "" if bound is None else self._constant(f"{output}/{place}", bound)
            for place, bound in bounds.items()
        ]
        return self._add("Clip", [node.input[0], *(names if names[1] else names[:1])], f"{output}/clipped")

    def _dequantised(self, node: onnx.NodeProto) -> None:
        output, source = node.output[0], node.input[0]
        if self.rounds and source not in self.constants:
            source = self._add("Cast", [source], f"{output}/number", to=TensorProto.FLOAT)
        if self.rounds and node.input[1] not in self.constants:  # of DynamicQuantizeLinear
            if not any(node.input[2:]):
                allowed = "the zero point beside a computed scale"
                raise unsupported_attribute(node.name, node.op_type, "operand 2", "absent", allowed)
            zero = self._add("Cast", [node.input[2]], f"{output}/zero", to=TensorProto.FLOAT)
            self._add("Mul", [self._add("Sub", [source, zero], f"{output}/steps"), node.input[1]], output)
            return
        quantiser = self._quantiser(node)
        if (known := self.constants.get(source)) is not None:
            self._constant(output, (np.asarray(known, np.float64) - quantiser.zero) * quantiser.scale)
            return
        own = self.quantisers.get(node.input[0])
        if own is not None and _equal(own[0], quantiser):
            self._add("Identity", [own[1]], output)
            return
        unit = self._constant(f"{output}/unit", quantiser.scale)
        zero = self._constant(f"{output}/zero", quantiser.zero)
        steps = self._add("Sub", [source, zero], f"{output}/steps")
        self._add("Mul", [steps, unit], output)

    def _dynamic(self, node: onnx.NodeProto) -> None:
        """The scale follows the data, so that nothing is clipped: integers in units of 1."""
        self._add("Identity", [node.input[0]], node.output[0])
        _, scale, zero = node.output
        self._constant(scale, 1)
        self._constant(zero, 0, np.uint8)

    def _product(self, node: onnx.NodeProto) -> None:
        left, right = self._centred(node, 0, 2, (-1, 1)), self._centred(node, 1, 3, (-1,))
        self._add("MatMul", [left, right], node.output[0])

    def _convolution(self, node: onnx.NodeProto) -> None:
        source = self._centred(node, 0, 2, (-1,))
        rank = self.ranks.get(node.input[1]) or 4
        kernel = self._centred(node, 1, 3, (-1, *[1] * (rank - 1)))
        attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
        self._add("Conv", [source, kernel], node.output[0], **attributes)

    def _centred(self, node: onnx.NodeProto, index: int, zero: int, shape: tuple[int, ...]) -> str:
        """Return an operand of integers less its zero point, with several of them in a shape."""
        name = node.input[index]
        output = f"{node.output[0]}/{index}/centred"
        if name in self.constants:
            number = self._add("Cast", [name], f"{output}/number", to=TensorProto.FLOAT)
        else:
            number = name
        known = self._known(node, zero)
        if known is None or not np.any(np.asarray(known, np.float64)):
            return number
        array = np.asarray(known, np.float64)
        array = array.reshape(shape) if array.ndim == 1 and array.size > 1 else array
        return self._add("Sub", [number, self._constant(f"{output}/zero", array)], output)


def _ends(node: onnx.NodeProto, kind: int) -> tuple[float, float]:
    """Return the least and the largest integer of a type. Raises `RefusalError` for others."""
    names = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT2": (0, 3)}
    name = TensorProto.DataType.Name(kind)
    if name in names:
        low, high = names[name]
        return float(low), float(high)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if dtype.kind not in "iu":
        raise unsupported_attribute(node.name, node.op_type, "type", name, "integers")
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)


def _equal(left: _Quantiser, right: _Quantiser) -> bool:
    same = left.scale.size == right.scale.size and left.zero.size == right.zero.size
    return same and bool(np.all(left.scale == right.scale) and np.all(left.zero == right.zero))


def _constants(model: onnx.ModelProto) -> dict[str, Array | None]:
    """Return the constants of a model by name: initializers and Constant nodes with their values, and results
    of operators on them as None."""
    table: dict[str, Array | None] = {tensor.name: array_of(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            tensor = next((entry.t for entry in node.attribute if entry.name == "value"), None)
            table[node.output[0]] = None if tensor is None else array_of(tensor)
        elif node.input and all(name in table for name in node.input if name):
            table.update(dict.fromkeys(node.output))
    return table


def _samples(model: onnx.ModelProto, calibration: ArrayLike) -> list[Array] | None:
    """Return calibration samples as the model takes them, one at a time; None if they are not numbers of its
    input's shape, which is refused where they are read."""
    sources = [value for value in model.graph.input if value.name not in _constants(model)]
    try:
        array = np.asarray(calibration)
    except ValueError:
        return None
    if len(sources) != 1 or array.dtype.kind not in "biuf" or array.ndim == 0:
        return None
    tensor = sources[0].type.tensor_type
    fixed = tensor.shape.dim[0].dim_value if tensor.shape.dim else 0
    if fixed > 1 or array.ndim != len(tensor.shape.dim):
        return None
    return [sample[None] for sample in array[:: max(1, len(array) // MOST_SAMPLES)]]


def _run(model: onnx.ModelProto, samples: Sequence[Array]) -> list[list[Array]]:
    """Return the outputs of each sample, by ONNX's reference implementation."""
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(model)
        name = evaluator.input_names[0]
        kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        kind = helper.tensor_dtype_to_np_dtype(kinds[name])
        feeds = [{name: sample.astype(kind)} for sample in samples]
        with np.errstate(all="ignore"):
            return [[np.asarray(array) for array in evaluator.run(None, feed)] for feed in feeds]
    except Exception as error:  # the reference implementation raises errors of many classes
        raise RefusalError(
            f"ONNX's reference implementation cannot run the quantised model: {type(error).__name__}: {error}"
        ) from error


def _difference(real: list[list[Array]], rounded: list[list[Array]]) -> OutputDifference:
    """Return how outputs differ. A sample's predictions are equal if all its outputs that are no
    floating-point numbers are, or else the places of its largest outputs."""
    changes, largest, equal, predicted = [np.zeros(1)], 0.0, [], False
    for own, other in zip(real, rounded, strict=True):
        labels = [(a, b) for a, b in zip(own, other, strict=True) if b.dtype.kind not in "f"]
        scores = [(a, b) for a, b in zip(own, other, strict=True) if b.dtype.kind in "f"]
        for left, right in scores:
            changes.append(np.abs(np.asarray(left, np.float64) - right).ravel())
            largest = max(largest, float(np.abs(right).max(initial=0.0)))
        if labels:
            predicted = True
            equal.append(all(np.array_equal(a, b) for a, b in labels))
        elif all(right.size > 1 for _, right in scores):
            predicted = True
            equal.append(all(np.argmax(a) == np.argmax(b) for a, b in scores))
    every = np.concatenate(changes)
    share = float(np.mean(equal)) if predicted else None
    each = _of_half_range(real, rounded)
    return OutputDifference(float(every.max()), float(every.mean()), largest, share, share=each)


def _of_half_range(real: list[list[Array]], rounded: list[list[Array]]) -> float:
    """Return the largest change of a floating-point output, as a share of half its range."""
    largest = 0.0
    for own, other in zip(zip(*real, strict=True), zip(*rounded, strict=True), strict=True):
        left, right = (np.stack([np.ravel(array) for array in arrays]) for arrays in (own, other))
        if right.dtype.kind == "f":
            halves, changes = half_range_of(right.astype(np.float64)), np.abs(left - right).max(axis=0)
            largest = max(largest, float((changes[halves > 0] / halves[halves > 0]).max(initial=0.0)))
    return largest
