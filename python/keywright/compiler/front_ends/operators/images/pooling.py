"""AveragePool: means over windows, which are linear."""

import math

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.limits import MAX_ENTRIES, require_at_most

from .window import pixels_of, require_covered, window_axes, window_pairs


def average_pool(context: OperatorContext) -> EncryptedValue:
    """Add the mean over each window; padding counts only with count_include_pad."""
    source, (channels, height, width) = context.image(0)
    kernel = context.attribute("kernel_shape", [0, 0])
    rows, columns = window_axes(context, (height, width), kernel)
    out_pixel, _, in_pixel = window_pairs(rows, columns)
    require_at_most(f"node {context.name!r}", "entries", channels * len(out_pixel), MAX_ENTRIES)
    out_size = rows.output * columns.output
    require_covered(context, out_pixel, out_size)
    if context.attribute("count_include_pad", 0):
        if ceil := context.attribute("ceil_mode", 0):  # what the last windows count depends on the opset
            raise context.refuse("ceil_mode", ceil, "0, or count_include_pad = 0")
        share = np.full(len(out_pixel), 1.0 / math.prod(kernel))
    else:
        share = 1.0 / np.bincount(out_pixel, minlength=out_size)[out_pixel]
    channel = np.arange(channels)[:, None]
    matrix = SparseMatrix.from_entries(
        (channels * out_size, channels * height * width),
        (channel * out_size + out_pixel).ravel(),
        (channel * height * width + in_pixel).ravel(),
        np.tile(share, channels),
    )
    shape = (channels, rows.output, columns.output)
    given = (1, channels, *pixels_of(source, rows, columns))
    return context.linear(source, given, matrix, stride=(rows.stride, columns.stride), laid_out=shape)
