"""A generator for every operator that the compiler reads, and whole graphs of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx
from keywright.compiler.activations.functions import ACTIVATIONS
from keywright.compiler.front_ends.operators.activations import COMPARISONS

from . import attention, functions, linear, moves
from .drawing import ROUNDING, Array, Drawing

Generator = Callable[[Drawing, str], str]


def named(operator: str, draw: Callable[[Drawing, str, str], str]) -> Generator:
    """Return a generator that is told its operator."""
    return lambda d, x: draw(d, x, operator)


GENERATORS: dict[str, Generator] = {
    **{name: named(name, linear.pair) for name in ("Add", "Sub", "Mul")},
    **{name: named(name, linear.many) for name in ("Sum", "Mean")},
    **{
        name: named(name, linear.normalization)
        for name in ("BatchNormalization", "GroupNormalization", "InstanceNormalization")
    },
    **{name: named(name, linear.over_norm) for name in ("LpNormalization", "Normalizer")},
    **{
        name: named(name, linear.reduce)
        for name in ("ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare")
    },
    **{
        name: named(name, linear.norm) for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    },
    "Attention": attention.attention,
    "AveragePool": linear.average_pool,
    "Conv": linear.convolution,
    "ConvTranspose": linear.transposed_convolution,
    "CumSum": linear.running_sum,
    "Div": linear.divide,
    "Einsum": attention.einsum,
    "Gemm": linear.gemm,
    "GlobalAveragePool": lambda d, x: d.add("GlobalAveragePool", d.shaped(x, d.draw(3, 4))),
    "GlobalMaxPool": lambda d, x: d.add("GlobalMaxPool", d.shaped(functions.few(d, x), 4)),
    "LRN": linear.response_normalization,
    "LayerNormalization": linear.layer_normalization,
    "MatMul": linear.matmul,
    "Neg": lambda d, x: d.add("Neg", x),
    "Pow": linear.power,
    "RMSNormalization": attention.rms_normalization,
    "Softmax": attention.softmax,
    "Cast": moves.cast,
    "Concat": moves.concat,
    "DepthToSpace": moves.depth_to_space,
    "Dropout": moves.dropout,
    "Expand": moves.expand,
    "Flatten": moves.flatten,
    "Gather": moves.gather,
    "GatherElements": moves.gather_elements,
    "GatherND": moves.gather_nd,
    "Identity": lambda d, x: d.add("Identity", x),
    "Pad": moves.pad,
    "Reshape": moves.reshape,
    "Resize": moves.resize,
    "ReverseSequence": moves.reverse_sequence,
    "Shape": moves.shape_,
    "Slice": moves.slice_,
    "SpaceToDepth": moves.space_to_depth,
    "Split": moves.split,
    "Squeeze": moves.squeeze,
    "Tile": moves.tile,
    "Transpose": moves.transpose,
    "Unsqueeze": moves.unsqueeze,
    "Where": moves.where,
    **{name: named(name, functions.function) for name in ACTIVATIONS},
    **{name: named(name, functions.comparison) for name in COMPARISONS},
    **{name: named(name, functions.number_test) for name in ("Equal", "IsInf", "IsNaN")},
    **{name: named(name, functions.extreme) for name in ("Max", "Min")},
    **{name: named(name, functions.reduce_extreme) for name in ("ReduceMax", "ReduceMin")},
    **{name: named(name, functions.recurrent) for name in ("GRU", "LSTM", "RNN")},
    "MaxPool": functions.max_pool,
    "PRelu": functions.prelu,
}
"""By ONNX operator type: adds the operator to a drawing, behind a value of any shape."""

NEWEST = functions.NEWEST | attention.NEWEST
"""The first version that has an operator, if it is above 17."""

SHAPES = [(4,), (6,), (2, 3), (5, 2), (1, 3, 4), (2, 3, 3), (2, 2, 4)]
SAMPLES = 24
"""Too few to hold some out: the fit report is of all of them, so that its largest change bounds theirs."""

WIDEST = 64
"""A value of more elements is reduced by a matrix before the next operator."""


def begin(rng: np.random.Generator, operators: list[str]) -> Drawing:
    """Return a drawing with an input, in an operator set that has the operators."""
    least = max((NEWEST.get(operator, 17) for operator in operators), default=17)
    opset = int(rng.choice([opset for opset in (17, 18, 20, 21, 24) if opset >= least]))
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    return Drawing(rng, opset, rng.uniform(-1, 1, (SAMPLES, *shape)))


def extended(d: Drawing, x: str, operator: str) -> str:
    """Add one operator behind a value, and what keeps the result small."""
    if d.size(x) > WIDEST:
        x = d.tame(d.add("Gemm", d.shaped(x, 2), d.normal(d.size(x), 8)))
    x = d.shaped(x, max(2, len(d.shape(x)))) if d.shape(x)[:1] != (1,) or len(d.shape(x)) < 2 else x
    return d.tame(GENERATORS[operator](d, x))


@dataclass(frozen=True, eq=False)
class Drawn:
    """A drawn model, its samples and its outputs on them, as the libraries compute them.

    Attributes:
        rounding: bound on the rounding of these outputs.
    """

    model: onnx.ModelProto
    samples: Array
    outputs: Array
    rounding: float

    @property
    def operators(self) -> list[str]:
        """Types of the nodes, in order."""
        return [str(node.op_type) for node in self.model.graph.node]


def _drawn(d: Drawing, y: str) -> Drawn:
    largest = max(1.0, float(np.abs(d.arrays[y]).max(initial=0.0)))
    return Drawn(d.model(y), d.samples, d.arrays[y], ROUNDING * largest)


def single(operator: str, seed: int) -> Drawn:
    """Return a model with an operator behind an input or a sum."""
    rng = np.random.default_rng([seed, *operator.encode()])
    d = begin(rng, [operator])
    x = "x" if rng.random() < 0.5 else d.tame(d.add("Add", "x", d.normal(*d.shape("x"))))
    y = extended(d, x, operator)
    if rng.random() < 0.5:
        y = d.add("Gemm", d.shaped(y, 2), d.normal(d.size(y), 3))
    return _drawn(d, y)


def graph(seed: int, most: int = 6) -> Drawn:
    """Return a model of several operators, some of them in branches that are joined."""
    rng = np.random.default_rng([seed, 35])
    operators = [str(name) for name in rng.choice(sorted(GENERATORS), int(rng.integers(2, most + 1)))]
    d = begin(rng, operators)
    values, y = ["x"], "x"
    for operator in operators:
        source = values[int(rng.integers(len(values)))] if rng.random() < 0.3 else values[-1]
        y = extended(d, source, operator)
        values.append(y)
        if rng.random() < 0.3:
            earlier = values[int(rng.integers(len(values)))]
            left, right = (d.add("Flatten", value, axis=1) for value in (y, earlier))
            joined = d.draw(partial(d.add, "Concat", left, right, axis=1), partial(_sum, d, left, right))
            y = d.tame(joined())
            values.append(y)
    return _drawn(d, y)


def _sum(d: Drawing, left: str, right: str) -> str:
    if d.size(left) != d.size(right):
        right = d.tame(d.add("MatMul", right, d.normal(d.size(right), d.size(left))))
    return d.add(d.draw("Add", "Sub", "Mul"), left, right)
