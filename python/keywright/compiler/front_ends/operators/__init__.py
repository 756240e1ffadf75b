"""One file per operator family; `OPERATORS` maps ONNX operator types to the functions that add them to a
graph."""

from collections.abc import Callable

from keywright.compiler.activations.functions import ACTIVATIONS
from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, Operand, OperatorContext

from .activations import COMPARISONS, activation, comparison, equal_to_itself, finite, parametric_relu
from .arithmetic import add, choose, divide, multiply, negate, power, subtract, sum_of
from .attention.attention import attention
from .attention.einsum import einsum
from .attention.softmax import softmax
from .dense import gemm, matmul
from .gating.gates import both, either, negation
from .images.convolution import convolution, transposed_convolution
from .images.pooling import average_pool
from .images.resizing import resize
from .maximum import extreme, global_max_pool, max_pool, reduce_extreme
from .moves import MOVES, cast, move, reshape, shape_of
from .normalization import (
    batch_normalization,
    group_normalization,
    instance_normalization,
    layer_normalization,
    local_response_normalization,
    lp_normalization,
    normalizer,
    rms_normalization,
)
from .recurrent import recurrent
from .reductions import (
    global_average_pool,
    reduce_logarithm,
    reduce_mean,
    reduce_norm,
    reduce_product,
    reduce_squares,
    reduce_sum,
    running_sum,
)

ANY_ORDER = frozenset([
    *ACTIVATIONS, *MOVES, "Add", "And", "Attention", "Cast", "Div", "Einsum", "Gemm", "MatMul", "Mul", "Not",
    "Or", "ReduceMean", "ReduceSum", "Reshape", "Resize", "Softmax", "Sub",
])  # fmt: skip
"""Operators that read values whose elements are stored in any order; others get them in row-major order."""

MASKABLE = frozenset(["Add", "Attention", "Reshape", "Softmax"])
"""Operators that read values of which a mask hides some elements."""

OPERATORS: dict[str, Callable[[OperatorContext], Operand | tuple[Operand, ...]]] = {
    "Add": add,
    "And": both,
    "Attention": attention,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "CumSum": running_sum,
    "Div": divide,
    "Einsum": einsum,
    "Equal": equal_to_itself,
    "Gemm": gemm,
    "GRU": recurrent,
    "GlobalAveragePool": global_average_pool,
    "GlobalMaxPool": global_max_pool,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "IsInf": finite,
    "IsNaN": finite,
    "LRN": local_response_normalization,
    "LSTM": recurrent,
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "MatMul": matmul,
    "Max": extreme,
    "MaxPool": max_pool,
    "Mean": sum_of,
    "Min": extreme,
    "Mul": multiply,
    "Normalizer": normalizer,
    "Neg": negate,
    "Not": negation,
    "Or": either,
    "PRelu": parametric_relu,
    "Pow": power,
    "RMSNormalization": rms_normalization,
    "RNN": recurrent,
    "ReduceL1": reduce_norm,
    "ReduceL2": reduce_norm,
    "ReduceLogSum": reduce_logarithm,
    "ReduceLogSumExp": reduce_logarithm,
    "ReduceMax": reduce_extreme,
    "ReduceMean": reduce_mean,
    "ReduceMin": reduce_extreme,
    "ReduceProd": reduce_product,
    "ReduceSum": reduce_sum,
    "ReduceSumSquare": reduce_squares,
    "Reshape": reshape,
    "Resize": resize,
    "Shape": shape_of,
    "Softmax": softmax,
    "Sub": subtract,
    "Sum": sum_of,
    **dict.fromkeys(MOVES, move),
    "Where": choose,
    **dict.fromkeys(ACTIVATIONS, activation),
    **dict.fromkeys(COMPARISONS, comparison),
}

__all__ = ["ANY_ORDER", "MASKABLE", "OPERATORS", "Constant", "EncryptedValue", "Operand", "OperatorContext"]
