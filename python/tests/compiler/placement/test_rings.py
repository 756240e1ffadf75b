"""Values in smaller rings: the assignment compared with all others, and programs compared with one ring."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from keywright import compiler, runtime
from keywright.compiler.graph.graph import Graph, Input, Linear, Multiply, operands
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.layout.layer_work import LayerWork
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.placement import LevelLimits, Problem, place
from keywright.compiler.placement.ring import Ring
from keywright.compiler.placement.rings import RingProblem
from keywright.errors import OperandError
from keywright.program.operands.layout import Layout
from keywright.runtime import run_clear
from onnx import helper

Build = Callable[..., onnx.ModelProto]
SLOTS = 64
LEVELS = 6


def costs(scale: float) -> CostTable:
    row = tuple(scale * (level + 1) for level in range(LEVELS + 1))
    return CostTable(row, row, row, row, (20.0, 20.0))


def chain(rng: np.random.Generator) -> RingProblem:
    """Linear maps and squares in a row, with shortcuts; values shrink."""
    one = SparseMatrix.diagonal(np.ones(1))
    graph, periods = Graph({0: Input((1,))}, 0), {0: SLOTS}
    for number in range(1, 6):
        shortcut = number > 2 and rng.integers(3) == 0
        before = (number - 1, number - 2) if shortcut else (number - 1,)
        graph.add(Linear((1,), before, (one,) * len(before), np.zeros(1)))
        if not shortcut and rng.integers(2):
            graph.nodes[number] = Multiply((1,), (number - 1, number - 1))
        shrunk = periods[number - 1] >> int(rng.integers(2))
        periods[number] = shrunk if isinstance(graph.nodes[number], Linear) else periods[number - 1]
    graph.output = 5
    work = {number: LayerWork(int(rng.integers(8)), int(rng.integers(8)), 2, (1,)) for number in graph.nodes}
    problem = Problem(
        graph,
        work,
        dict.fromkeys(graph.nodes, 1),
        [compiler.Bootstrap(SLOTS, 1, 4)],
        dict.fromkeys(graph.nodes, 0.5),
        LevelLimits(LEVELS, 4, 1),
        costs(1.0),
    )
    layouts = {n: Layout(SLOTS, period, np.zeros(1, np.int32)) for n, period in periods.items()}
    rings = [
        Ring(7, LEVELS, costs(1.0)),
        Ring(6, int(rng.integers(2, 6)), costs(float(rng.uniform(0.3, 0.9))), 0.8),
        Ring(5, int(rng.integers(1, 4)), costs(float(rng.uniform(0.2, 0.6)))),
    ]
    return RingProblem(problem, place(problem), layouts, rings)


def legal(rings: RingProblem, chosen: dict[int, int]) -> bool:
    """Whether values fit their rings and are never read in a larger ring than their own."""
    for number, node in rings.problem.graph.nodes.items():
        ring = rings.rings[chosen[number]]
        reads = rings.problem.reads(number, rings.placement.levels[number])
        if chosen[number]:
            periods = [rings.layouts[value].period for value in (number, *operands(node))]
            level = max((read for _, read in reads), default=rings.placement.needs[number])
            if level > ring.level or max(periods) > ring.slots:
                return False
        for operand in operands(node):
            if operand not in rings.placement.bootstraps and chosen[operand] > chosen[number]:
                return False
    return True


def test_assignments_are_legal_and_close_to_the_best() -> None:
    """The search is local: it finds the best of all assignments in nearly all cases, and is never worse than
    one ring."""
    best = 0
    for seed in range(60):
        rings = chain(np.random.default_rng(seed))
        chosen = rings.assign()
        assert legal(rings, chosen)
        numbers = list(rings.problem.graph.nodes)
        everything = (
            dict(zip(numbers, choice, strict=True))
            for choice in itertools.product(range(3), repeat=len(numbers))
        )
        least = min(rings.seconds(other) for other in everything if legal(rings, other))
        assert rings.seconds(chosen) <= rings.seconds(dict.fromkeys(numbers, 0))
        best += rings.seconds(chosen) <= least * (1 + 1e-12)
    assert best >= 57


def test_an_input_that_a_bootstrap_gives_is_in_the_first_ring() -> None:
    rings = dataclasses.replace(chain(np.random.default_rng(1)), between_stages=True)
    assert rings.assign()[0] == 0


@pytest.fixture(scope="module")
def network(build: Build) -> onnx.ModelProto:
    """A convolutional network: 8 channels of 8 x 8, then 16 of 4 x 4, with squares."""
    rng = np.random.default_rng(3)
    node = helper.make_node

    def weights(*shape: int) -> np.ndarray:
        return np.asarray(rng.normal(size=shape) / np.sqrt(np.prod(shape[1:])), np.float32)

    nodes = [
        node("Conv", ["x", "a"], ["c0"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Mul", ["c0", "c0"], ["s0"]),
        node("Conv", ["s0", "b"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Mul", ["c1", "c1"], ["s1"]),
        node("Conv", ["s1", "c"], ["c2"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", ["c2", "s1"], ["r2"]),
        node("Mul", ["r2", "r2"], ["s2"]),
        node("GlobalAveragePool", ["s2"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "d", "e"], ["y"], transB=1),
    ]
    constants = {
        "a": weights(8, 2, 3, 3),
        "b": weights(16, 8, 3, 3),
        "c": weights(16, 16, 3, 3),
        "d": weights(5, 16),
        "e": weights(5),
    }
    return build(nodes, (2, 8, 8), constants, batch=1)


def target(rings: tuple[Ring, ...] = ()) -> compiler.Target:
    return compiler.Target(
        slots=512, levels=7, bootstraps=(compiler.Bootstrap(512, 2, 7, preset="any"),), rings=rings
    )


def small_rings() -> tuple[Ring, ...]:
    row = [tuple(scale * (level + 1.0) for level in range(9)) for scale in (1.0, 0.5, 0.3)]
    table = [CostTable(r, r, r, r, (100.0, 100.0)) for r in row]
    return (
        Ring(11, 8, table[0]),
        Ring(10, 6, table[1], 0.7),
        Ring(9, 4, table[2], 0.5),
    )


def test_a_program_in_several_rings_computes_the_same(network: onnx.ModelProto, tmp_path: Path) -> None:
    calibration = np.random.default_rng(4).uniform(-1, 1, (4, 2, 8, 8))
    one = compiler.compile_program(network, target(), compiler.Fit(calibration=calibration))
    several = compiler.compile_program(network, target(small_rings()), compiler.Fit(calibration=calibration))
    assert {0, 10, 9} <= set(several.rings.values()) | {several.input.log_n}
    assert any(step.opcode == "switch_ring" for step in several.instructions)
    assert {option.input_log_n for option in several.operands.bootstraps} <= {9, 10}
    assert len(several.operands.bootstraps) == 1
    assert {switch.log_n for switch in several.key_switches} <= {0, 9, 10}
    for sample in calibration:
        # Sums of at most a thousand terms of order 1, in another order.
        assert np.abs(run_clear(one, sample) - run_clear(several, sample)).max() <= 2.0**-40
    compiler.save(several, tmp_path / "several.kwp")
    loaded = compiler.load(tmp_path / "several.kwp")
    assert (loaded.instructions, loaded.operands.bootstraps) == (
        several.instructions,
        several.operands.bootstraps,
    )
    assert loaded.rings == several.rings
    assert np.array_equal(run_clear(loaded, calibration[0]), run_clear(several, calibration[0]))


def test_one_output_level_is_chosen_for_all_bootstraps(network: onnx.ModelProto) -> None:
    """The fastest one among those for which a placement exists."""
    calibration = np.random.default_rng(4).uniform(-1, 1, (4, 2, 8, 8))
    for low, high, chosen in ((5.0, 1000.0, 4), (1000.0, 5.0, 7)):
        options = (compiler.Bootstrap(512, 2, 4, seconds=low), compiler.Bootstrap(512, 2, 7, seconds=high))
        several = dataclasses.replace(target(small_rings()), bootstraps=options)
        program = compiler.compile_program(network, several, compiler.Fit(calibration=calibration))
        assert {option.output_level for option in program.operands.bootstraps} == {chosen}
    impossible = (compiler.Bootstrap(512, 2, 3), compiler.Bootstrap(512, 2, 7))
    program = compiler.compile_program(
        network, dataclasses.replace(target(), bootstraps=impossible), compiler.Fit(calibration=calibration)
    )
    assert {option.output_level for option in program.operands.bootstraps} == {7}


def test_the_clear_back_end_refuses_what_does_not_repeat() -> None:
    backend = runtime.ClearBackend(8)
    with pytest.raises(OperandError, match="do not repeat after 4"):
        backend.switch_ring(backend.encrypt(np.arange(8.0), 1), 3)
    small = backend.switch_ring(backend.encrypt(np.tile(np.arange(4.0), 2), 1), 3)
    assert (small.log_n, small.values.tolist()) == (3, [0.0, 1.0, 2.0, 3.0])
    assert backend.switch_ring(small, 0).values.tolist() == [0.0, 1.0, 2.0, 3.0] * 2
    with pytest.raises(OperandError, match="to itself"):
        backend.switch_ring(small, 3)
    with pytest.raises(OperandError, match="one ring"):
        backend.add(small, backend.encrypt(np.zeros(8), 1))
