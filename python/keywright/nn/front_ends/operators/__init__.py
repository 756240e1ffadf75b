"""One file per operator family; `OPERATORS` maps ONNX operator types to what adds them to a graph."""

from collections.abc import Callable

from keywright.nn.activations.functions import ACTIVATIONS
from keywright.nn.front_ends.operator_context import Constant, EncryptedValue, Operand, OperatorContext

from .activations import activation
from .arithmetic import add, divide, multiply, negate, power, subtract
from .dense import gemm, matmul
from .images.convolution import convolution
from .images.pooling import average_pool, global_average_pool, reduce_mean
from .normalization import batch_normalization
from .shape import flatten, identity, reshape, shape_of, squeeze, unsqueeze

OPERATORS: dict[str, Callable[[OperatorContext], Operand]] = {
    "Add": add,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Conv": convolution,
    "Div": divide,
    "Dropout": identity,
    "Flatten": flatten,
    "Gemm": gemm,
    "GlobalAveragePool": global_average_pool,
    "Identity": identity,
    "MatMul": matmul,
    "Mul": multiply,
    "Neg": negate,
    "Pow": power,
    "ReduceMean": reduce_mean,
    "Reshape": reshape,
    "Shape": shape_of,
    "Squeeze": squeeze,
    "Sub": subtract,
    "Unsqueeze": unsqueeze,
    **dict.fromkeys(ACTIVATIONS, activation),
}

__all__ = ["OPERATORS", "Constant", "EncryptedValue", "Operand", "OperatorContext"]
