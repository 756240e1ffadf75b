"""Activations: nodes to be fitted."""

from keywright.nn.activations.functions import ACTIVATIONS, gelu, gelu_tanh, swish
from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.graph import Activation

DEFAULT_DEGREE = 7


def activation(context: OperatorContext) -> EncryptedValue:
    """The function as a node to be fitted, with the degree asked for its operator type."""
    source = context.encrypted(0)
    function = ACTIVATIONS[context.operator]
    if context.operator == "Gelu":
        approximate = context.attribute("approximate", "none")
        if approximate not in ("none", "tanh"):
            raise context.refuse("approximate", approximate, "none or tanh")
        function = gelu_tanh if approximate == "tanh" else gelu
    if context.operator == "Swish":
        alpha = context.attribute("alpha", 1.0)
        function = swish(alpha)
    degree = context.degrees.get(context.operator, DEFAULT_DEGREE)
    node = Activation(
        source.shape, (source.number,), function, f"{context.operator} at {context.name!r}", degree
    )
    return EncryptedValue(context.graph.add(node), source.shape)
