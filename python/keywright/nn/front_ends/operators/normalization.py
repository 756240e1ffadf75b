"""BatchNormalization at inference: a factor and an offset per channel."""

import numpy as np

from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.sparse import SparseMatrix


def batch_normalization(context: OperatorContext) -> EncryptedValue:
    """scale * (x - mean) / sqrt(variance + epsilon) + bias along the channel axis."""
    source = context.encrypted(0)
    scale, bias, mean, variance = (context.required_constant(index) for index in range(1, 5))
    context.attribute("momentum", 0.9)
    if context.attribute("training_mode", 0):
        raise context.refuse("training_mode", 1, "0, the statistics of training")
    channels = source.shape[0]
    if any(value.shape != (channels,) for value in (scale, bias, mean, variance)):
        raise context.refuse("parameters of shape", scale.shape, f"({channels},)")
    with np.errstate(invalid="ignore", divide="ignore"):  # `linear` refuses what is not finite
        factor = scale / np.sqrt(variance + context.attribute("epsilon", 1e-5))
    pixels = source.size // channels
    matrix = SparseMatrix.diagonal(np.repeat(factor, pixels))
    return context.linear(source, source.shape, matrix, np.repeat(bias - mean * factor, pixels))
