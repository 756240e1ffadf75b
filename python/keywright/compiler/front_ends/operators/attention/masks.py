"""Masks: constants in front of a softmax that leave elements no share of their row."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.front_ends.operators.arithmetic import shifted
from keywright.compiler.front_ends.operators.gating.gates import HIDDEN
from keywright.compiler.graph.graph import Graph
from keywright.compiler.graph.sparse import Indices
from keywright.errors.network import NOTHING_SHOWN, RefusalError
from keywright.errors.refusals.operators import mask_without_effect
from keywright.program.arrays import Vector

LOST = -(2.0**17)
"""Runtimes round sums with this number, in single precision, to multiples of 2^-7: a softmax of others is
another."""

LEAST_GAP = 36.0
"""How far a hidden element is at least below the largest of its row: exp(-36) is 2.3e-16 of it."""


@dataclass(frozen=True, eq=False)
class FiniteMask:
    """Finite constants that were taken for a mask, which holds for data on which they hide their elements.

    Attributes:
        name: of the node.
        value: the number of the operand without these constants.
        constants: what the model adds to each element, in stored order; 0 for elements that are not hidden.
        rows: the numbers of the elements of each row, (elements, rows).
    """

    name: str
    value: int
    constants: Vector
    rows: Indices


def shown_elements(
    context: OperatorContext, source: EncryptedValue, axis: int, rows: Indices
) -> tuple[EncryptedValue, NDArray[np.bool_]]:
    """Return the operand of a softmax without the constants that hide elements, and the visible elements.

    Because a softmax does not change if a row is shifted, the largest constant of a row counts as 0, and a
    row in which all constants are equal is not hidden.

    Args:
        source: the operand.
        axis: of its rows.
        rows: the numbers of the elements of each row, (elements, rows).

    Raises:
        RefusalError: minus infinity, or a number beside which single precision loses the others, hides all
            elements of a row.
    """
    if source.masked is None:
        return source, np.ones(source.shape, bool)
    largest = source.masked.max(axis=axis, keepdims=True)
    if (largest <= LOST).any():
        raise RefusalError(f"node {context.name!r}: {NOTHING_SHOWN}")
    constants = source.masked - largest
    shown = constants > HIDDEN
    value = replace(source, masked=None)
    if np.any(constants[shown] != 0.0):
        value = shifted(context, value, np.where(shown, constants, 0.0))
    finite = np.where(shown | np.isneginf(constants), 0.0, constants)
    if finite.any():
        context.claims.masks.append(FiniteMask(context.name, value.number, value.stored(finite), rows))
    return value, shown


def require_hidden(masks: Iterable[FiniteMask], graph: Graph, samples: Vector) -> None:
    """Check that finite masks hide their elements on calibration data.

    Args:
        graph: as imported, not simplified.
        samples: (count, features).

    Raises:
        RefusalError: an element has a share of its row.
    """
    masks = list(masks)
    if not masks:
        return
    for _, values in graph.leading_to(mask.value for mask in masks).runs(samples):
        for mask in masks:
            constants = mask.constants[mask.rows]
            operands = values[mask.value][:, mask.rows]
            largest = np.where(constants == 0.0, operands, -np.inf).max(axis=1)
            hidden = np.where(constants == 0.0, -np.inf, operands + constants).max(axis=1)
            if not (gap := float((largest - hidden).min())) >= LEAST_GAP:
                raise mask_without_effect(mask.name, float(mask.constants.min()), gap)
