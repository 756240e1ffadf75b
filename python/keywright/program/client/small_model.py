"""A small ONNX model that a client runs: of allowed operators, node by node, with bounded results."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright._copies import Stated
from keywright._units import quantity
from keywright.errors.engine import FormatError
from keywright.errors.network import RefusalError
from keywright.program.arrays import Shape
from keywright.program.stored_tensors import require_inferable, require_inside

from .wire_format import require_bounded

MAX_NODES = 1 << 10
MAX_RANK = 8
MAX_VALUES = 1 << 24
"""Maximum product of the sizes of a node's operands; its result is no larger. All results together that
later nodes read are no larger, either."""

MAX_WORK = 1 << 28
"""Maximum number of values of all results together."""

WITH_WEIGHTS = frozenset(["LinearClassifier", "SVMClassifier"])
BROADCAST = frozenset(["Add", "And", "Div", "Mul", "Or", "Sub", "Sum", "Where"])
"""Operators whose results have the shape that their operands broadcast to."""

SLOW = 16
"""Operators that compute with all numbers of their attributes for every row, and how much slower than
others."""

MAX_CHARACTERS = 1 << 26
"""Maximum number of characters of a node's result, if every text is as long as the longest."""

NUMBER_CHARACTERS = 32
"""Characters that numpy reserves for the text of a number."""

FLATTENS_BEFORE = 13
"""Before this opset, `ROWS` read all axes from theirs on as one row."""

Values = Mapping[str, NDArray[Any]]
Step = Callable[..., NDArray[Any]]
"""Takes a node and its operands, and returns its result."""


@dataclass(frozen=True, eq=False)
class SmallModel(Stated):
    """An ONNX model that may come from anybody.

    Attributes:
        data: the model.
        what: its name in messages.
        allowed: operators that it may have: their results are no larger than the product of their operands'
            sizes, or `bound` knows how large.
        most_bytes: maximum size of ``data``.

    Raises:
        FormatError: the model has another operator, or exceeds the limits.
    """

    data: bytes
    what: str
    allowed: frozenset[str]
    most_bytes: int

    def __post_init__(self) -> None:
        if len(self.data) > self.most_bytes:
            raise FormatError(
                f"{self.what} of a model has {len(self.data)} bytes, at most {self.most_bytes} are read",
                code="program",
            )
        try:
            require_inside(self.model)
            require_inferable(self.model)
        except RefusalError as error:
            raise FormatError(f"{self.what} of a model cannot be read: {error}", code="program") from error
        nodes = self.model.graph.node
        if self.model.functions:
            raise FormatError(f"{self.what} has functions, which clients do not run", code="program")
        if len(nodes) > MAX_NODES:
            raise FormatError(
                f"{self.what} has {len(nodes)} nodes, at most {MAX_NODES} are run", code="program"
            )
        for node in nodes:
            if node.op_type not in self.allowed or node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
                raise FormatError(
                    f"{self.what} has the operator {node.op_type!r}, which clients do not run", code="program"
                )

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The model, parsed."""
        with self._reading():
            require_bounded(self.data, onnx.ModelProto.DESCRIPTOR)
            return onnx.load_model_from_string(self.data)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise a FormatError for whatever stops onnx from reading the model."""
        try:
            yield
        except Exception as error:
            raise FormatError(f"{self.what} of a model cannot be read: {error}", code="program") from error

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(output.name for output in self.model.graph.output)

    @property
    def operators(self) -> tuple[str, ...]:
        """ONNX operator types, in order."""
        return tuple(node.op_type for node in self.model.graph.node)

    @cached_property
    def constants(self) -> Values:
        """Stored tensors by name.

        Raises:
            FormatError: one cannot be read, or has complex numbers.
        """
        with self._reading():
            values = {each.name: onnx.numpy_helper.to_array(each) for each in self.model.graph.initializer}
            if any(value.dtype.kind == "c" for value in values.values()):
                raise ValueError("a tensor has complex numbers")
            return values

    def numbers(self, hidden: str = " ") -> str:
        """Return the number of stored floating-point numbers, in words; empty if there are none. Those of
        names that begin with ``hidden`` do not count."""
        arrays = [np.ravel(each) for name, each in self.constants.items() if not name.startswith(hidden)]
        for entry in (each for node in self.model.graph.node for each in node.attribute):
            arrays.append(np.asarray([*entry.floats, *([entry.f] if entry.type == entry.FLOAT else [])]))
            if entry.HasField("t"):
                arrays.append(np.ravel(onnx.numpy_helper.to_array(entry.t)))
        values = np.concatenate([each for each in arrays if each.dtype.kind == "f"] or [np.empty(0)])
        if not values.size:
            return ""
        number = quantity(values.size, "number")
        return f"{number}, each 0, 1 or -1" if np.isin(values, (0, 1, -1)).all() else number

    @cached_property
    def _steps(self) -> list["_Step"]:
        opset = opset_of(self.model.opset_import)
        nodes = self.model.graph.node
        last = {name: place for place, node in enumerate(nodes) for name in node.input}
        kept = {*self.outputs, *self.constants}
        with self._reading():
            return [
                _Step(
                    node,
                    _runner(node, self.model, opset),
                    tuple(name for name in node.input if name),
                    tuple(
                        name
                        for name in {*node.input, *node.output} - kept
                        if name and last.get(name, -1) <= place
                    ),
                    _longest_attribute(node),
                    SLOW * _attributes(node) if node.op_type in WITH_WEIGHTS else 1,
                )
                for place, node in enumerate(nodes)
            ]

    def run(self, inputs: Values, shapes: dict[str, Shape] | None = None) -> Values:
        """Return the outputs, the constants and the inputs by name. Other values are released after their
        last use.

        Args:
            shapes: takes the shape of every value by name.

        Raises:
            FormatError: a node cannot be run, or its operands are too large.
        """
        values = {**self.constants, **inputs}
        given, work = frozenset(values), 0.0
        live: dict[str, int] = {}
        shapes = {} if shapes is None else shapes
        shapes.update({name: value.shape for name, value in values.items()})
        for step in self._steps:
            node = step.node
            try:
                feeds = {name: values[name] for name in step.operands}
                size = bound(node, feeds)
                work += size * step.slowness
                texts = size * _longest(step, feeds.values())
                if not (
                    size + sum(live.values()) <= MAX_VALUES and work <= MAX_WORK and texts <= MAX_CHARACTERS
                ):
                    raise FormatError(
                        f"{node.op_type} of {self.what} has operands that are too large", code="program"
                    )
                with np.errstate(all="ignore"):
                    results = step.run(*(feeds[name] if name else None for name in node.input))
                outcome = dict(zip(node.output, results[: len(node.output)], strict=True))
                outcome = {name: np.asarray(result) for name, result in outcome.items() if name}
            except FormatError:
                raise
            except Exception as error:
                raise FormatError(f"{node.op_type} of {self.what}: {error}", code="program") from error
            for name, result in outcome.items():
                values[name] = result
                shapes[name] = result.shape
                if name not in given:
                    live[name] = result.size
            for name in step.released:
                if name not in given:
                    values.pop(name, None)
                    live.pop(name, None)
        return values


