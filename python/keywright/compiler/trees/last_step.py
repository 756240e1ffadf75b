"""The last step of a tree ensemble, which the client computes: scores become probabilities and labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from keywright.errors.network import RefusalError
from keywright.program.arrays import Vector
from keywright.program.client.last_steps import ClientPart

OPSET, CLASSICAL_OPSET = 18, 3

LARGEST_POWER = 709.0
"""Its exponential is a number in double precision."""

Transform = Literal[
    "none", "logistic", "softmax", "complement", "opposite", "exponential", "isolation",
]  # fmt: skip
"""How scores become probabilities or values: as they are; 1 / (1 + exp(-score)), with its complement for a
single score of a classifier; softmax; a single score s as (1 - s, s), or as (-s, s); exp;
2^-score, negative and less an offset."""


@dataclass(frozen=True, eq=False)
class Remainder:
    """The steps after an ensemble in the user's own model, in standard operators.

    Attributes:
        nodes, constants: of the model.
        outputs: names of its outputs; empty if nothing follows.
        opsets: that the nodes use.
    """

    nodes: Sequence[onnx.NodeProto] = ()
    constants: Sequence[onnx.TensorProto] = ()
    outputs: Sequence[str] = ()
    opsets: Sequence[onnx.OperatorSetIdProto] = ()


@dataclass(frozen=True, eq=False)
class Sums:
    """Scores of sums of leaves that are whole numbers of steps: ``base + factor * (centre + step * whole)``.

    Attributes:
        base, centre, step: (outputs,); the step is 0 for an output that does not vary.
        factor: of the sums.
    """

    base: Vector
    centre: Vector
    step: Vector
    factor: float

    @property
    def origin(self) -> Vector:
        """The scores of the centre."""
        return np.asarray(self.base + self.factor * self.centre, np.float64)

    @property
    def unit(self) -> Vector:
        """The scores of one step; 1 where there is none."""
        scaled = self.factor * self.step
        return np.where(scaled == 0, 1.0, scaled)

    def rounded(self, scores: Vector) -> Vector:
        """Return scores, (count, outputs), without errors below half a step, in double precision. Equal sums
        give equal scores, whatever the centre."""
        whole = np.round((scores - self.origin) / self.unit)
        return np.asarray((self.centre + whole * self.step) * self.factor + self.base, np.float64)


@dataclass(frozen=True, eq=False)
class LastStep:
    """The steps after the scores.

    Attributes:
        transform: of scores.
        labels: of classes, in the order of probabilities; None for values.
        label, values: names of the outputs; ``label`` is unused without labels.
        behind: the steps after it in the user's own model.
        single: whether values are in single precision.
        boundary: a single score above it has the second label.
        offset: of an isolation forest.
    """

    transform: Transform = "none"
    labels: NDArray[Any] | None = None
    label: str = "label"
    values: str = "probabilities"
    behind: Remainder = field(default_factory=Remainder)
    single: bool = False
    boundary: float = 0.0
    offset: float = 0.0

    def client_part(self, sums: Sums) -> ClientPart:
        """Return the part that the client computes from scores. It rounds them first, which removes the
        errors of encryption."""
        return _Writer(self, sums).part()

    def predictions(self, scores: Vector) -> NDArray[np.int64] | None:
        """Return the index of the label for scores, (count, outputs); None for values."""
        if self.labels is None:
            return None
        if scores.shape[1] > 1 or len(self.labels) == 1:
            return np.asarray(scores.argmax(axis=1), np.int64)
        return np.asarray(scores[:, 0] > self.boundary, np.int64)

    def values_of(self, scores: Vector) -> Vector | None:
        """Return the values that a client gets for scores, (count, outputs), before other steps of the user's
        own model; None for labels and their probabilities."""
        if self.labels is not None and self.transform != "isolation":
            return None
        return np.exp(np.minimum(scores, LARGEST_POWER)) if self.transform == "exponential" else scores

    def shares_of(self, scores: Vector) -> Vector:
        """Return the values for scores, or the probabilities of labels, (count, outputs): of two labels only
        that of the second."""
        match self.transform:
            case "logistic":
                return 0.5 + 0.5 * np.tanh(scores / 2)
            case "softmax":
                powers = np.exp(scores - scores.max(axis=1, keepdims=True))
                return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float64)
            case _:
                values = self.values_of(scores)
                return scores if values is None else values


def of_booster(transform: Transform, labels: NDArray[Any] | None, outputs: int) -> LastStep:
    """Return the last step of a booster. Of a classifier with one score x that is no logarithm of odds, as
    after a regression on labels, libraries take (1 - x, x) for the probabilities.

    Args:
        outputs: number of scores.

    Raises:
        RefusalError: a classifier of two labels has an exponential as its score.
    """
    if labels is None:
        return LastStep(transform, values="variable")
    if outputs > 1 or transform == "logistic":
        return LastStep(transform, labels)
    if transform != "none":
        raise RefusalError(
            "a classifier has the objective of a count or a rate, whose exponential is no probability; fit "
            "it with a logistic objective, or a regressor with this one",
            code="export",
        )
    return LastStep("complement", labels, boundary=0.5)


PREFIX = "trees/"
"""Of the names of values here, which no name of the user's own model has."""

