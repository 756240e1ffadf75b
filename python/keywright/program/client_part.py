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
from onnx.reference import ReferenceEvaluator

from keywright._reading.records import refusing, whole
from keywright.errors.network import InvalidModelError, ProgramFormatError

from .arrays import Shape
from .stored_tensors import require_inside

MAX_BYTES = 1 << 20
MAX_NODES = 1 << 8
MAX_RANK = 8
MAX_VALUES = 1 << 24
"""Maximum product of the sizes of a node's operands; its result is no larger."""

ONLY_HERE = frozenset(
    [
        "And",
        "ArgMax",
        "ArgMin",
        "ArrayFeatureExtractor",
        "Binarizer",
        "Ceil",
        "Equal",
        "Floor",
        "Greater",
        "GreaterOrEqual",
        "Hardmax",
        "IsNaN",
        "LabelEncoder",
        "Less",
        "LessOrEqual",
        "LinearClassifier",
        "LogSoftmax",
        "LpNormalization",
        "Normalizer",
        "Not",
        "Or",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "Round",
        "Sign",
        "Softmax",
        "SVMClassifier",
        "TopK",
        "Xor",
    ]
)
"""Operators that have no encrypted form and run on the client only."""

ELEMENTWISE = frozenset(
    [
        "Abs",
        "Add",
        "Cast",
        "Clip",
        "Concat",
        "Div",
        "Elu",
        "Exp",
        "Identity",
        "Log",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Pow",
        "Reciprocal",
        "Relu",
        "Reshape",
        "Sigmoid",
        "Softplus",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Sum",
        "Tanh",
        "Unsqueeze",
    ]
)
ALLOWED = (
    ONLY_HERE
    | ELEMENTWISE
    | frozenset(
        [
            "Constant",
            "Flatten",
            "Gather",
            "Mean",
            "ReduceMax",
            "ReduceMean",
            "ReduceMin",
            "ReduceProd",
            "ReduceSum",
            "Shape",
            "Slice",
            "Split",
            "Transpose",
            "Where",
        ]
    )
)
"""Operators whose results are no larger than the product of their operands' sizes."""


OF_A_SIGN = frozenset(["Binarizer", "LinearClassifier", "Sigmoid", "Sign", "SVMClassifier"])
"""Operators that turn one score into one of two labels."""


@dataclass(frozen=True, eq=False)
class ClientPart:
    """The end of a model, from the scores that a program returns to the model's own outputs.

    Attributes:
        data: an ONNX model with one input, the scores, whose nodes are in `ALLOWED`.
        shape: shape of one sample's scores.

    Raises:
        ProgramFormatError: the model has another operator, or exceeds the limits.
    """

    data: bytes
    shape: Shape

    def __post_init__(self) -> None:
        if len(self.data) > MAX_BYTES:
            raise ProgramFormatError(
                f"the client's part of a model has {len(self.data)} bytes, at most {MAX_BYTES} are read"
            )
        try:
            require_inside(self._model)
        except InvalidModelError as error:
            raise ProgramFormatError(f"the client's part of a model cannot be read: {error}") from error
        nodes = self._model.graph.node
        if len(nodes) > MAX_NODES:
            raise ProgramFormatError(f"the client's part has {len(nodes)} nodes, at most {MAX_NODES} are run")
        for node in nodes:
            if node.op_type not in ALLOWED or node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
                raise ProgramFormatError(
                    f"the client's part has the operator {node.op_type!r}, which clients do not run"
                )
        if len(self._model.graph.input) != 1:
            raise ProgramFormatError(
                f"the client's part has {len(self._model.graph.input)} inputs; it must have one"
            )

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that `read` accepts."""
        return {"shape": list(self.shape), "model": base64.b64encode(self.data).decode()}

    @staticmethod
    def read(entry: object, size: int) -> "ClientPart":
        """Read the part from a JSON object, for scores of ``size`` values.

        Raises:
            ProgramFormatError: the object is malformed, or takes another number of values.
        """
        if not isinstance(entry, dict) or not isinstance(entry.get("shape"), list):
            raise ProgramFormatError("the client's part is not an object with a shape and a model")
        with refusing("a client's part", ProgramFormatError):
            shape = tuple(
                whole(extent, "a size of the client's part") for extent in entry["shape"][:MAX_RANK]
            )
        if math.prod(shape) != size or min(shape, default=1) < 1:
            raise ProgramFormatError(
                f"the client's part takes shape {shape}, but the program returns {size} values"
            )
        try:
            data = base64.b64decode(entry.get("model", ""), validate=True)
        except (TypeError, ValueError) as error:
            raise ProgramFormatError("the model of the client's part is not base64") from error
        return ClientPart(data, shape)

    @cached_property
    def _model(self) -> onnx.ModelProto:
        try:
            return onnx.load_model_from_string(self.data)
        except Exception as error:
            raise ProgramFormatError(f"the client's part of a model cannot be read: {error}") from error

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        return tuple(output.name for output in self._model.graph.output)

    @property
    def takes_signs(self) -> bool:
        """Whether the sign of a single score is a prediction, one of two labels."""
        return not OF_A_SIGN.isdisjoint(self.operators)

    @property
    def operators(self) -> tuple[str, ...]:
        """ONNX operator types, in order."""
        return tuple(node.op_type for node in self._model.graph.node)

    @cached_property
    def _steps(self) -> list[tuple[onnx.NodeProto, ReferenceEvaluator]]:
        steps = []
        for node in self._model.graph.node:
            body = onnx.helper.make_graph(
                [node],
                "step",
                [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name],
                [onnx.ValueInfoProto(name=name) for name in node.output if name],
            )
            model = onnx.helper.make_model(body, opset_imports=self._model.opset_import)
            steps.append((node, ReferenceEvaluator(model)))
        return steps

    def run(self, scores: ArrayLike) -> dict[str, NDArray[Any]]:
        """Compute the model's outputs by name.

        Args:
            scores: of several samples, (count, ...), the result of `Program.unpack` with a count.

        Raises:
            ProgramFormatError: a step cannot be run, or its operands are too large.
        """
        try:
            rows = [self._run_one(row) for row in np.asarray(scores, np.float64)]
            return {name: np.stack([row[name] for row in rows]) for name in self.names}
        except ProgramFormatError:
            raise
        except Exception as error:
            raise ProgramFormatError(f"the client's part cannot be run: {error!r}") from error

    @cached_property
    def _constants(self) -> Mapping[str, NDArray[Any]]:
        return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in self._model.graph.initializer}

    def _run_one(self, scores: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
        graph = self._model.graph
        values = dict(self._constants)
        double = graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
        kind = np.float64 if double else np.float32
        values[graph.input[0].name] = scores.reshape(self.shape).astype(kind)
        for node, evaluator in self._steps:
            try:
                feeds = {name: values[name] for name in node.input if name}
                if np.prod([float(array.size) for array in feeds.values()]) > MAX_VALUES:
                    raise ProgramFormatError(
                        f"{node.op_type} of the client's part has operands that are too large"
                    )
                with np.errstate(all="ignore"):
                    results = evaluator.run(None, feeds)
            except ProgramFormatError:
                raise
            except Exception as error:
                raise ProgramFormatError(f"{node.op_type} of the client's part: {error}") from error
            values.update(zip([name for name in node.output if name], map(np.asarray, results), strict=True))
        table = {name: values[name] for name in self.names}
        return {
            name: array[0] if array.ndim and array.shape[0] == 1 else array for name, array in table.items()
        }