@dataclass(frozen=True, eq=False)
class _Step:
    """A node, and what is known of it before it is run.

    Attributes:
        run: computes its results from its operands, None for each that is left out.
        operands: names.
        released: values that no later node reads; inputs of the model are kept.
        longest: length of its attributes' longest text.
        slowness: processor time of a value, 1 for most.
    """

    node: onnx.NodeProto
    run: Callable[..., Sequence[Any]]
    operands: tuple[str, ...]
    released: tuple[str, ...]
    longest: int
    slowness: int


def _longest(step: _Step, operands: Iterable[NDArray[Any]]) -> int:
    """Return the length that texts of a node's result do not exceed; 0 if it has none."""
    if step.node.op_type == "OneHotEncoder":
        return 0
    if step.node.op_type == "LabelEncoder":  # its operands and keys are no results
        return step.longest
    if any(entry.name == "to" and entry.i == onnx.TensorProto.STRING for entry in step.node.attribute):
        return NUMBER_CHARACTERS
    texts = [len(str(text)) for array in operands if array.dtype.kind in "OUS" for text in array.ravel()]
    return max(step.longest, *texts) if texts else step.longest


def _longest_attribute(node: onnx.NodeProto) -> int:
    texts = [
        len(text)
        for entry in node.attribute
        if not entry.name.startswith("keys")
        for text in (entry.s, *entry.strings, *entry.t.string_data)
    ]
    return max(texts, default=0)


def _attributes(node: onnx.NodeProto) -> int:
    """Return the largest number of values that an attribute of a node has, at least 1."""
    counts = (
        max(len(entry.ints), len(entry.floats), len(entry.strings), int(np.prod(entry.t.dims)))
        for entry in node.attribute
    )
    return max([1, *counts])