SCORES = PREFIX + "scores"


class _Writer:
    """Writes the nodes."""

    def __init__(self, last: LastStep, sums: Sums) -> None:
        self.last, self.sums = last, sums
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = list(last.behind.constants)

    def part(self) -> ClientPart:
        last = self.last
        result = self._rounded()
        result = self._transformed(result)
        result = self._add("Cast", [result], last.values, to=self._kind())
        outputs = [last.values]
        if last.labels is not None:
            labels = last.labels
            index = self._index(result)
            array = labels.astype(object) if labels.dtype.kind in "UO" else labels
            name = self._constant(array, "classes")
            outputs.insert(0, self._add("Gather", [name, index], last.label, axis=0))
        graph = helper.make_graph(
            [*self.nodes, *last.behind.nodes],
            "client",
            [helper.make_tensor_value_info(SCORES, TensorProto.DOUBLE, [1, len(self.sums.base)])],
            [onnx.ValueInfoProto(name=name) for name in (last.behind.outputs or outputs)],
            self.constants,
        )
        opsets = list(last.behind.opsets) or [
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", CLASSICAL_OPSET),
        ]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return ClientPart(model.SerializeToString(), (1, len(self.sums.base)))

    def _index(self, values: str) -> str:
        """Append the index of the label."""
        if self.last.transform != "isolation":
            return self._add("ArgMax", [values], "index", axis=1, keepdims=0)
        zero = self._constant(np.zeros(1, np.float32 if self.last.single else np.float64), "zero")
        inside = self._add("GreaterOrEqual", [values, zero], "inside")
        column = self._constant(np.ones(1, np.int64), "column")
        return self._add(
            "Cast", [self._add("Squeeze", [inside, column], "one")], "index", to=TensorProto.INT64
        )

    def _kind(self) -> int:
        return int(TensorProto.FLOAT if self.last.single else TensorProto.DOUBLE)

    def _rounded(self) -> str:
        """Append the scores without the errors of encryption."""
        sums = self.sums
        result = self._add("Sub", [SCORES, self._constant(sums.origin, "origin")], "less_origin")
        result = self._add("Div", [result, self._constant(sums.unit, "unit")], "steps")
        result = self._add("Round", [result], "whole")
        result = self._add("Mul", [result, self._constant(sums.step, "step")], "multiples")
        result = self._add("Add", [result, self._constant(sums.centre, "centre")], "sums")
        result = self._add("Mul", [result, self._constant(sums.factor, "factor")], "mean")
        return self._add("Add", [result, self._constant(sums.base, "base")], "rounded")

    def _transformed(self, scores: str) -> str:
        """Append the transform of scores."""
        match self.last.transform:
            case "none":
                return scores
            case "exponential":
                return self._add("Exp", [scores], "transformed")
            case "softmax":
                return self._add("Softmax", [scores], "transformed", axis=1)
            case "complement":
                return self._complemented(scores)
            case "opposite":
                return self._add("Concat", [self._add("Neg", [scores], "negative"), scores], "both", axis=1)
            case "isolation":
                power = self._add("Mul", [scores, self._constant(-math.log(2), "halvings")], "power")
                share = self._add(
                    "Add",
                    [self._add("Exp", [power], "share"), self._constant(self.last.offset, "offset")],
                    "less",
                )
                return self._add("Neg", [share], "transformed")
            case _:
                result = self._add("Sigmoid", [scores], "transformed")
                return (
                    result
                    if self.last.labels is None or len(self.sums.base) > 1
                    else self._complemented(result)
                )

    def _complemented(self, share: str) -> str:
        one = self._constant(1.0, "one")
        rest = self._add("Sub", [one, share], "rest")
        return self._add("Concat", [rest, share], "both", axis=1)

    def _constant(self, value: Any, name: str) -> str:
        name = PREFIX + name
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.reshape(-1) if array.ndim else array
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        if output not in (self.last.label, self.last.values):
            output = PREFIX + output
        self.nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output
