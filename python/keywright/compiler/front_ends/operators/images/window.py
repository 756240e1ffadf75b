"""Sliding windows over images: output sizes, and which pixel meets which tap; for convolutions and
pooling."""

import math
from dataclasses import dataclass

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.sparse import Indices
from keywright.compiler.limits import MAX_ENTRIES, require_at_most, require_elements
from keywright.program.arrays import shown_shape


@dataclass(frozen=True)
class Axis:
    """One axis of a window: sizes, and the padding before the first element."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    output: int

    def taps(self) -> tuple[Indices, Indices, Indices]:
        """Return output position, tap and input position of every pair inside the image."""
        position, tap = np.meshgrid(np.arange(self.output), np.arange(self.kernel), indexing="ij")
        source = position * self.stride + tap * self.dilation - self.before
        inside = (source >= 0) & (source < self.size)
        return position[inside], tap[inside], source[inside]


def window_axes(context: OperatorContext, sizes: tuple[int, int], kernel: list[int]) -> tuple[Axis, Axis]:
    """Return the two axes of a window of ``kernel`` taps, from strides, dilations, pads, auto_pad and
    ceil_mode of the node. A node with one spatial axis slides along the width of images of height 1.

    Raises:
        RefusalError: ranks that do not match, or a window larger than the padded image.
        RefusalError: the windows have too many pixels together.
    """
    rank = len(context.encrypted(0).shape) - 2
    strides = context.attribute("strides", [1] * rank)
    dilations = context.attribute("dilations", [1] * rank)
    pads = context.attribute("pads", [0] * (2 * rank))
    mode = context.attribute("auto_pad", "NOTSET")
    ceil = context.attribute("ceil_mode", 0)
    given = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    for name, value in given.items():
        if len(value) != (2 * rank if name == "pads" else rank):
            raise context.refuse(name, value, f"values for {rank} spatial axes")
        least = 0 if name == "pads" else 1
        if min(value, default=least) < least:
            raise context.refuse(name, value, f"values of at least {least}")
    if rank == 1:
        kernel, strides, dilations = [1, *kernel], [1, *strides], [1, *dilations]
        pads = [0, pads[0], 0, pads[1]]
    axes = []
    for axis in range(2):
        size, stride, extent = sizes[axis], strides[axis], (kernel[axis] - 1) * dilations[axis] + 1
        before, after = pads[axis], pads[axis + 2]
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            total = (-(-size // stride) - 1) * stride + extent - size
            if context.operator != "Conv":
                _require_one_reading(context, mode, dilations[axis], total)
            total = max(total, 0)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
            after = total - before
        elif mode == "VALID":
            before = after = 0
        elif mode != "NOTSET":
            raise context.refuse("auto_pad", mode, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
        if size + before + after < extent:
            raise context.refuse(
                "kernel_shape", kernel, f"at most the padded image, {size + before + after} pixels"
            )
        steps, left = divmod(size + before + after - extent, stride)
        # A window that exceeds the padding starts before the padding at the end, or is left out.
        more = bool(ceil) and left > 0 and (steps + 1) * stride < size + before
        if more and mode == "VALID":
            raise context.refuse("ceil_mode", ceil, "0, or auto_pad NOTSET")
        output = steps + 1 + more
        require_elements(f"the window of node {context.name!r}", (output, kernel[axis]))
        axes.append(Axis(size, kernel[axis], stride, dilations[axis], before, output))
    pairs = [size for axis in axes for size in (axis.output, axis.kernel)]
    what = f"the windows of node {context.name!r} of shape {shown_shape(pairs)}"
    require_at_most(what, "entries", math.prod(pairs), MAX_ENTRIES)
    return axes[0], axes[1]


def _require_one_reading(context: OperatorContext, mode: str, dilation: int, total: int) -> None:
    """Refuse pools that onnxruntime pads otherwise than the ONNX specification says: it ignores dilations,
    and pads by less than nothing where windows leave pixels out.

    Raises:
        RefusalError: this is one.
    """
    if dilation != 1:
        raise context.refuse("dilations", dilation, f"1, or pads instead of auto_pad {mode}")
    if total < 0:
        raise context.refuse("auto_pad", mode, "NOTSET and pads, because its windows leave pixels out")


def spread_axes(context: OperatorContext, sizes: tuple[int, int], kernel: list[int]) -> tuple[Axis, Axis]:
    """Return the axes of the window that leads from the result of a transposed convolution back to its
    operand of these sizes: `Axis.size` is the result's.

    Raises:
        RefusalError: ranks that do not match, or a result without pixels.
        RefusalError: the windows have too many pixels together.
    """
    rank = len(context.encrypted(0).shape) - 2
    strides = context.attribute("strides", [1] * rank)
    dilations = context.attribute("dilations", [1] * rank)
    pads = context.attribute("pads", [0] * (2 * rank))
    more = context.attribute("output_padding", [0] * rank)
    if (mode := context.attribute("auto_pad", "NOTSET")) != "NOTSET":
        raise context.refuse("auto_pad", mode, "NOTSET and pads")
    given = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "output_padding": more}
    for name, value in (given | {"pads": pads}).items():
        if len(value) != (2 * rank if name == "pads" else rank):
            raise context.refuse(name, value, f"values for {rank} spatial axes")
    axes = [Axis(1, 1, 1, 1, 0, 1)] * (2 - rank)
    for axis, size in enumerate(sizes[2 - rank :]):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        before, after = pads[axis], pads[axis + rank]
        result = strides[axis] * (size - 1) + more[axis] + extent - before - after
        if result < 1:
            raise context.refuse("pads", pads, "less than the result has")
        require_elements(f"the window of node {context.name!r}", (size, kernel[axis]))
        require_elements(f"the result of node {context.name!r}", (result,))
        axes.append(Axis(result, kernel[axis], strides[axis], dilations[axis], before, size))
    pairs = [size for axis in axes for size in (axis.output, axis.kernel)]
    what = f"the windows of node {context.name!r} of shape {shown_shape(pairs)}"
    require_at_most(what, "entries", math.prod(pairs), MAX_ENTRIES)
    return axes[0], axes[1]


def window_pairs(rows: Axis, columns: Axis) -> tuple[Indices, Indices, Indices]:
    """Return flat output pixel, flat tap and flat input pixel of every pair inside the image."""
    out_y, tap_y, in_y = (a[:, None] for a in rows.taps())
    out_x, tap_x, in_x = (a[None, :] for a in columns.taps())
    return (
        (out_y * columns.output + out_x).ravel(),
        (tap_y * columns.kernel + tap_x).ravel(),
        (in_y * columns.size + in_x).ravel(),
    )


def require_covered(context: OperatorContext, out_pixel: Indices, count: int) -> None:
    """Refuse a pool of which a window lies in the padding alone: it has no largest value and no mean.

    Raises:
        RefusalError: one of ``count`` windows has no pixel.
    """
    if np.bincount(out_pixel, minlength=count).min(initial=1) == 0:
        raise context.refuse("pads", "a window without pixels", "less padding: every window needs a pixel")


def pixels_of(source: EncryptedValue, rows: Axis, columns: Axis) -> tuple[int, ...]:
    """Return the spatial axes of a window's result, as many as the operand has."""
    return (rows.output, columns.output) if len(source.shape) == 4 else (columns.output,)
