"""The part of a model behind its scores, such as softmax and the choice of a label, which the client
computes."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray

from keywright._copies import Stated
from keywright._reading.records import refusing, whole
from keywright.errors.engine import FormatError
from keywright.program.arrays import Shape

from .rows import rows_apart
from .small_model import MAX_RANK, MAX_VALUES, SmallModel, opset_of

MAX_BYTES = 1 << 20
TOGETHER = 256
"""Maximum number of samples of a run."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


DECIDING = _names(
    "ArgMax ArgMin Binarizer Ceil Equal Floor Greater GreaterOrEqual Hardmax Less LessOrEqual "
    "LinearClassifier Round SVMClassifier Sign TopK"
)
"""Operators whose results jump, and so may a cast to whole numbers: the smallest error changes them at some
operands."""

ONLY_HERE = DECIDING | _names(
    "And ArrayFeatureExtractor IsNaN LabelEncoder LogSoftmax LpNormalization Normalizer Not Or ReduceL1 "
    "ReduceL2 ReduceLogSum ReduceLogSumExp Softmax Xor"
)
"""Operators that have no encrypted form and run on the client only."""

ELEMENTWISE = _names(
    "Abs Add Cast Clip Concat Div Elu Exp Identity Log Max Min Mul Neg Pow Reciprocal Relu Reshape Sigmoid "
    "Softplus Sqrt Squeeze Sub Sum Tanh Unsqueeze"
)

ALLOWED = (
    ONLY_HERE
    | ELEMENTWISE
    | _names(
        "Constant Flatten Gather Mean ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Shape Slice Split "
        "Transpose Where"
    )
)
"""Operators whose results are no larger than the product of their operands' sizes."""

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

INTEGERS = {
    getattr(onnx.TensorProto, name): np.dtype(name.lower())
    for name in _names("BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64")
}
"""Types of scores that clients round, by their number."""

WHOLE = "keywright/whole/"
"""Prefix of the values of the steps that take scores for whole numbers."""

LOGARITHMS = _names("Log ReduceLogSum ReduceLogSumExp")
"""Operators that give minus infinity for 0, and no number for an error below it."""

OF_A_SIGN = _names("Binarizer LinearClassifier Sigmoid Sign SVMClassifier")
"""Operators that turn one score into one of two labels."""


def _require_few(count: int, size: int) -> None:
    """Refuse samples that give more than `MAX_VALUES`.

    Args:
        count: number of samples.
        size: number of values of each.

    Raises:
        FormatError: states how many samples there are.
    """
    if count * size > MAX_VALUES:
        raise FormatError(f"the client's part gives too many values for {count} samples", code="program")