def _runner(node: onnx.NodeProto, model: onnx.ModelProto, opset: int) -> Callable[..., Sequence[Any]]:
    """Return what computes a node: a function of this module, or the operator of ONNX's reference
    implementation, without the evaluator that would run it as a model."""
    if (own := own_step(node, opset)) is not None:
        return lambda *operands: [own(node, *(each for each in operands if each is not None))]
    body = onnx.helper.make_graph(
        [node],
        "step",
        [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    evaluator = reference_evaluator(onnx.helper.make_model(body, opset_imports=model.opset_import))
    return cast(Callable[..., Sequence[Any]], evaluator.rt_nodes_[0].run)


def reference_evaluator(model: onnx.ModelProto) -> Any:
    """Return ONNX's reference implementation of a model, whose probabilities of support vector machines of
    three classes or more are others than those of libsvm and of runtimes."""
    # Their import takes as long as numpy's, nearly, and most processes compute no such node.
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops.aionnxml import op_svm_classifier

    class SVMClassifier(op_svm_classifier.SVMClassifier):  # type: ignore[misc, name-defined, unused-ignore]
        op_domain = "ai.onnx.ml"

        def _probabilities(self, scores: NDArray[Any], class_count_: int) -> NDArray[Any]:
            attributes: Any = self._svm.atts
            return _coupled(scores, attributes.prob_a, attributes.prob_b, class_count_)

    return ReferenceEvaluator(model, new_ops=[SVMClassifier])


def _coupled(scores: NDArray[Any], slopes: Any, offsets: Any, count: int) -> NDArray[Any]:
    """Return the probability of each class, (count,), from the scores of its pairs, as libsvm does.

    Source: Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling,
    algorithm 2.
    """
    pairs = np.zeros((count, count))
    exponents = scores * np.asarray(slopes) + np.asarray(offsets)
    shares = np.clip((1 - np.tanh(exponents / 2)) / 2, 1e-7, 1 - 1e-7)
    pairs[np.triu_indices(count, 1)] = shares
    pairs.T[np.triu_indices(count, 1)] = 1 - shares
    form = -pairs * pairs.T + np.diag((pairs**2).sum(axis=0))
    result = np.full(count, 1 / count)
    for _ in range(max(100, count)):
        slope = form @ result
        value = result @ slope
        if np.abs(slope - value).max() < 0.005 / count:
            break
        for each in range(count):
            step = (value - slope[each]) / form[each, each]
            value = (value + step * (step * form[each, each] + 2 * slope[each])) / (1 + step) ** 2
            slope = (slope + step * form[each]) / (1 + step)
            result[each] += step
            result /= 1 + step
    return np.asarray(result, scores.dtype)


def bound(node: onnx.NodeProto, feeds: Values) -> float:
    """Return a number that the size of a node's result does not exceed."""
    # A value may be several operands.
    operands = [feeds[name] for name in node.input if name]
    # An operand without elements can give a result that has some: sums over an axis of length 0 are 0.
    sizes = [float(array.size or math.prod(max(extent, 1) for extent in array.shape)) for array in operands]
    match node.op_type:
        case "Gather" if len(operands) == 2 and operands[0].ndim:
            axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
            rows = max(operands[0].shape[axis], 1)
            return float(operands[0].size / rows * max(operands[1].size, 1))
        case "GatherElements" if len(operands) == 2:
            return float(max(operands[1].size, 1))
        case "OneHot" if len(operands) == 3:
            return float(max(operands[0].size, 1) * np.max(np.abs(operands[1]), initial=1))
        case "OneHotEncoder":
            known = sum(len(entry.strings) + len(entry.ints) for entry in node.attribute)
            return float(max(operands[0].size, 1) * max(known, 1))
        case "FeatureVectorizer":
            widths = [abs(width) for entry in node.attribute for width in entry.ints]
            return float(sum(sizes) + sum(widths) * max(len(each) if each.ndim else 1 for each in operands))
        case "LinearClassifier" | "SVMClassifier" | "Scaler":
            rows = max(operands[0].shape[0], 1) if operands[0].ndim else 1
            return max(float(max(operands[0].size, 1)), float(rows * _attributes(node)))
        case "Constant":
            return float(_attributes(node))
        case "LayerNormalization":  # the mean and the deviation are its other results
            return 2 * sizes[0] + _broadcast(operands)
        case "Concat":
            return sum(sizes)
        case "Normalizer" if operands[0].ndim > 2:  # its norms are broadcast
            return float(sizes[0] * operands[0].shape[0])
        case "Shape":
            return float(operands[0].ndim)
        case "TopK":  # the places are its other result
            return 2 * sizes[0]
        case "Split":
            outputs = next((entry.i for entry in node.attribute if entry.name == "num_outputs"), 0)
            return float(sum(sizes) + outputs)
        case operator if operator in BROADCAST:
            return _broadcast(operands)
        case _:
            return math.prod(sizes)


def _broadcast(operands: Iterable[NDArray[Any]]) -> float:
    return float(math.prod(np.broadcast_shapes(*(each.shape for each in operands))))


def _string_normalizer(node: onnx.NodeProto, texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts in one case. ONNX's reference implementation changes the locale of the process."""
    attributes = {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}
    if attributes.get("stopwords"):
        raise ValueError("stop words are not removed by clients")
    case = attributes.get("case_change_action", b"NONE").decode()
    changes: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}
    flat = [changes[case](str(text)) for text in texts.ravel()]
    return np.asarray(flat, object).reshape(texts.shape)


def _one_hot(
    node: onnx.NodeProto, indices: NDArray[Any], depth: NDArray[Any], values: NDArray[Any]
) -> NDArray[Any]:
    """Return one-hot vectors. ONNX's reference implementation takes no depth with an axis."""
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), -1)
    size = int(np.ravel(depth)[0])
    wrapped = np.where(indices < 0, indices + size, indices)
    places = np.expand_dims(wrapped, axis)
    steps = [1] * places.ndim
    steps[axis] = size
    off, on = np.ravel(values)
    hot = places == np.arange(size).reshape(steps)
    return np.asarray(np.where(hot, on, off), values.dtype)


