"""Cyclic layouts: the fewest diagonals of a convolution, and a repacking that preserves this."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.graph.convolution import Convolution, Window
from keywright.compiler.graph.graph import Graph, Input, Linear, Multiply
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.layout.cyclic import REPACKED, SLOPES, cyclic_layouts, repack_before_strides
from keywright.compiler.layout.layer_work import Prices
from keywright.compiler.layout.layout_choice import choose_layouts
from keywright.compiler.layout.lowering import lower
from keywright.runtime import run_clear
from onnx import helper

Build = Callable[..., onnx.ModelProto]

PRICES = Prices(rotation=1.0, hoisted=0.25, diagonal=0.1, ciphertext=1.25)
HALVED = [side for side, slopes in SLOPES.items() if slopes.moves is not None]
REPACKING_DIAGONALS = {32: 85, 16: 59, 8: 21}
"""Written in the module's text."""


def kernel(rng: np.random.Generator, into: int, origin: int, side: int, stride: int) -> Convolution:
    """3 x 3 taps around every pixel, or around every other one."""
    half = side // stride
    y, x, i, j = (a.ravel() for a in np.indices((half, half, 3, 3)))
    v, u = y * stride + i - 1, x * stride + j - 1
    inside = (v >= 0) & (v < side) & (u >= 0) & (u < side)
    pairs = (y * half + x, i * 3 + j, v * side + u)
    return Convolution(
        rng.normal(size=(into, origin, 9)), 1, Window(half**2, side**2, 9, *(a[inside] for a in pairs))
    )


def network(side: int, channels: int) -> Graph:
    """Two convolutions, the second of which halves the side and doubles the channels, and a third."""
    rng, graph = np.random.default_rng(side), Graph()
    small, large = (channels, side, side), (2 * channels, side // 2, side // 2)
    value = graph.add(Input(small))
    for into, shape, stride in ((small, small, 1), (small, large, 2), (large, large, 1)):
        matrix = kernel(rng, shape[0], into[0], into[1], stride)
        bias = rng.normal(size=matrix.shape[0])
        value = graph.add(Linear(shape, (value,), (matrix,), bias, (stride, stride)))
        value = graph.add(Multiply(shape, (value, value)))
    graph.output = value
    return graph


@pytest.mark.parametrize("side", SLOPES)
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_every_pixel_has_its_slot_and_channels_are_a_cyclic_group(side: int, channels: int) -> None:
    graph = Graph({0: Input((channels, side, side))}, 0)
    for slots in (8 * side**2, 2 * side**2):
        layout = cyclic_layouts(graph, slots)[0]
        assert layout.ciphertexts == -(-channels // (slots // side**2))
        assert len(np.unique(layout.positions)) == channels * side**2
        assert layout.positions.min() >= 0
        assert layout.period == min(1 << (channels * side**2 - 1).bit_length(), slots)
        images = layout.positions.reshape(channels, side**2)
        assert np.array_equal(np.sort(images[0] % side**2), np.arange(side**2))
        assert not ((images - images[0]) % side**2).any()


@pytest.mark.parametrize("side", SLOPES)
def test_a_convolution_takes_a_diagonal_for_each_channel_and_tap(side: int) -> None:
    matrix = kernel(np.random.default_rng(1), 4, 4, side, 1)
    node = Linear((4, side, side), (0,), (matrix,), np.zeros(1))
    layout = cyclic_layouts(Graph({0: node}, 0), 4 * side**2)[0]
    ((_, transform),) = lower(node, [layout], layout, PRICES).rows
    assert len(transform.diagonals[0]) == 4 * 9
    assert transform.bytes == 4 * 9 * 4 * side**2 * 8


@pytest.mark.parametrize("side", HALVED)
def test_a_repacking_keeps_diagonals_few(side: int) -> None:
    graph = network(side, 2)
    repacked = repack_before_strides(graph)
    assert repacked is not None
    graph, _ = repacked
    layouts = choose_layouts(graph, 2 * side**2, PRICES, fixed=True, cyclic=True)
    diagonals = [
        (node.label, lower(node, [layouts[o] for o in node.operands], layouts[number], PRICES).work.diagonals)
        for number, node in graph.nodes.items()
        if isinstance(node, Linear)
    ]
    assert diagonals == [("", 2 * 9), (REPACKED, REPACKING_DIAGONALS[side]), ("", 4 * 4), ("", 4 * 9)]


@pytest.mark.parametrize("side", HALVED)
def test_a_repacked_graph_is_equal(side: int) -> None:
    graph = network(side, 2)
    repacked = repack_before_strides(graph)
    assert repacked is not None
    sample = np.random.default_rng(2).normal(size=2 * side**2) / side
    before, after = graph.evaluate(sample), repacked[0].evaluate(sample)
    assert {number: after[number].tolist() for number in after} == {
        number: before[old].tolist() for number, old in repacked[1].items()
    }
    assert repacked[0].depth() == graph.depth() + 1


def test_without_a_stride_nothing_is_repacked() -> None:
    graph = Graph()
    value = graph.add(Input((2, 8, 8)))
    matrix = kernel(np.random.default_rng(3), 2, 2, 8, 1)
    graph.output = graph.add(Linear((2, 8, 8), (value,), (matrix,), np.zeros(128)))
    assert repack_before_strides(graph) is None
    half = SparseMatrix.from_dense(np.ones((32, 128)))
    graph.output = graph.add(Linear((2, 6, 6), (graph.output,), (half,), np.zeros(72)))
    assert repack_before_strides(graph) is None


def test_a_network_is_repacked_where_that_takes_less_time_and_levels_suffice(build: Build) -> None:
    """Sixteen channels of 16 x 16 pixels, halved, and five convolutions behind."""
    rng, nodes, constants = np.random.default_rng(4), [], {}
    name, shapes = "x", [(32, 16, 2), *[(32, 32, 1)] * 5]
    for k, (outputs, inputs, stride) in enumerate(shapes):
        constants[f"w{k}"] = rng.normal(size=(outputs, inputs, 3, 3)).astype(np.float32) / 12
        conv, result = f"c{k}", "y" if k == len(shapes) - 1 else f"s{k}"
        nodes.append(helper.make_node("Conv", [name, f"w{k}"], [conv], pads=[1] * 4, strides=[stride] * 2))
        nodes.append(helper.make_node("Mul", [conv, conv], [result]))
        name = result
    model = build(nodes, (16, 16, 16), constants)
    programs = [
        compiler.compile_program(model, compiler.Target(slots=4096, levels=levels, packing="coefficients"))
        for levels in (12, 13)
    ]
    counts = [sum(len(d) for t in program.operands.transforms for d in t.diagonals) for program in programs]
    labels = [sum(REPACKED in layer.name for layer in program.layers) for program in programs]
    assert labels == [0, 1]
    assert [program.depth for program in programs] == [12, 13]
    assert counts == [4 * 32 + 5 * 392, REPACKING_DIAGONALS[16] + 4 * 32 + 5 * 288]
    samples = rng.normal(size=(2, 16, 16, 16))
    plain, repacked = (np.asarray([run_clear(p, sample) for sample in samples]) for p in programs)
    assert np.abs(repacked - plain).max() <= 2.0**-40 * np.abs(plain).max()
    report = compiler.check(programs[1], samples, model)
    assert report.max_abs_error <= 2.0**-16 * np.abs(report.expected).max()
