"""Orders in which the compiler can compute products of a softmax, compared with NumPy and with each other."""

from dataclasses import dataclass, replace
from math import inf
from types import SimpleNamespace
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.compiler import compiler as compiler_module
from keywright.compiler.approximating import ApproximatedModel
from keywright.compiler.compiler import compile_forms
from keywright.compiler.graph import graph as graphs
from keywright.compiler.graph import joint
from keywright.compiler.graph.commuting import FACTOR_LAST, MERGED, SUMS_EVERYWHERE, Form, forms
from keywright.compiler.graph.graph import Activation, Graph, Input, Linear, Multiply, joint_sums
from keywright.compiler.graph.sparse import SparseMatrix
from keywright.compiler.placement.bounding import largest_values
from keywright.errors import ModelRefusedError, OutOfMemoryError
from keywright.errors.refusals.sizes import too_wide
from keywright.model.executable import Executable
from keywright.model.parameters.parameter_choice import FORM_SLOWER, Compilation
from keywright.plan.cost.calibration import stored_model
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.search.network_planner import SLOWER
from keywright.program.arrays import Vector
from keywright.runtime import run_clear
from onnx import NodeProto, helper
from tests.compiler.conftest import build_model

TARGET = compiler.Target(slots=1 << 13, levels=60)
ROUNDING = 1e-9
ERROR = 0.02
"""Of polynomials, relative to the largest result."""


@dataclass(frozen=True)
class Case:
    """One head's softmax of products of queries (rows, width) and keys (columns, width), times values
    (columns, values)."""

    heads: int
    rows: int
    columns: int
    width: int
    values: int
    mask: str = "none"
    values_first: bool = False
    batch: int = 1

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        return [
            (self.heads, self.rows, self.width),
            (self.heads, self.columns, self.width),
            (self.heads, self.columns, self.values),
        ]

    @property
    def hidden(self) -> Vector:
        """What is added to the products of queries and keys, (rows, columns)."""
        added = np.zeros((self.rows, self.columns))
        if self.mask == "causal":
            added[np.tri(self.rows, self.columns, dtype=bool) == 0] = -np.inf
        elif self.mask == "columns":
            added[:, -1] = -np.inf
        elif self.mask == "places":
            added[np.arange(self.rows), np.arange(self.rows) * 2 % self.columns] = -np.inf
        return added

    def nodes(self) -> list[NodeProto]:
        node = helper.make_node
        nodes = [node("Split", ["x", "sizes"], ["q0", "k0", "v0"], axis=1)]
        nodes += [node("Reshape", [f"{name}0", f"{name}_shape"], [name]) for name in "qkv"]
        nodes += [node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2])]
        nodes += [node("MatMul", ["q", "kt"], ["s"]), node("Add", ["s", "mask"], ["m"])]
        nodes += [node("Softmax", ["m"], ["p"], axis=-1)]
        if self.values_first:
            nodes += [node("Transpose", ["p"], ["pt"], perm=[0, 1, 3, 2])]
            nodes += [
                node("Transpose", ["v"], ["vt"], perm=[0, 1, 3, 2]),
                node("MatMul", ["vt", "pt"], ["z"]),
            ]
        else:
            nodes += [node("MatMul", ["p", "v"], ["z"])]
        return [*nodes, node("Mul", ["z", "half"], ["y"])]

    def constants(self) -> dict[str, Any]:
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        shapes = {f"{n}_shape": np.array([0, *shape]) for n, shape in zip("qkv", self.shapes, strict=True)}
        mask, half = self.hidden.astype(np.float32), np.float32(0.5)
        return {"sizes": np.array(sizes), "mask": mask, "half": half, **shapes}

    def expected(self, samples: Vector) -> Vector:
        """By loops over samples and heads."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        results = []
        for sample in samples:
            parts = np.split(sample, ends[:-1])
            q, k, v = (part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True))
            for head in range(self.heads):
                powers = np.exp(q[head] @ k[head].T + self.hidden)
                product = powers / powers.sum(axis=1, keepdims=True) @ v[head]
                results.append(0.5 * (product.T if self.values_first else product).ravel())
        return np.asarray(results).reshape(len(samples), -1)


CASES = [
    Case(1, 8, 8, 4, 4),
    Case(2, 6, 6, 8, 5, "causal"),
    Case(3, 4, 10, 6, 7, "columns"),
    Case(2, 9, 4, 3, 8, "places", values_first=True),
    Case(2, 16, 16, 16, 16, "places"),
    Case(2, 8, 8, 4, 6, batch=4),
    Case(1, 5, 7, 2, 3, "causal", values_first=True, batch=2),
]


def approximated(case: Case) -> tuple[ApproximatedModel, Vector]:
    """A model with fine polynomials, and its samples, (count, features)."""
    size = sum(int(np.prod(shape)) for shape in case.shapes)
    samples = np.random.default_rng(5).normal(size=(40, size)) * 0.6
    model = build_model(case.nodes(), (size,), case.constants(), opset=20)
    return compiler.approximate(model, compiler.Fit(calibration=samples, error=ERROR / 4)), samples


def test_runs_on_samples_have_the_bits_of_single_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joint elements are summed a few at a time; of each of them, the least and the largest are kept."""
    monkeypatch.setattr(joint, "BLOCK", 64)
    summed = 0
    for case in CASES[:4]:
        model, samples = approximated(case)
        for graph in (form.graph for form in model.forms):
            sums = joint_sums(graph)
            inner, summed = {number for each in sums.values() for number in each.inner}, summed + len(sums)
            for count in (1, 7):
                sizes = sum(int(np.prod(node.shape)) for node in graph.nodes.values())
                monkeypatch.setattr(graphs, "CHUNK_BYTES", 8 * count * sizes)
                ends: dict[int, tuple[list[float], list[float]]] = {number: ([], []) for number in inner}
                for chunk, values in graph.runs(samples):
                    for number, exact in graph.evaluate(samples[chunk]).items():
                        if number in inner:
                            for place, of in enumerate((exact, values[number])):
                                ends[number][place].extend((of.min(), of.max()))
                        else:
                            assert np.array_equal(values[number], exact)
                for expected, known in ends.values():
                    assert (min(known), max(known)) == (min(expected), max(expected))
    assert summed > 2 * len(CASES[:4])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_order_computes_the_same(case: Case) -> None:
    model, samples = approximated(case)
    expected, exact = case.expected(samples), model.graph.evaluate(samples)[model.graph.output]
    assert len(model.forms) > 1
    for form in model.forms:
        values = form.graph.evaluate(samples)
        assert np.abs(values[form.graph.output] - exact).max() < ROUNDING
        seen = largest_values(form.graph, form.run.samples)
        assert {n: pytest.approx(peak, rel=ROUNDING) for n, peak in seen.items()} == dict(form.largest)
        target = replace(TARGET, batch=case.batch)
        outputs = run_clear(compiler.compile_program(form, target), samples[: case.batch])
        error = np.abs(outputs.reshape(case.batch, -1) - expected[: case.batch]).max()
        assert error < ERROR * np.abs(expected).max()