def gather_elements(node: onnx.NodeProto, values: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
    """Return elements along an axis. ONNX's reference implementation chooses among 32 at most."""
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0) % values.ndim
    within = tuple(slice(None if each == axis else size) for each, size in enumerate(indices.shape))
    return np.take_along_axis(values[within], indices.astype(np.int64), axis)


def _lp_normalization(node: onnx.NodeProto, values: NDArray[Any]) -> NDArray[Any]:
    """Return values divided by their norm along an axis, 0 where that is 0. ONNX's reference implementation
    sums values and not their sizes, if p is 1."""
    attributes = {entry.name: entry.i for entry in node.attribute}
    axis, order = attributes.get("axis", -1), attributes.get("p", 2)
    norm = np.linalg.norm(values, order, axis=axis, keepdims=True)
    return np.asarray(np.where(norm == 0, 0, values / np.where(norm == 0, 1, norm)), values.dtype)


def _softmax(node: onnx.NodeProto, values: NDArray[Any]) -> NDArray[Any]:
    powers = np.exp(_centred(node, values))
    return np.asarray((powers / powers.sum(axis=1, keepdims=True)).reshape(values.shape), values.dtype)


def _log_softmax(node: onnx.NodeProto, values: NDArray[Any]) -> NDArray[Any]:
    centred = _centred(node, values)
    sums = np.log(np.exp(centred).sum(axis=1, keepdims=True))
    return np.asarray((centred - sums).reshape(values.shape), values.dtype)


def _hardmax(node: onnx.NodeProto, values: NDArray[Any]) -> NDArray[Any]:
    rows = _centred(node, values)
    largest = rows.argmax(axis=1)[:, None] == np.arange(rows.shape[1])
    return np.asarray(largest.reshape(values.shape), values.dtype)


def _centred(node: onnx.NodeProto, values: NDArray[Any]) -> NDArray[Any]:
    """Return rows, each of all axes from that of the node on, with their largest elements subtracted."""
    axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 1) % values.ndim
    rows = values.reshape(int(np.prod(values.shape[:axis], dtype=np.int64)), -1)
    return np.asarray(rows - rows.max(axis=1, keepdims=True))


OWN: Mapping[str, Step] = {
    "GatherElements": gather_elements,
    "LpNormalization": _lp_normalization,
    "OneHot": _one_hot,
    "StringNormalizer": _string_normalizer,
}
"""Operators that are not run by ONNX's reference implementation."""

ROWS: Mapping[str, Step] = {"Hardmax": _hardmax, "LogSoftmax": _log_softmax, "Softmax": _softmax}
"""Operators that the reference implementation computes as since opset 13, whatever the model's opset is."""


def own_step(node: onnx.NodeProto, opset: int) -> Step | None:
    """Return how a node is run without ONNX's reference implementation; None if it is run by that."""
    return (ROWS if opset < FLATTENS_BEFORE else {}).get(node.op_type) or OWN.get(node.op_type)


def opset_of(imports: Iterable[onnx.OperatorSetIdProto]) -> int:
    """Return the version of ONNX's standard operators, 1 if none is named."""
    return next((each.version for each in imports if each.domain in ("", "ai.onnx")), 1)