@dataclass(frozen=True, eq=False)
class ClientPart(Stated):
    """The end of a model, from the scores that a program returns to the model's own outputs.

    Attributes:
        data: an ONNX model with one input, the scores, whose nodes are in `ALLOWED`.
        shape: shape of one sample's scores.

    Raises:
        FormatError: the model has another operator, or exceeds the limits.
    """

    data: bytes
    shape: Shape

    def __post_init__(self) -> None:
        inputs = self._steps.model.graph.input
        if len(inputs) != 1:
            raise FormatError(f"the client's part has {len(inputs)} inputs; it must have one", code="program")

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that `read` accepts."""
        return {"shape": list(self.shape), "model": base64.b64encode(self.data).decode()}

    @staticmethod
    def read(entry: object, size: int) -> "ClientPart":
        """Read the part from a JSON object, for scores of ``size`` values.

        Raises:
            FormatError: the object is malformed, or takes another number of values.
        """
        if not isinstance(entry, dict) or not isinstance(entry.get("shape"), list):
            raise FormatError("the client's part is not an object with a shape and a model", code="program")
        with refusing("a client's part", FormatError, code="program"):
            shape = tuple(
                whole(extent, "a size of the client's part") for extent in entry["shape"][:MAX_RANK]
            )
        if math.prod(shape) != size or min(shape, default=1) < 1:
            raise FormatError(
                f"the client's part takes shape {shape}, but the program returns {size} values",
                code="program",
            )
        try:
            data = base64.b64decode(entry.get("model", ""), validate=True)
        except (TypeError, ValueError) as error:
            raise FormatError("the model of the client's part is not base64", code="program") from error
        return ClientPart(data, shape)

    @cached_property
    def _steps(self) -> SmallModel:
        return SmallModel(self.data, "the client's part", ALLOWED, MAX_BYTES)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        return self._steps.outputs

    @cached_property
    def deciding(self) -> dict[str, str]:
        """Operators of `DECIDING`, and casts to whole numbers, by the names of their results that jump.

        Labels of a list jump where their index does: their casts are left out.
        """
        operators, stored = {}, self._steps.constants
        labels = {
            node.output[0]
            for node in self._steps.model.graph.node
            if node.op_type == "ArrayFeatureExtractor" and node.input[0] in stored
        }
        for node in self._steps.model.graph.node:
            to = next((each.i for each in node.attribute if each.name == "to"), FLOAT)
            whole = node.op_type == "Cast" and to not in (FLOAT, DOUBLE, onnx.TensorProto.FLOAT16)
            cast = whole and node.input[0] not in labels
            if (cast or node.op_type in DECIDING) and not node.output[0].startswith(WHOLE):
                operators[node.output[1 if node.op_type == "TopK" else 0]] = node.op_type
        return {name: operator for name, operator in operators.items() if name}

    @cached_property
    def equalities(self) -> dict[str, list[str]]:
        """Operands of each Equal of floating-point numbers, by the name of a value that compares them."""
        model = onnx.shape_inference.infer_shapes(self._steps.model)
        values = [*model.graph.input, *model.graph.value_info, *model.graph.output]
        floats = {each.name for each in values if each.type.tensor_type.elem_type in (FLOAT, DOUBLE)}
        return {
            f"{WHOLE}less/{node.output[0]}": list(node.input)
            for node in model.graph.node
            if node.op_type == "Equal" and floats.intersection(node.input)
        }

    @property
    def keeps_rows_apart(self) -> bool:
        """Whether `run_all` takes many samples at once."""
        return self._whole._keeps_rows_apart

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """The shapes of all values for one sample, by name; none if the part cannot be run."""
        shapes: dict[str, Shape] = {}
        try:
            self._run(np.zeros(self.shape), shapes)
        except FormatError:
            return {}
        return shapes

    @cached_property
    def _keeps_rows_apart(self) -> bool:
        """Whether `run` takes many samples at once."""
        model, constants = self._steps.model, self._steps.constants
        return bool(self.shapes) and rows_apart(model, constants, self.shapes, opset_of(model.opset_import))

    @cached_property
    def _whole(self) -> "ClientPart":
        """The part with `deciding` and `equalities` among its outputs."""
        model = onnx.ModelProto()
        model.CopyFrom(self._steps.model)
        for name, operands in self.equalities.items():
            model.graph.node.append(onnx.helper.make_node("Less", operands, [name]))
            model.graph.output.append(onnx.ValueInfoProto(name=name))
        model.graph.output.extend(
            onnx.ValueInfoProto(name=name) for name in self.deciding if name not in self.names
        )
        return ClientPart(model.SerializeToString(), self.shape)

    def run_all(self, scores: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's outputs and what `deciding` and `equalities` name, by name; see `run`."""
        return self._whole.run(scores)

    @cached_property
    def gives_labels(self) -> bool:
        """Whether an output is no floating-point number."""
        return any(each.dtype.kind != "f" for each in self.run(np.zeros((1, *self.shape))).values())

    @property
    def gives_finite(self) -> bool:
        """Whether results are finite for every sound model."""
        return LOGARITHMS.isdisjoint(self.operators)

    @property
    def takes_signs(self) -> bool:
        """Whether the sign of a single score is a prediction, one of two labels."""
        return not OF_A_SIGN.isdisjoint(self.operators)

    @property
    def operators(self) -> tuple[str, ...]:
        """ONNX operator types, in order."""
        return self._steps.operators

    def run(self, scores: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's outputs by name.

        Args:
            scores: of several samples, (count, ...), the result of `Program.unpack` with a count.

        Raises:
            FormatError: a step cannot be run, or its operands are too large.
        """
        try:
            values = np.asarray(scores, np.float64)
            if len(values) < 3 or not self._keeps_rows_apart:
                return self._one_by_one(values)
            _require_few(len(values), sum(math.prod(self.shapes[name]) for name in self.names))
            starts = range(0, len(values), TOGETHER)
            parts = [self._run_some(values[start : start + TOGETHER]) for start in starts]
            columns = {name: np.concatenate([part[name] for part in parts]) for name in self.names}
            # Texts have the type that those of single samples have.
            return {
                name: np.stack([*each]) if each.dtype == object else each for name, each in columns.items()
            }
        except FormatError:
            raise
        except Exception as error:
            raise FormatError(f"the client's part cannot be run: {error!r}", code="program") from error

    def __str__(self) -> str:
        """What the client gets, in words."""
        numbers = self._steps.numbers(WHOLE)
        holds = f" that hold {numbers}" if numbers else ""
        return f"last steps ({', '.join(dict.fromkeys(self.operators))}){holds}"

    def _run_one(self, scores: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
        table = self._run(scores.reshape(self.shape))
        return {
            name: array[0] if array.ndim and array.shape[0] == 1 else array for name, array in table.items()
        }

    def _one_by_one(self, scores: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        rows = [self._run_one(row) for row in scores[:1]]
        _require_few(len(scores), sum(np.size(array) for row in rows for array in row.values()))
        rows += [self._run_one(row) for row in scores[1:]]
        return {name: np.stack([row[name] for row in rows]) for name in self.names}

    def _run_some(self, scores: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Run the part of several samples at once, or one by one where they are too large together."""
        try:
            return self._run(scores.reshape(len(scores), *self.shape[1:]))
        except FormatError:
            return self._one_by_one(scores)

    def _run(
        self, scores: NDArray[np.float64], shapes: dict[str, Shape] | None = None
    ) -> dict[str, NDArray[Any]]:
        source = self._steps.model.graph.input[0]
        number = source.type.tensor_type.elem_type
        kind = INTEGERS.get(number, np.dtype(np.float64 if number == DOUBLE else np.float32))
        with np.errstate(invalid="ignore"):
            feed = (np.rint(scores) if number in INTEGERS else scores).astype(kind)
        values = self._steps.run({source.name: feed}, shapes)
        return {name: values[name] for name in self.names}