def test_the_order_is_chosen_by_seconds_and_named() -> None:
    model, _ = approximated(Case(2, 16, 16, 32, 32))
    each = [compiler.compile_program(form, TARGET).seconds for form in model.forms]
    program = compiler.compile_program(model, TARGET)
    assert program.seconds == min(each) < each[0]
    assert [form.seconds for form in compile_forms(model, TARGET, slower=inf)] == sorted(each)
    second = sorted(each)[1] / min(each)
    for slower, count in ((second * (1 - ROUNDING), 1), (second * (1 + ROUNDING), 2)):
        assert len([*compile_forms(model, TARGET, slower=slower)]) == count
    names = {layer.name for layer in program.layers}
    assert all(any(order in name for name in names) for order in (FACTOR_LAST, SUMS_EVERYWHERE))
    assert model.depth == min(form.graph.depth() for form in model.forms) < model.graph.depth()


def compiled(case: Case) -> tuple[kw.Model, Vector]:
    """A model with fine polynomials in a small ring, and its samples, (count, features)."""
    model, samples = approximated(case)
    source = build_model(case.nodes(), samples.shape[1:], case.constants(), opset=20)
    parameters = kw.Parameters.from_bits(12, [50] + [40] * model.graph.depth(), [50] * 4, 40, insecure=True)
    return kw.compile(source, samples, parameters=parameters, error=ERROR / 4, batch=1), samples


def test_every_order_agrees_encrypted() -> None:
    """Within the error of encryption that is predicted for it, and a factor of 4 that the prediction has."""
    model, samples = compiled(Case(1, 4, 4, 4, 4, "causal"))
    assert model.compilation is not None
    orders = [*model.compilation.in_every_form(1)]
    assert len(orders) == 3
    for order in orders:
        each = kw.Model.of(order, model.compilation)
        simulation = each.simulate(samples[:1])
        predicted = np.abs(simulation.noisy - simulation.outputs).max()
        error = np.abs(each.predict(samples[:1]) - run_clear(each.program, samples[:1])).max()
        assert 0 < error < 4 * predicted < ERROR


