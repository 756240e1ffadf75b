"""AveragePool, GlobalAveragePool and ReduceMean: means over pixels, which are linear."""

import numpy as np

from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.sparse import SparseMatrix
from keywright.nn.limits import MAX_ENTRIES, require_at_most

from .window import pixel_stride, window_axes, window_pairs


def average_pool(context: OperatorContext) -> EncryptedValue:
    """The mean over each window; padding counts only where count_include_pad says so."""
    source, (channels, height, width) = context.image(0)
    kernel = context.attribute("kernel_shape", [0, 0])
    rows, columns = window_axes(context, (height, width), kernel)
    out_pixel, _, in_pixel = window_pairs(rows, columns)
    require_at_most(f"node {context.name!r}", "entries", channels * len(out_pixel), MAX_ENTRIES)
    out_size = rows.output * columns.output
    if context.attribute("count_include_pad", 0):
        share = np.full(len(out_pixel), 1.0 / (kernel[0] * kernel[1]))
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
    return context.linear(source, shape, matrix, stride=pixel_stride(rows, columns))


def global_average_pool(context: OperatorContext) -> EncryptedValue:
    """The mean of each channel, shape (channels, 1, 1)."""
    source, (channels, height, width) = context.image(0)
    return context.linear(source, (channels, 1, 1), _channel_means(channels, height * width), stride=height)


def reduce_mean(context: OperatorContext) -> EncryptedValue:
    """ReduceMean over both spatial axes of an image."""
    source, (channels, height, width) = context.image(0)
    given = context.constant(1)
    axes = context.attribute("axes", [0]) if given is None else [int(axis) for axis in given]
    if sorted(axis % 4 for axis in axes) != [2, 3]:
        raise context.refuse("axes", axes, "the spatial axes [2, 3]")
    context.attribute("noop_with_empty_axes", 0)
    shape = (channels, 1, 1) if context.attribute("keepdims", 1) else (channels,)
    return context.linear(source, shape, _channel_means(channels, height * width), stride=height)


def _channel_means(channels: int, pixels: int) -> SparseMatrix:
    columns = np.arange(channels * pixels)
    values = np.full(channels * pixels, 1.0 / pixels)
    return SparseMatrix.from_entries((channels, channels * pixels), columns // pixels, columns, values)
