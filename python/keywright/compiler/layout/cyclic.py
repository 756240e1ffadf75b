"""Cyclic layouts, in which convolutions take the fewest diagonals, and the repacking before a stride of two.

Let an image have P pixels per channel, P a power of two. Channel c, row y, column x is at slot

    P c + a y + b x   modulo the period,

with slopes a and b for which a y + b x takes every value modulo P. Channels then differ by multiples of P, a
cyclic group, and a tap of a kernel is one shift. A convolution of T taps takes T diagonals for each channel
of the period, and no layout without copies takes fewer. A multiplexed layout after a stride takes more,
because shifts between the channels inside a pixel are not a group: 49 diagonals for 3 x 3 taps and 4
channels, not 36.

A stride of two keeps even pixels only. If it left them in place, at slopes 2 a and 2 b, they would not take
every value modulo P / 4. The image is therefore repacked first, by one map of zeros and ones: its pixels (2
y + r, 2 x + s) become four images, at the slopes a' and b' of half the side. A pixel moves by

    (2 a - a') y + (2 b - b') x + t(r, s),

which has few values if 2 a - a' and 2 b - b' are small multiples of one another and the four t are near the
steps between the pixels of an image. `SLOPES` has such a chain: 85 diagonals from side 32, then 59, 21. The
repacking takes a level; the compiler weighs it against the savings in every following convolution.
"""

from dataclasses import dataclass

import numpy as np

from keywright.compiler.graph.graph import Graph, Linear, with_operands
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.program.arrays import Shape
from keywright.program.operands.layout import Layout, Positions, next_power_of_two

REPACKED = "repacked"
"""Label of the maps that repack."""


@dataclass(frozen=True)
class Slopes:
    """The positions of the pixels of images of one side.

    Attributes:
        row, column: a and b: slots from a pixel to the one below it and to the one right of it.
        moves: t(0, 0), t(0, 1), t(1, 0) and t(1, 1) of the repacking for half the side.
    """

    row: int
    column: int
    moves: tuple[int, int, int, int] | None = None


SLOPES = {
    32: Slopes(224, 505, (0, -7, -32, -39)),
    16: Slopes(447, 1008, (0, 48, 63, 111)),
    8: Slopes(888, 2013, (0, -3, 8, 5)),
    4: Slopes(1775, 4028),
}
"""Slopes by side, found by `scripts/cyclic_slopes.py`."""


def repack_before_strides(graph: Graph) -> tuple[Graph, dict[int, int]] | None:
    """Return an equal graph in which maps to images of half the side read repacked operands; None if there
    are none.

    Returns:
        The graph, and for each of its values the equal value of the old graph.
    """
    result = Graph(dict(graph.nodes), graph.output)
    repacked: dict[int, int] = {}
    for number, node in graph.nodes.items():
        if isinstance(node, Linear):
            operands = [
                _repacked(result, operand, repacked)
                if _halves(graph.nodes[operand].shape, node.shape)
                else operand
                for operand in node.operands
            ]
            result.nodes[number] = with_operands(node, operands)
    if not repacked:
        return None
    origin = {number: number for number in graph.nodes} | {new: old for old, new in repacked.items()}
    order = result.topological_order()
    return result.renumbered(), {place: origin[number] for place, number in enumerate(order)}


def _halves(operand: Shape, result: Shape) -> bool:
    side = _side(operand)
    return side is not None and SLOPES[side].moves is not None and _side(result) == side // 2


def _repacked(graph: Graph, operand: int, repacked: dict[int, int]) -> int:
    """Return the repacked value, the same for all readers."""
    if operand not in repacked:
        shape = graph.nodes[operand].shape
        size = int(np.prod(shape, dtype=np.int64))
        identity = SparseMatrix.diagonal(np.ones(size))
        repacked[operand] = graph.add(Linear(shape, (operand,), (identity,), np.zeros(size), label=REPACKED))
    return repacked[operand]


def cyclic_layouts(graph: Graph, slots: int) -> dict[int, Layout]:
    """Return the cyclic layout of every image that has one."""
    return {
        number: layout
        for number, node in graph.nodes.items()
        if (layout := _layout(node.shape, slots, repacked=getattr(node, "label", "") == REPACKED)) is not None
    }


def _layout(shape: Shape, slots: int, *, repacked: bool) -> Layout | None:
    side = _side(shape)
    if side is None or side**2 > slots:
        return None
    channels = np.arange(shape[0], dtype=np.int32)[:, None, None]
    pixels = _repacked_pixels(side) if repacked else _pixels(side)
    each = slots // side**2
    period = min(next_power_of_two(shape[0]) * side**2, slots)
    place = (channels % each * side**2 + pixels) & (period - 1)
    return Layout(slots, period, (channels // each * slots + place).ravel().astype(np.int32))


def _pixels(side: int) -> Positions:
    """Return the offset of every pixel from its channel's slot, (side, side)."""
    y, x = np.indices((side, side), dtype=np.int32)
    return SLOPES[side].row * y + SLOPES[side].column * x


def _repacked_pixels(side: int) -> Positions:
    """Return the same after the repacking."""
    slopes, half = SLOPES[side], SLOPES[side // 2]
    y, x = np.indices((side, side), dtype=np.int32)
    moves = np.asarray(slopes.moves, np.int32)[y % 2 * 2 + x % 2]
    within = (2 * slopes.row - half.row) * (y // 2) + (2 * slopes.column - half.column) * (x // 2)
    return np.asarray(_pixels(side) - within - moves, np.int32)


def _side(shape: Shape) -> int | None:
    """Return the side of a square image with known slopes."""
    return shape[1] if len(shape) == 3 and shape[1] == shape[2] and shape[1] in SLOPES else None
