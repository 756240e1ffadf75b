"""Placement of bootstraps: the search compared with every choice, and unplaceable networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.graph.graph import Add, Graph, Input, Linear, Multiply, Node, levels_consumed
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.layout.layer_work import LayerWork
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.placement import LevelLimits, Problem, assign_levels, place
from keywright.errors import ModelRefusedError, OutOfRangeError, ParameterError, RefusalError
from keywright.runtime import run_clear
from onnx import helper

Build = Callable[..., onnx.ModelProto]
node = helper.make_node
SHAPE = (1,)
FLAT = (1.0, 1.0)
ONE = SparseMatrix.diagonal(np.ones(1))


def linear(*sources: int, label: str = "") -> Linear:
    return Linear(SHAPE, sources, (ONE,) * len(sources), np.zeros(1), label=label)


def random_costs(rng: np.random.Generator) -> CostTable:
    return CostTable(*(tuple(np.cumsum(rng.uniform(0.1, 2, 9)).tolist()) for _ in range(5)))


def random_graph(rng: np.random.Generator) -> Graph:
    """A chain with products, diamonds (a branch beside a shortcut or another layer), joins of both kinds."""
    graph = Graph({0: Input(SHAPE)}, 0)
    value = 0

    def layer(source: int) -> int:
        chosen: Node = linear(source) if rng.integers(2) else Multiply(SHAPE, (source, source))
        return graph.add(chosen)

    while len(graph.nodes) < 5:
        if rng.integers(3):
            value = layer(value)
            continue
        branch = layer(value)
        if rng.integers(2):
            branch = layer(branch)
        shortcut = layer(value) if rng.integers(2) else value
        join: Node = Add(SHAPE, (branch, shortcut)) if rng.integers(2) else linear(branch, shortcut)
        value = graph.add(join)
    graph.output = value
    return graph.renumbered()


def random_problem(rng: np.random.Generator) -> Problem:
    graph = random_graph(rng)
    work = {
        number: LayerWork(int(rng.integers(3)), int(rng.integers(3)), 1, (1,) * int(isinstance(n, Multiply)))
        for number, n in graph.nodes.items()
    }
    options = [compiler.Bootstrap(1, 1, int(rng.integers(3, 7))) for _ in range(rng.integers(1, 3))]
    return Problem(
        graph,
        work,
        {number: int(rng.integers(1, 3)) for number in graph.nodes},
        options,
        {number: float(rng.choice([0.5, 0.5, 0.5, 2.0])) for number in graph.nodes},
        LevelLimits(6, int(rng.integers(3, 7)), 1),
        random_costs(rng),
    )


def seconds_of(problem: Problem, bootstraps: dict[int, int]) -> float | None:
    """Return the time of a choice of bootstraps, or None if levels do not suffice."""
    levels, needs = assign_levels(problem, bootstraps)
    total = 0.0
    for number, value in problem.graph.nodes.items():
        if isinstance(value, Input):
            if number in bootstraps or needs[number] > problem.limits.input:
                return None
            continue
        if levels[number] + levels_consumed(value) > problem.limits.highest:
            return None
        if number in bootstraps:
            option = problem.options[bootstraps[number]]
            if option.output_level < needs[number] or problem.largest[number] > 1:
                return None
            total += problem.bootstrap_seconds(number, option)
        total += problem.seconds(number, levels[number])
    return total


def every_choice(problem: Problem) -> float | None:
    """Return the least time over all choices, by trying them."""
    numbers = list(problem.graph.nodes)
    best = None
    for picks in itertools.product([None, *range(len(problem.options))], repeat=len(numbers)):
        chosen = {number: pick for number, pick in zip(numbers, picks, strict=True) if pick is not None}
        total = seconds_of(problem, chosen)
        if total is not None and (best is None or total < best):
            best = total
    return best


def test_the_search_finds_the_cheapest_of_all_choices() -> None:
    solved = bootstrapped = refused = 0
    for seed in range(60):
        problem = random_problem(np.random.default_rng(seed))
        best = every_choice(problem)
        if best is None:
            with pytest.raises(RefusalError, check=lambda error: error.code == "placement"):
                place(problem)
            refused += 1
            continue
        placement = place(problem)
        assert placement.seconds == pytest.approx(best, rel=1e-12)
        assert seconds_of(problem, dict(placement.bootstraps)) == pytest.approx(best, rel=1e-12)
        solved += 1
        bootstrapped += bool(placement.bootstraps)
    # The sample has all cases in it.
    assert solved > 10
    assert bootstrapped > 5
    assert refused > 2


def flat_costs(bootstrap: float) -> CostTable:
    return CostTable(FLAT, FLAT, FLAT, FLAT, (bootstrap, bootstrap))


def chain(length: int) -> Graph:
    graph = Graph({0: Input(SHAPE)}, length)
    for number in range(length):
        graph.add(linear(number, label=f"layer{number + 1}"))
    return graph


def chain_problem(length: int, largest: dict[int, float], levels: int = 3) -> Problem:
    graph = chain(length)
    return Problem(
        graph,
        {number: LayerWork(rotations=1) for number in graph.nodes},
        dict.fromkeys(graph.nodes, 1),
        [compiler.Bootstrap(1, 1, 3)],
        {number: largest.get(number, 0.5) for number in graph.nodes},
        LevelLimits(levels, levels, 1),
        flat_costs(10.0),
    )


def test_a_chain_takes_the_fewest_bootstraps() -> None:
    placement = place(chain_problem(7, {}))
    # 2 levels, then 2 for every bootstrap: 7 layers take 3.
    assert len(placement.bootstraps) == 3
    assert placement.seconds == 7 + 3 * 10


def test_a_value_above_one_is_not_bootstrapped() -> None:
    assert 2 in place(chain_problem(4, {1: 2.0})).bootstraps
    with pytest.raises(
        RefusalError, match=r"layer2.*\(2\)", check=lambda error: error.code == "placement"
    ) as caught:
        place(chain_problem(6, {2: 2.0, 3: 2.0}))
    assert set(caught.value.details["unbounded"]) == {"layer2", "layer3"}


def test_a_layer_that_no_bootstrap_reaches_is_named() -> None:
    with pytest.raises(RefusalError, match="layer1", check=lambda error: error.code == "placement") as caught:
        place(chain_problem(3, {1: 2.0, 2: 2.0}))
    assert (caught.value.details["layer"], caught.value.details["need"]) == ("layer1", 3)


def test_costs_must_rise_with_the_level() -> None:
    with pytest.raises(
        ParameterError, match=r"rotation costs 1\.0 at level 1", check=lambda error: error.code == "costs"
    ):
        CostTable((2.0, 1.0), FLAT, FLAT, FLAT, FLAT)
    for bad in ((1.0,), (1.0, float("nan")), (0.0, 1.0), (1.0,) * 200):
        with pytest.raises(ParameterError, match="bootstrap", check=lambda error: error.code == "costs"):
            CostTable(FLAT, FLAT, FLAT, FLAT, bad)
    shipped = CostTable.default()
    assert shipped.seconds(LayerWork(rotations=1), 30) > shipped.seconds(LayerWork(rotations=1), 3) > 0


def test_bootstraps_that_contradict_themselves() -> None:
    for slots, low, high, seconds in ((4, 2, 2, None), (4, -1, 2, None), (3, 1, 2, None), (4, 1, 2, 0.0)):
        with pytest.raises(ParameterError, check=lambda error: error.code == "bootstrap"):
            compiler.Bootstrap(slots, low, high, seconds)


@pytest.fixture(scope="module")
def deep(build: Build) -> onnx.ModelProto:
    """x^16 of a matrix product: 5 levels."""
    rng = np.random.default_rng(2)
    return build(
        [
            node("MatMul", ["x", "w"], ["h"], "first"),
            node("Pow", ["h", "four"], ["p"], "inner"),
            node("MatMul", ["p", "v"], ["q"], "second"),
            node("Pow", ["q", "four"], ["y"], "outer"),
        ],
        (4,),
        {
            "w": rng.normal(size=(4, 4)).astype(np.float32),
            "v": rng.normal(size=(4, 4)).astype(np.float32),
            "four": np.float32(4),
        },
    )


SAMPLES = np.random.default_rng(3).uniform(-1, 1, (20, 4))


def test_a_compiled_program_bootstraps_values_of_at_most_one(deep: onnx.ModelProto) -> None:
    program = compiler.compile_program(
        deep,
        compiler.Target(slots=4, levels=4, bootstraps=(compiler.Bootstrap(4, 1, 4),)),
        compiler.Fit(calibration=SAMPLES, ranges=compiler.Ranges(headroom=1.5)),
    )
    operations = [step.opcode for step in program.instructions]
    assert (program.depth, program.input.level, program.output.level) == (6, 4, 1)
    assert operations.count("bootstrap") == 1
    report = compiler.check(program, SAMPLES, deep)
    # onnxruntime computes in single precision: 2^-24 in each of few operations, and fourth powers twice.
    assert np.abs(report.outputs / report.expected - 1).max() < 16 * 8 * 2**-24
    with pytest.raises(OutOfRangeError) as caught:
        run_clear(program, 20 * SAMPLES[0])
    assert caught.value.value > 1


def test_without_need_there_are_no_bootstraps(deep: onnx.ModelProto) -> None:
    program = compiler.compile_program(
        deep,
        compiler.Target(slots=4, levels=9, bootstraps=(compiler.Bootstrap(4, 1, 9),)),
        compiler.Fit(calibration=SAMPLES),
    )
    assert program.operands.bootstraps == ()
    assert program.input.level == 7


def test_what_the_compiler_refuses(deep: onnx.ModelProto) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(
            deep, compiler.Target(slots=4, levels=4, bootstraps=(compiler.Bootstrap(4, 1, 4),))
        )
    assert caught.value.codes == {"ranges"}
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(deep, compiler.Target(slots=4, levels=4), compiler.Fit(calibration=SAMPLES))
    assert caught.value.codes == {"depth"}
    with pytest.raises(ParameterError, match="slots", check=lambda error: error.code == "bootstrap"):
        compiler.Target(slots=4, levels=4, bootstraps=(compiler.Bootstrap(8, 1, 4),))
    with pytest.raises(
        ParameterError, match="above the highest", check=lambda error: error.code == "bootstrap"
    ):
        compiler.Target(slots=4, levels=4, bootstraps=(compiler.Bootstrap(4, 1, 5),))
    with pytest.raises(ValueError, match="headroom"):
        compiler.Ranges(headroom=0.5)


def test_a_polynomial_deeper_than_a_bootstrap_is_named(build: Build) -> None:
    model = build(
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Tanh", ["h"], ["t"], "squash"),
            node("MatMul", ["t", "w"], ["y"]),
        ],
        (4,),
        {"w": np.eye(4, dtype=np.float32)},
    )
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(
            model,
            compiler.Target(slots=4, levels=4, bootstraps=(compiler.Bootstrap(4, 1, 4),)),
            compiler.Fit(calibration=SAMPLES, activations={"tanh": "chebyshev:31"}),
        )
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "placement"
    assert "squash" in reason.details["layer"]
    assert reason.details["consumed"] == 5
