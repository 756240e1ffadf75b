"""Conv and ConvTranspose over one or two spatial axes, with strides, padding, dilations and groups."""

import numpy as np

from keywright.compiler.front_ends.operator_context import EncryptedValue, OperatorContext
from keywright.compiler.graph.convolution import Convolution, Matrix, Window
from keywright.compiler.limits import require_elements
from keywright.errors.network import RefusalError

from .window import pixels_of, spread_axes, window_axes, window_pairs


def transposed_convolution(context: OperatorContext) -> EncryptedValue:
    """Add ConvTranspose: each pixel is spread over a window of the result; weights (inputs, outputs / groups,
    height, width), or without height."""
    source, (channels, height, width) = context.image(0)
    weight, bias = context.required_constant(1), context.constant(2)
    groups = context.attribute("group", 1)
    kernel = context.attribute("kernel_shape", [int(size) for size in weight.shape[2:]])
    if weight.ndim != len(source.shape) or list(weight.shape[2:]) != kernel or weight.shape[0] != channels:
        raise context.refuse("weights of shape", weight.shape, f"({channels}, outputs, *kernel_shape)")
    if channels % groups:
        raise context.refuse("group", groups, f"a divisor of {channels} channels")
    rows, columns = spread_axes(context, (height, width), kernel)
    outputs, out_size = int(weight.shape[1]) * groups, rows.size * columns.size
    shape = (outputs, rows.size, columns.size)
    require_elements(f"the result of node {context.name!r}", shape)
    origin, tap, into = window_pairs(rows, columns)
    window = Window(out_size, height * width, rows.kernel * columns.kernel, into, tap, origin)
    apart = weight.reshape(groups, channels // groups, outputs // groups, -1).swapaxes(1, 2)
    matrix = Convolution(apart.reshape(outputs, channels // groups, -1), groups, window)
    offset = np.repeat(np.zeros(outputs) if bias is None else bias, out_size)
    given = (1, outputs, *((rows.size,) if len(source.shape) == 4 else ()), columns.size)
    return context.linear(source, given, matrix, offset, laid_out=shape)


def convolution(context: OperatorContext) -> EncryptedValue:
    """Add the convolution as its kernel; weights (outputs, inputs / groups, height, width), or without
    height."""
    source, (channels, height, width) = context.image(0)
    weight = context.required_constant(1)
    bias = context.constant(2)
    groups = context.attribute("group", 1)
    kernel = context.attribute("kernel_shape", [int(size) for size in weight.shape[2:]])
    if weight.ndim != len(source.shape) or list(weight.shape[2:]) != list(kernel):
        raise context.refuse(
            "weights of shape", weight.shape, f"{len(source.shape) - 2} spatial axes equal to kernel_shape"
        )
    outputs, group_inputs = int(weight.shape[0]), int(weight.shape[1])
    if group_inputs * groups != channels or outputs % groups:
        raise RefusalError(
            f"node {context.name!r}: {groups} groups of {group_inputs} channels do not make {channels} "
            f"inputs and {outputs} outputs"
        )
    rows, columns = window_axes(context, (height, width), kernel)
    out_size = rows.output * columns.output
    shape = (outputs, rows.output, columns.output)
    require_elements(f"the result of node {context.name!r}", shape)
    window = Window(out_size, height * width, rows.kernel * columns.kernel, *window_pairs(rows, columns))
    matrix: Matrix = Convolution(weight.reshape(outputs, group_inputs, -1), groups, window)
    if group_inputs == window.taps == 1:
        matrix = matrix.explicit()  # it may be diagonal, which the rewriting rules look for
    offset = np.repeat(np.zeros(outputs) if bias is None else bias, out_size)
    given = (1, outputs, *pixels_of(source, rows, columns))
    return context.linear(source, given, matrix, offset, (rows.stride, columns.stride), shape)
