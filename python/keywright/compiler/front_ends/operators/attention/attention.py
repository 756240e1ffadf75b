"""Attention, as ONNX has it since opset 23: scaled products of queries and keys, a softmax, products with
values."""

import math

import numpy as np

from keywright.compiler.front_ends.operator_context import Constant, EncryptedValue, OperatorContext
from keywright.compiler.front_ends.operators.arithmetic import summed
from keywright.compiler.front_ends.operators.gating.gates import gated, require_bits

from .products import matrix_product
from .softmax import softmax_of


def attention(context: OperatorContext) -> EncryptedValue:
    """Add attention of encrypted queries, keys and values, with a mask or none."""
    for index, name in ((4, "past_key"), (5, "past_value"), (6, "nonpad_kv_seqlen")):
        if context.operand(index) is not None:
            raise context.refuse(
                name,
                "given",
                "none: compile the model for whole sequences, without cached keys (use_cache=False)",
            )
    for name in ("softcap", "qk_matmul_output_mode"):
        if value := context.attribute(name, 0.0):
            raise context.refuse(name, value, "0")
    context.attribute("softmax_precision", 1)
    if any(context.node.output[1:]):
        raise context.refuse(
            "outputs",
            len(context.node.output),
            "the first alone, without keys and values to cache (use_cache=False)",
        )
    queries, keys, values = (context.encrypted(index) for index in range(3))
    if any(value.hides for value in (queries, keys, values)):
        raise context.refuse("queries, keys or values", "a mask", "values without one")
    shapes = [each.shape for each in (queries, keys, values)]
    flat = len(queries.shape) == 3
    if len(queries.shape) not in (3, 4) or len({len(shape) for shape in shapes}) > 1:
        raise context.refuse("operands of shapes", ", ".join(map(str, shapes)), "three or four axes in each")
    heads, shared = context.attribute("q_num_heads", 0), context.attribute("kv_num_heads", 0)
    if flat:
        if heads < 1 or shared < 1:
            raise context.refuse("q_num_heads", heads, "a number of heads, for operands of three axes")
        queries, keys, values = (
            _heads(context, value, count)
            for value, count in ((queries, heads), (keys, shared), (values, shared))
        )
    groups = queries.shape[1] // keys.shape[1]
    if groups * keys.shape[1] != queries.shape[1]:
        raise context.refuse(
            "heads of queries", queries.shape[1], f"a multiple of the {keys.shape[1]} of keys"
        )
    if groups > 1:
        keys, values = (
            context.select(value, np.repeat(value.indices(), groups, axis=1)) for value in (keys, values)
        )
    scale = context.attribute("scale", 0.0) or 1.0 / math.sqrt(queries.shape[-1])
    turned = context.select(keys, np.swapaxes(keys.indices(), -1, -2))
    scores = context.scaled(matrix_product(context, queries, turned), scale)
    scores = _masked(context, scores)
    result = matrix_product(context, softmax_of(context, scores, len(scores.shape) - 1), values)
    if not flat:
        return result
    order = np.swapaxes(result.indices(), 1, 2)
    joined = EncryptedValue(result.number, order.shape, order)
    return joined.reshaped((*order.shape[:2], order.shape[2] * order.shape[3]))


def _heads(context: OperatorContext, value: EncryptedValue, count: int) -> EncryptedValue:
    batch, length, width = value.shape
    if width % count:
        raise context.refuse("heads", count, f"a divisor of the width {width}")
    return context.select(value, value.indices().reshape(batch, length, count, -1).transpose(0, 2, 1, 3))


def _masked(context: OperatorContext, scores: EncryptedValue) -> EncryptedValue:
    """Hide what a causal or given mask hides, and add a bias. A constant one may be shorter than the keys, of
    which it hides the others."""
    given = context.operand(3)
    if isinstance(given, EncryptedValue) and (given.gate or given.numbers):
        scores = gated(context, scores, given if given.gate else require_bits(context, given))
    elif isinstance(given, EncryptedValue):
        scores = summed(context, scores, given)
    elif given is not None:
        array = given.array
        bias = np.where(array, 0.0, -np.inf) if array.dtype == bool else np.asarray(array, np.float64)
        bias = np.atleast_1d(bias)
        missing = max(0, scores.shape[-1] - bias.shape[-1])
        bias = np.pad(bias, [*[(0, 0)] * (bias.ndim - 1), (0, missing)], constant_values=-np.inf)
        scores = summed(context, scores, Constant(bias)) if bias.any() else scores
    if context.attribute("is_causal", 0):
        past = np.tri(*scores.shape[-2:], dtype=np.bool_)
        scores = summed(context, scores, Constant(np.where(past, 0.0, -np.inf)))
    return scores
