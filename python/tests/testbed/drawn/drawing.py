"""Draws ONNX graphs node by node, with the values that they have on samples.

Every node is evaluated by ONNX's reference implementation, in double precision, as soon as it is drawn. So
the next one can be chosen by shapes and ranges, and the values of the last one are those that an encrypted
run has to reach.
"""

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
from keywright.compiler.front_ends.operators.moves import MOVES
from numpy.random import Generator
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, NotImplemented  # noqa: A004 (its own name)

Array = NDArray[Any]
ML = "ai.onnx.ml"

LARGEST, SMALL, ROUNDED = 3.0, 0.25, 1e-3
"""A drawn value whose largest element on samples is above the first, or below the second, is scaled before
it is used further; not one below the third, which may be the rounding of zero."""


ROUNDING = 2.0**-20
"""Bound on the rounding of a graph's outputs, as a share of the largest: attributes are in single precision,
and so are operators for which no library has a double one."""

BY_RUNTIME = {*MOVES, "AveragePool", "LRN", "LpNormalization", "MaxPool", "Resize"}
"""Operators that onnxruntime evaluates. The compiler itself moves elements by the reference implementation,
whose norm 1 sums numbers instead of their sizes, whose pools of one axis lose padding, and whose means with
ceil_mode are not numbers where a window begins in the padding. LRN leaves all
channels but the first unchanged. It resizes in double precision."""


class Drawing:
    """A graph for one sample at a time, in the making.

    Attributes:
        rng: of all choices.
        opset: of the standard operators.
        arrays: values by name, (samples, *shape), where a shape begins with a batch of 1.
    """

    def __init__(self, rng: Generator, opset: int, samples: Array) -> None:
        self.rng, self.opset = rng, opset
        self.samples = samples
        self.arrays: dict[str, Array] = {"x": samples[:, None]}
        self.constants: dict[str, Array] = {}
        self.nodes: list[onnx.NodeProto] = []

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value for one sample, with its batch of 1."""
        return self.arrays[name].shape[1:]

    def size(self, name: str) -> int:
        """Return the number of elements for one sample."""
        return math.prod(self.shape(name))

    def constant(self, array: Any, kind: Any = np.float64) -> str:
        """Return the name of a new constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, kind)
        return name

    def ints(self, *values: int) -> str:
        """Return the name of a new vector of integers."""
        return self.constant(values, np.int64)

    def normal(self, *shape: int) -> str:
        """Return the name of a new constant of normal numbers."""
        return self.constant(self.rng.normal(size=shape))

    def draw(self, *choices: Any) -> Any:
        """Return one of some choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def add(self, operator: str, *sources: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        """Append a node; return the name of its last output."""
        number = len(self.nodes)
        results = [f"v{number}_{place}" for place in range(outputs)]
        node = helper.make_node(
            operator, list(sources), results, f"{operator}_{number}", domain=domain, **attributes
        )
        known = {name: self.constants[name] for name in sources if name in self.constants}
        varying = [name for name in dict.fromkeys(sources) if name in self.arrays]
        body = helper.make_graph(
            [node],
            "node",
            [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(sources) if name],
            [onnx.ValueInfoProto(name=name) for name in results],
        )
        model = helper.make_model(body, opset_imports=self.opsets(), ir_version=10)
        feeds = [
            known | {name: self.arrays[name][sample] for name in varying}
            for sample in range(len(self.samples))
        ]
        ways = (_run, _referred) if operator in BY_RUNTIME else (_referred, _run)
        try:
            computed = ways[0](model, feeds)
        except (ValueError, RuntimeError, IndexError, Fail, NotImplemented):
            # It has no implementation, or a narrower one.
            computed = ways[1](model, feeds)
        self.nodes.append(node)
        for place, name in enumerate(results):
            self.arrays[name] = np.asarray([row[place] for row in computed])
        return results[-1]

    def results(self, name: str) -> list[str]:
        """Return the names of all outputs of the node that made a value."""
        return list(next(node.output for node in self.nodes if name in node.output))

    def shaped(self, name: str, rank: int) -> str:
        """Return the value in a shape of some rank, the batch of 1 included."""
        if len(self.shape(name)) == rank and self.shape(name)[0] == 1:
            return name
        left, sizes = self.size(name), []
        for _ in range(rank - 2):
            divisors = [size for size in range(1, left + 1) if left % size == 0]
            sizes.append(int(self.draw(*divisors)))
            left //= sizes[-1]
        sizes.append(left)
        self.rng.shuffle(sizes)
        return self.add("Reshape", name, self.ints(1, *sizes))

    def tame(self, name: str) -> str:
        """Return the value, scaled if it is far from 1 on the samples."""
        largest = float(np.abs(self.arrays[name]).max())
        if SMALL <= largest <= LARGEST or largest < ROUNDED:
            return name
        return self.add("Mul", name, self.constant(2.0 / largest))

    def positive(self, name: str) -> str:
        """Return a value above 0 made of another one."""
        square = self.add("Mul", name, name)
        return self.add("Add", square, self.constant(self.rng.uniform(0.4, 1.5)))

    def opsets(self) -> list[onnx.OperatorSetIdProto]:
        """Return the operator sets of the graph."""
        return [helper.make_opsetid("", self.opset), helper.make_opsetid(ML, 3)]

    def model(self, output: str) -> onnx.ModelProto:
        """Return the model that ends in a value."""
        shape = [1, *self.samples.shape[1:]]
        kind = helper.np_dtype_to_tensor_dtype(self.arrays[output].dtype)
        body = helper.make_graph(
            self.nodes,
            "drawn",
            [helper.make_tensor_value_info("x", TensorProto.DOUBLE, shape)],
            [helper.make_tensor_value_info(output, kind, self.shape(output))],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        return helper.make_model(body, opset_imports=self.opsets(), ir_version=10)


def _referred(model: onnx.ModelProto, feeds: list[dict[str, Array]]) -> list[list[Array]]:
    evaluator = ReferenceEvaluator(model)
    with np.errstate(all="ignore"):
        return [[np.asarray(array) for array in evaluator.run(None, each)] for each in feeds]


def _run(model: onnx.ModelProto, feeds: list[dict[str, Array]]) -> list[list[Array]]:
    """Evaluate a node by onnxruntime, in single precision where it has no double."""
    for kind in (np.float64, np.float32):
        typed = [
            {name: array.astype(kind) if array.dtype == np.float64 else array for name, array in each.items()}
            for each in feeds
        ]
        for value in model.graph.input:
            array = typed[0].get(value.name)
            if array is not None:
                element = helper.np_dtype_to_tensor_dtype(array.dtype)
                value.CopyFrom(helper.make_tensor_value_info(value.name, element, array.shape))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except NotImplemented:
            continue
        outputs = [session.run(None, each) for each in typed]
        return [[_double(np.asarray(array)) for array in row] for row in outputs]
    # `add` takes it as any error of an evaluator: a RuntimeError.
    raise NotImplementedError(model.graph.node[0].op_type)


def _double(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array
