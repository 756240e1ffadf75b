"""Conv: two-dimensional convolution with strides, padding, dilations and groups."""

import numpy as np

from keywright.nn.errors import InvalidModelError
from keywright.nn.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.nn.graph.sparse import SparseMatrix

from .window import pixel_stride, window_axes, window_pairs


def convolution(context: OperatorContext) -> EncryptedValue:
    """The convolution as a sparse matrix; weights (outputs, inputs / groups, height, width)."""
    source, (channels, height, width) = context.image(0)
    weight = context.required_constant(1)
    bias = context.constant(2)
    groups = context.attribute("group", 1)
    kernel = context.attribute("kernel_shape", [int(size) for size in weight.shape[2:]])
    if weight.ndim != 4 or list(weight.shape[2:]) != list(kernel):
        raise context.refuse("weights of shape", weight.shape, "two spatial dimensions equal to kernel_shape")
    outputs, group_inputs = int(weight.shape[0]), int(weight.shape[1])
    if group_inputs * groups != channels or outputs % groups:
        raise InvalidModelError(
            f"node {context.name!r}: {groups} groups of {group_inputs} channels do not make {channels} "
            f"inputs and {outputs} outputs"
        )
    rows, columns = window_axes(context, (height, width), kernel)
    out_pixel, tap, in_pixel = window_pairs(rows, columns)
    out_channel, member = (a.ravel()[:, None] for a in np.indices((outputs, group_inputs)))
    in_channel = out_channel // (outputs // groups) * group_inputs + member
    taps = weight.reshape(outputs, group_inputs, -1)
    out_size = rows.output * columns.output
    matrix = SparseMatrix.from_distinct(
        (outputs * out_size, channels * height * width),
        (out_channel * out_size + out_pixel).ravel(),
        (in_channel * height * width + in_pixel).ravel(),
        taps[out_channel, member, tap].ravel(),
    )
    offset = np.zeros(outputs) if bias is None else bias
    shape = (outputs, rows.output, columns.output)
    return context.linear(source, shape, matrix, np.repeat(offset, out_size), pixel_stride(rows, columns))
