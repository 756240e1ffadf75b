"""Activations: nodes that polynomials will stand for."""

import math

from keywright.nn.activations.functions import ACTIVATIONS, clip, gelu, gelu_tanh, leaky_relu, swish
from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.graph import Activation
from keywright.nn.graph.piecewise import Function


def activation(context: OperatorContext) -> EncryptedValue:
    """The function as a node."""
    source = context.encrypted(0)
    node = Activation(source.shape, (source.number,), _function(context), context.operator, context.name)
    return EncryptedValue(context.graph.add(node), source.shape)


def _function(context: OperatorContext) -> Function:
    match context.operator:
        case "Gelu":
            approximate = context.attribute("approximate", "none")
            if approximate not in ("none", "tanh"):
                raise context.refuse("approximate", approximate, "none or tanh")
            return gelu_tanh if approximate == "tanh" else gelu
        case "Swish":
            return swish(context.attribute("alpha", 1.0))
        case "LeakyRelu":
            return leaky_relu(context.attribute("alpha", 0.01))
        case "Clip":
            low, high = _bound(context, 1, "min", -math.inf), _bound(context, 2, "max", math.inf)
            if not low < high:
                raise context.refuse("min", low, f"a number below max = {high}")
            return clip(low, high)
        case operator:
            return ACTIVATIONS[operator]


def _bound(context: OperatorContext, index: int, name: str, default: float) -> float:
    """An end of Clip: an operand, or an attribute before opset 11; limits of float32 stand for none."""
    given = context.constant(index)
    if given is not None and given.size != 1:
        raise context.refuse(name, given.tolist(), "one number")
    value = context.attribute(name, default) if given is None else float(given.item())
    return default if abs(value) > 3.4e38 else value