def test_a_limit_on_keys_takes_the_fastest_order_within_it() -> None:
    model, _ = compiled(Case(2, 6, 6, 8, 5))
    assert model.compilation is not None
    plans = [each.plan for form in model.compilation.in_every_form(1) for each in form.candidates]
    sizes = sorted({plan.stored_bytes for plan in plans})
    for most in (sizes[0], sizes[len(sizes) // 2], sizes[-1]):
        chosen = model.with_keys_within(most).execution.plan
        possible = [predict_plan(plan, stored_model()).seconds for plan in plans if plan.stored_bytes <= most]
        assert chosen.stored_bytes <= most
        assert predict_plan(chosen, stored_model()).seconds == min(possible)
    with pytest.raises(OutOfMemoryError, match="allow at least") as refusal:
        model.with_keys_within(sizes[0] - 1)
    assert refusal.value.needed == sizes[0]


@pytest.mark.parametrize(
    ("imprecise", "chosen"), [((), 1), ((1,), 2), ((0, 1, 2), 3), ((0, 1, 2, 3), 4), ((0, 1, 2, 3, 4), 1)]
)
def test_keys_decide_between_orders_of_nearly_equal_time(imprecise: tuple[int, ...], chosen: int) -> None:
    """Three are near. Those whose errors are too large are only taken if there is no other. Keys of a faster
    one may take the time that a slower one takes."""
    orders = [
        SimpleNamespace(
            execution=SimpleNamespace(plan=SimpleNamespace(stored_bytes=size)),
            program=SimpleNamespace(seconds=seconds),
            key_frontier=SimpleNamespace(slower=SLOWER),
        )
        for size, seconds in ((5, 1.0), (3, 1.01), (4, FORM_SLOWER), (9, 2.0), (2, 3.0))
    ]
    compilation: Any = Compilation(SimpleNamespace(forms=orders))  # type: ignore[arg-type]
    compilation._forms = lambda choice, batching, slower: iter(orders if slower == inf else orders[:3])
    compilation.follows = lambda order: orders.index(order) not in imprecise
    assert compilation._program(None, None) is orders[chosen]
    limits = [order.key_frontier.slower * order.program.seconds for order in orders[:3]]
    assert limits == pytest.approx([FORM_SLOWER * SLOWER] * 3)


def test_a_limit_on_keys_takes_an_order_that_meets_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = compiled(Case(1, 4, 4, 4, 4))
    most = 1 << 40
    fastest = model.with_keys_within(most)
    follows = Compilation.follows

    def others(compilation: Compilation, program: Executable, *options: Any) -> bool:
        return program.program.depth != fastest.program.depth and follows(compilation, program, *options)

    monkeypatch.setattr(Compilation, "follows", others)
    assert model.with_keys_within(most).program.depth != fastest.program.depth


def test_an_order_whose_diagonals_are_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = approximated(Case(1, 4, 4, 4, 4))
    depths = [program.depth for program in compile_forms(model, TARGET, slower=inf)]
    refusals = [ModelRefusedError([too_wide(2, 1)]) for _ in range(2)]
    require = compiler_module._assembled

    def assembled(*arguments: Any) -> compiler.Program:
        if refusals:
            raise refusals.pop()
        return require(*arguments)

    monkeypatch.setattr(compiler_module, "_assembled", assembled)
    assert [program.depth for program in compile_forms(model, TARGET, slower=inf)] == depths[2:]
    refusals += [ModelRefusedError([too_wide(2, 1)]) for _ in range(3)]
    with pytest.raises(ModelRefusedError, check=lambda refusal: refusal.codes == {"diagonals"}):
        compiler.compile_program(model, TARGET)


def test_the_refusal_names_what_other_parameters_can_mend() -> None:
    """The form of the fewest levels fits them, and its diagonals are too large. Others are too deep."""
    model, _ = approximated(Case(1, 8, 8, 4, 4))
    depths = sorted(form.graph.depth() for form in model.forms)
    target = replace(TARGET, levels=depths[0])
    with pytest.raises(ModelRefusedError) as refusal:
        compiler.compile_program(model, target, max_plaintext_bytes=1 << 13)
    assert refusal.value.codes == {"depth"}
    assert [reason.needed for reason in refusal.value.reasons] == [depths[1]]


@pytest.mark.parametrize(("zero", "bounded"), [("wv", False), ("wo", False), ("wo", True)])
def test_attention_behind_which_all_is_zero_compiles(zero: str, *, bounded: bool) -> None:
    """Empty matrices, as of pruned heads."""
    node, random = helper.make_node, np.random.default_rng(1)
    weights: dict[str, Any] = {f"w{name}": random.normal(size=(4, 4)) / 2 for name in "qkvo"}
    weights[zero] = np.zeros((4, 4))
    nodes = [node("MatMul", ["x", f"w{name}"], [name]) for name in "qkv"]
    nodes += [node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"])]
    nodes += [node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["z"])]
    nodes += [node("MatMul", ["z", "wo"], ["o"]), node("Tanh" if bounded else "Identity", ["o"], ["b"])]
    source = build_model([*nodes, node("Add", ["b", "x"], ["y"])], (4, 4), weights, opset=20)
    samples = random.normal(size=(40, 4, 4))
    program = compiler.compile_program(source, TARGET, compiler.Fit(calibration=samples))
    assert run_clear(program, samples[:1]).reshape(4, 4) == pytest.approx(samples[0], abs=1e-6)


def test_maps_of_small_products_are_merged_if_levels_are_few() -> None:
    """Only the form without separate maps fits."""
    model, _ = approximated(Case(1, 4, 4, 4, 4))
    levels = model.depth
    deeper = [form.graph.depth() for form in model.forms[:-1]]
    assert levels < min(deeper)
    program = compiler.compile_program(model, compiler.Target(slots=1 << 13, levels=levels))
    assert program.depth == levels
    assert any(layer.name.endswith(MERGED) for layer in program.layers)
    with pytest.raises(ModelRefusedError, match=f"{levels} levels"):
        compiler.compile_program(model, compiler.Target(slots=1 << 13, levels=levels - 1))


SUM = SparseMatrix.from_distinct((1, 4), np.array([0, 0]), np.array([0, 1]), np.ones(2))
"""Of two elements of one row."""
MIXED = SparseMatrix.from_distinct((1, 4), np.array([0, 0]), np.array([1, 2]), np.ones(2))
"""Of elements of both rows, whose inverses differ."""
WEIGHTED = SparseMatrix.from_distinct((1, 4), np.array([0, 0]), np.array([0, 1]), np.array([1.0, 2.0]))
"""As in a layer with weights, behind which results are larger or as large."""
EMPTY = SparseMatrix.from_distinct((1, 4), np.arange(0), np.arange(0), np.zeros(0))
SINGLE = SparseMatrix.from_distinct((1, 4), np.array([0]), np.array([2]), np.ones(1))


def equal_forms(factors: Vector, others: int, last: SparseMatrix) -> list[Form]:
    """Compare the forms of a softmax of two rows of two elements, whose inverses are spread with factors,
    with further products and a linear map behind it."""
    rows, graph = np.array([0, 0, 1, 1]), Graph()
    source = graph.add(Input((4,)))
    powers = graph.add(Activation((4,), (source,), np.exp, "Exp", "e"))
    totals = SparseMatrix.from_distinct((2, 4), rows, np.arange(4), np.ones(4))
    total = graph.add(Linear((2,), (powers,), (totals,), np.zeros(2)))
    inverse = graph.add(Activation((2,), (total,), np.reciprocal, "Reciprocal", "r"))
    spread = SparseMatrix((4, 2), np.arange(4), rows, factors)
    shared = graph.add(Linear((4,), (inverse,), (spread,), np.zeros(4)))
    product = graph.add(Multiply((4,), (powers, shared)))
    for _ in range(others):
        product = graph.add(Multiply((4,), (product, source)))
    size = last.shape[0]
    graph.output = graph.add(Linear((size,), (product,), (last,), np.zeros(size), label="mix"))
    sample = np.array([0.3, -0.2, 0.5, 0.1])
    results = [*forms(graph)]
    for form in results:
        value = form.graph.evaluate(sample)[form.graph.output]
        assert value == pytest.approx(graph.evaluate(sample)[graph.output], rel=1e-12)
    return results


def test_entries_that_are_zero_hide_places() -> None:
    """Matrices may state zeros as entries."""
    results = equal_forms(np.array([1.0, 0.0, 1.0, 1.0]), 0, SparseMatrix.diagonal(np.ones(4)))
    assert len(results) > 1


@pytest.mark.parametrize(
    ("sums", "others", "moves"),
    [
        (SUM, 1, True),
        (SUM, 0, False),
        (MIXED, 1, False),
        (WEIGHTED, 1, False),
        (EMPTY, 1, False),
        (SINGLE, 1, False),
    ],
)
def test_a_factor_moves_behind_sums_of_products_that_share_it(
    sums: SparseMatrix, others: int, *, moves: bool
) -> None:
    results = equal_forms(np.ones(4), others, sums)
    labels = [getattr(node, "label", "") for node in results[-1].graph.nodes.values()]
    assert any(FACTOR_LAST in label for label in labels) == moves
