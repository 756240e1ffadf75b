"""Expand before comparisons, as exporters of JAX and TensorFlow write one-hot vectors, and to the shape that
a sample has. It is not needed there, and clients do not run it, because its result may have any size."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright.compiler.front_ends.rewriting.decomposed_operators import drop_unread
from keywright.program.stored_tensors import inferred

COMPARED = frozenset(["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])


def skip_expansions(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    data: Collection[str],
    constant: Callable[[str], NDArray[Any] | None],
) -> bool:
    """Let nodes read what an Expand before them reads, where it changes no shape, or where they compare with
    constants that broadcast it to the same shape. Return whether the model has an Expand of samples.

    Args:
        model: for a batch of 1; it is changed.
        nodes: of the model.
        data: values that depend on samples.
        constant: returns the value of a constant by name; None for others.
    """
    expansions = {
        each.output[0]: each for each in nodes if each.op_type == "Expand" and each.input[0] in data
    }
    if not expansions:
        return False
    shapes = {
        value.name: tuple(axis.dim_value or 1 for axis in value.type.tensor_type.shape.dim)
        for value in inferred(model).value_info
    }
    for node in nodes:
        compares = node.op_type in COMPARED | {"Equal"}
        for place, name in enumerate(node.input):
            expansion, other = expansions.get(name), constant(node.input[1 - place]) if compares else None
            if expansion is None or (compares and other is None):
                continue
            source, size = expansion.input[0], constant(expansion.input[1])
            with suppress(ValueError):  # shapes that do not fit, which the importer reports
                if size is None or source not in shapes:
                    continue
                plain = np.broadcast_shapes(shapes[source], () if other is None else other.shape)
                if plain == np.broadcast_shapes(plain, tuple(size)):
                    node.input[place] = source
    drop_unread(model.graph)
    return True
