"""Products of encrypted tensors, softmax inside a model, and attention, beside ONNX's reference."""

import re
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.front_ends.operators.attention.softmax import MOST_HALVINGS
from keywright.compiler.graph.convolution import Convolution
from keywright.compiler.graph.graph import Linear
from keywright.errors import ModelRefusedError, RefusalError
from keywright.plan import KeyFrontier
from keywright.program.file import storage
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from onnx import helper
from tests.ciphertexts import decrypt_result, encrypt_sample
from tests.compiler.attention.layers import RNG, TARGET, agree, attention_layer, compiled, node, reference
from tests.compiler.conftest import build_model, require_equal_programs

SHAPES = [(3, 4, 3), (4, 4, 4), (1, 5, 1), (5, 1, 5), (2, 7, 6), (6, 3, 2), (8, 8, 3)]


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
@pytest.mark.parametrize("stack", [1, 3])
def test_products_of_encrypted_matrices(rows: int, inner: int, columns: int, stack: int) -> None:
    size = stack * inner * (rows + columns)
    cut = stack * rows * inner
    nodes = [
        node("Slice", ["x", "zero", "cut", "one"], ["left"]),
        node("Slice", ["x", "cut", "size", "one"], ["right"]),
        node("Reshape", ["left", "as_left"], ["a"]),
        node("Reshape", ["right", "as_right"], ["b"]),
        node("MatMul", ["a", "b"], ["y"]),
    ]
    constants = {
        "zero": np.array([0]),
        "cut": np.array([cut]),
        "size": np.array([size]),
        "one": np.array([1]),
        "as_left": np.array([0, stack, rows, inner]),
        "as_right": np.array([0, stack, inner, columns]),
    }
    agree(*compiled(nodes, (size,), constants))


@pytest.mark.parametrize("slots", [1 << 8, 1 << 13])
@pytest.mark.parametrize(
    ("rows", "inner", "columns", "back"), [(16, 16, 16, 16), (12, 16, 8, 24), (15, 16, 15, 8), (9, 32, 27, 9)]
)
def test_products_of_products(rows: int, inner: int, columns: int, back: int, slots: int) -> None:
    """The second product reads the first as it is stored: by diagonals of any number, in one ciphertext or
    in many."""
    shapes = {"left": (rows, inner), "middle": (inner, columns), "right": (columns, back)}
    nodes, ends, constants = [], [0], {"one": np.array([1])}
    for name, shape in shapes.items():
        ends.append(ends[-1] + 2 * shape[0] * shape[1])
        constants |= {f"{name}_begin": np.array([ends[-2]]), f"{name}_end": np.array([ends[-1]])}
        constants |= {f"{name}_shape": np.array([0, 2, *shape])}
        nodes += [
            node("Slice", ["x", f"{name}_begin", f"{name}_end", "one"], [f"{name}_flat"]),
            node("Reshape", [f"{name}_flat", f"{name}_shape"], [name]),
        ]
    nodes += [node("MatMul", ["left", "middle"], ["first"]), node("MatMul", ["first", "right"], ["y"])]
    target = compiler.Target(slots=slots, levels=60)
    agree(*compiled(nodes, (ends[-1],), constants, size=0.3, target=target))


@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [
        ("bhid,bhjd->bhij", (2, 4, 3), (2, 4, 3)),
        ("bihd,bjhd->bhij", (4, 2, 3), (5, 2, 3)),
        ("bi,bj->bij", (3,), (4,)),
        ("bij,bij->b", (3, 4), (3, 4)),
        ("bij,bij->bji", (3, 4), (3, 4)),
        ("bij,bjk", (3, 4), (4, 2)),
    ],
)
def test_einsum_of_encrypted_values(equation: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    sizes = int(np.prod(first)), int(np.prod(second))
    nodes = [
        node("Split", ["x", "sizes"], ["l", "r"], axis=1),
        node("Reshape", ["l", "first"], ["a"]),
        node("Reshape", ["r", "second"], ["b"]),
        node("Einsum", ["a", "b"], ["y"], equation=equation),
    ]
    constants = {
        "sizes": np.array(sizes),
        "first": np.array([0, *first]),
        "second": np.array([0, *second]),
    }
    # Without an arrow, the letter of the samples is summed over: of one, if the model takes one.
    model = build_model(nodes, (sum(sizes),), constants, batch="batch" if "->" in equation else 1)
    samples = RNG.normal(size=(4, sum(sizes))).astype(np.float32)
    program = compiler.compile_program(model, TARGET)
    for sample in samples:
        expected = reference(model, sample[None])
        assert np.abs(run_clear(program, sample).ravel() - expected.ravel()).max() < 1e-5


@pytest.mark.parametrize(
    "equation",
    [
        *("bij,jk->bik", "bij,kj->bki", "bij,ki->kbj", "bij,ljk->bki", "bij,ij->bi", "bij,jik->bk"),
        *("bij,ikj->bik", "bij->bji", "bij->bi", "bij,k->bkj", "bij->", "bij,jkl->bkil"),
    ],
)
def test_einsum_with_a_constant_or_alone(equation: str) -> None:
    letters = equation.split("->")[0].split(",")
    sizes = {"b": 1, "i": 3, "j": 4, "k": 2, "l": 5}
    operands = ["x", "w"][: len(letters)]
    constants: dict[str, Any] = {}
    if len(letters) == 2:
        constants["w"] = RNG.normal(size=[sizes[a] for a in letters[1]]).astype(np.float32)
    model = build_model([node("Einsum", operands, ["y"], equation=equation)], (3, 4), constants, batch=1)
    sample = RNG.normal(size=(3, 4)).astype(np.float32)
    expected = reference(model, sample[None])
    outputs = run_clear(compiler.compile_program(model, TARGET), sample)
    assert np.abs(outputs.ravel() - expected.ravel()).max() < 1e-5


def test_einsum_at_every_token_stores_its_weights_once() -> None:
    """Entry by entry, the matrix would be larger than the limit."""
    weights = RNG.normal(size=(64, 1024)).astype(np.float32)
    layer = node("Einsum", ["x", "w"], ["y"], equation="btc,cd->btd")
    model = build_model([layer], (512, 64), {"w": weights})
    graph = import_model(model).graph
    value = graph.nodes[graph.output]
    assert isinstance(value, Linear)
    (matrix,) = value.matrices
    assert isinstance(matrix, Convolution)
    assert matrix.kernel.size == weights.size
    sample = RNG.normal(size=(512, 64))
    assert np.abs(matrix.apply(sample.ravel()) - (sample @ weights).ravel()).max() < 1e-9


def test_an_ellipsis_stands_for_the_other_axes() -> None:
    constants: dict[str, Any] = {"w": RNG.normal(size=(4, 2)).astype(np.float32)}
    model = build_model([node("Einsum", ["x", "w"], ["y"], equation="...j,jk->...k")], (3, 4), constants)
    sample = RNG.normal(size=(3, 4)).astype(np.float32)
    outputs = run_clear(compiler.compile_program(model, TARGET), sample)
    assert np.abs(outputs.ravel() - (sample @ constants["w"]).ravel()).max() < 1e-5


def test_weights_that_an_einsum_spreads_over_heads_are_stored_once() -> None:
    constants: dict[str, Any] = {"w": RNG.normal(size=(8, 2, 4)).astype(np.float32)}
    nodes = [node("Einsum", ["x", "w"], ["y"], equation="btd,dhe->bhte")]
    graph = import_model(build_model(nodes, (3, 8), constants)).graph
    (matrix,) = (matrix for each in graph.nodes.values() for matrix in getattr(each, "matrices", ()))
    assert isinstance(matrix, Convolution)
    assert len(matrix.values) == 64


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("bii,ij->bj", "an axis for each letter"),
    ],
)
def test_equations_that_do_not_fit_are_refused(equation: str, reason: str) -> None:
    constants: dict[str, Any] = {"w": np.ones((4, 2), np.float32)}
    with pytest.raises(ModelRefusedError, match=re.escape(reason)):
        compiler.compile_program(
            build_model([node("Einsum", ["x", "w"], ["y"], equation=equation)], (3, 4), constants), TARGET
        )


@pytest.mark.parametrize(("equation", "shape"), [("bij,jk->bik", (4, 0)), ("bij,k->bijk", (0,))])
def test_an_einsum_with_weights_without_elements_is_refused(equation: str, shape: tuple[int, ...]) -> None:
    weights: dict[str, Any] = {"w": np.ones(shape, np.float32)}
    model = build_model([node("Einsum", ["x", "w"], ["y"], equation=equation)], (3, 4), weights)
    with pytest.raises(ModelRefusedError, match="at least one element on each axis"):
        compiler.compile_program(model, TARGET)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_gemm_of_encrypted_matrices(alpha: float) -> None:
    nodes = [
        node("Squeeze", ["x", "first"], ["m"]),
        node("Gemm", ["m", "m", "m"], ["g"], alpha=alpha, beta=2.0, transB=1),
        node("Unsqueeze", ["g", "first"], ["y"]),
    ]
    model = build_model(nodes, (4, 4), {"first": np.array([0])}, batch=1)
    program = compiler.compile_program(model, TARGET)
    sample = RNG.normal(size=(1, 4, 4)).astype(np.float32)
    expected = reference(model, sample)
    assert np.abs(run_clear(program, sample[0]).ravel() - expected.ravel()).max() < 1e-5


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("size", [1.0, 4.0])
def test_softmax_inside_a_model(axis: int, size: float) -> None:
    nodes = [node("Softmax", ["x"], ["p"], axis=axis), node("MatMul", ["p", "w"], ["y"])]
    constants = {"w": RNG.normal(size=(6, 3)).astype(np.float32)}
    program, samples, expected = compiled(nodes, (5, 6), constants, size=size, fit={"error": 0.02})
    agree(program, samples, expected, 0.02)


@pytest.mark.parametrize("given", [{}, {"axis": 1}, {"axis": 2}])
def test_softmax_of_an_old_opset_is_over_the_last_axis_or_refused(given: dict[str, Any]) -> None:
    """Before opset 13 the axes from ``axis`` on, 1 by default, are flattened to one row."""
    nodes = [node("Softmax", ["x"], ["p"], **given), node("MatMul", ["p", "w"], ["y"])]
    constants = {"w": RNG.normal(size=(6, 3)).astype(np.float32)}
    if given == {"axis": 2}:
        agree(*compiled(nodes, (5, 6), constants, opset=12, fit={"error": 0.02}), 0.02)
        return
    with pytest.raises(ModelRefusedError, match="before opset 13"):
        compiled(nodes, (5, 6), constants, opset=12)


def test_a_part_of_a_graph_has_the_values_of_the_whole() -> None:
    """The sums that decide about a softmax are computed by the nodes before it alone."""
    graph = import_model(
        build_model(
            [
                helper.make_node("Softmax", ["x"], ["s"], axis=-1),
                helper.make_node("Mul", ["x", "s"], ["y"]),
            ],
            (3, 4),
            {},
        )
    ).graph
    samples = RNG.normal(size=(5, 12))
    values = graph.evaluate(samples)
    for number in graph.nodes:
        part = graph.leading_to([number])
        assert part.output == number
        assert np.array_equal(part.evaluate(samples)[number], values[number])
    both = graph.leading_to([graph.output, min(graph.nodes)])
    assert set(both.nodes) == set(graph.topological_order())


def test_a_softmax_whose_sums_spread_widely_is_squared_and_normalised() -> None:
    nodes = [node("Softmax", ["x"], ["p"], axis=-1), node("MatMul", ["p", "w"], ["y"])]
    constants = {"w": RNG.normal(size=(6, 3)).astype(np.float32)}
    program, samples, expected = compiled(nodes, (6,), constants, size=6.0, fit={"error": 0.05})
    inverses = [each for each in program.fit_report.activations if each.high > each.low > 0]
    assert 1 < len(inverses) <= 1 + MOST_HALVINGS
    for each in inverses[1:]:
        assert 1 / 6 * (1 - 1 / 8) < each.low < each.high < 1 + 1 / 8
    agree(program, samples, expected, 0.05)


@pytest.mark.parametrize(("length", "width", "heads"), [(1, 4, 2), (2, 2, 1), (5, 6, 2), (8, 16, 4)])
def test_attention_as_exporters_write_it(length: int, width: int, heads: int) -> None:
    nodes, constants = attention_layer(length, width, heads)
    program, samples, expected = compiled(nodes, (length, width), constants, fit={"error": 0.05})
    agree(program, samples, expected, 0.05)


@pytest.mark.parametrize("least", [-1e4, -3.4e38, -np.inf])
def test_masks_hide(least: float) -> None:
    mask = np.where(np.tri(5, dtype=bool), 0.0, least)
    nodes, constants = attention_layer(5, 6, 2, mask)
    program, samples, expected = compiled(nodes, (5, 6), constants, fit={"error": 0.05})
    agree(program, samples, expected, 0.05)
    changed = samples[:1].copy()
    changed[:, 4] += 1.0
    same = run_clear(program, samples[:1])[:, :4] - run_clear(program, changed)[:, :4]
    assert np.abs(same).max() < 1e-9


def test_masks_take_no_level() -> None:
    mask = np.where(np.tri(5, dtype=bool), 0.0, -np.inf)
    depths = []
    for each in (mask, None):
        nodes, constants = attention_layer(5, 6, 2, each)
        fit = {"activations": {"softmax": "chebyshev:15"}}
        depths.append(compiled(nodes, (5, 6), constants, size=0.1, fit=fit)[0].depth)
    assert depths[0] == depths[1]


@pytest.mark.parametrize("least", [-np.inf, -3.4e38, -1e9])
def test_a_mask_that_hides_everything_is_refused(least: float) -> None:
    """Beside a large finite number, single precision loses the logits."""
    mask = np.zeros((5, 5))
    mask[2] = least
    nodes, constants = attention_layer(5, 6, 2, mask)
    with pytest.raises(ModelRefusedError, match="the softmax of nothing is not defined; leave at least one"):
        compiled(nodes, (5, 6), constants)


def test_a_row_that_is_shifted_as_a_whole_is_not_hidden() -> None:
    mask = np.where(np.tri(5, dtype=bool), 0.0, -1e5)
    mask[3] -= 1e5
    nodes, constants = attention_layer(5, 6, 2, mask)
    agree(*compiled(nodes, (5, 6), constants, fit={"error": 0.05}), 0.05)


@pytest.mark.parametrize("size", [9.9e3, 2e4])
def test_finite_masks_that_logits_overcome_are_refused(size: float) -> None:
    """The logits of hidden elements reach the mask: they have a share of their row, and the model says so."""
    mask = np.where(np.arange(4) < 2, -1e4, 0.0).astype(np.float32)
    nodes = [
        node("Add", ["x", "large"], ["logits"]),
        node("Add", ["logits", "mask"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("MatMul", ["p", "w"], ["y"]),
    ]
    large = np.where(np.arange(4) < 1, size, 0.0).astype(np.float32)
    constants = {"mask": mask, "large": large, "w": np.eye(4, dtype=np.float32)}
    with pytest.raises(ModelRefusedError, match="reads the constant -10000 as a mask") as caught:
        compiled(nodes, (3, 4), constants, size=60.0, fit={"error": 0.05})
    (reason,) = caught.value.exceptions
    assert isinstance(reason, RefusalError)
    assert reason.code == "mask"


def test_large_negative_constants_are_numbers_where_no_softmax_reads_them() -> None:
    nodes = [node("Add", ["x", "m"], ["h"]), node("MatMul", ["h", "w"], ["y"])]
    constants = {"m": np.full(4, -1e5, np.float32), "w": np.eye(4, dtype=np.float32)}
    agree(*compiled(nodes, (3, 4), constants))
    outputs = [node("Add", ["x", "m"], ["y"])]
    agree(*compiled(outputs, (3, 4), {"m": np.full(4, -1e5, np.float32)}))


def test_a_mask_of_large_negative_numbers_in_the_input_is_refused() -> None:
    nodes = [node("Softmax", ["x"], ["p"], axis=-1), node("MatMul", ["p", "w"], ["y"])]
    model = build_model(nodes, (6,), {"w": RNG.normal(size=(6, 3)).astype(np.float32)})
    samples = RNG.normal(size=(60, 6))
    samples[::2, 4:] = -1e9
    with pytest.raises(ModelRefusedError, match="give it as 1 for tokens and 0 for padding"):
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples))


def test_an_infinite_mask_without_a_softmax_is_refused() -> None:
    nodes = [node("Add", ["x", "m"], ["h"]), node("MatMul", ["h", "w"], ["y"])]
    constants = {"m": np.full(4, -np.inf, np.float32), "w": np.eye(4, dtype=np.float32)}
    with pytest.raises(ModelRefusedError, match="a Softmax behind it"):
        compiled(nodes, (3, 4), constants)


def test_sequences_that_are_too_long_are_refused_before_they_are_allocated() -> None:
    nodes, constants = attention_layer(300, 64, 1)
    reasons = import_model(build_model(nodes, (300, 64), constants)).reasons
    assert {reason.code for reason in reasons} == {"size"}
    assert "5760000 products, but 4194304 are allowed; compile for shorter sequences" in str(reasons[0])
    assert "27000000 entries" in str(reasons[1])


@pytest.mark.parametrize("heads", [(2, 2), (4, 2), (4, 1)])
@pytest.mark.parametrize("causal", [0, 1])
def test_the_operator_attention(heads: tuple[int, int], causal: int) -> None:
    queries, keys = heads
    nodes = [
        node("MatMul", ["x", "wq"], ["q"]),
        node("MatMul", ["x", "wk"], ["k"]),
        node("MatMul", ["x", "wv"], ["v"]),
        node("Attention", ["q", "k", "v"], ["y"], q_num_heads=queries, kv_num_heads=keys, is_causal=causal),
    ]
    constants = {
        name: (RNG.normal(size=(4, 3 * count)) / 2).astype(np.float32)
        for name, count in (("wq", queries), ("wk", keys), ("wv", keys))
    }
    program, samples, expected = compiled(nodes, (4, 4), constants, opset=23, fit={"error": 0.05})
    agree(program, samples, expected, 0.05)


MASKS_OF_ATTENTION: dict[str, Any] = {
    "bits": np.tri(4, dtype=bool),
    "of each head": np.where(np.tri(4), 0, -np.inf)[None].repeat(2, 0).astype(np.float32),
    "shorter bits": np.array([[True, False, True]] * 4),
    "a shorter bias": np.array([[0.5, 0, -1]] * 4, np.float32),
    "nothing": np.zeros((4, 4), np.float32),
}
"""Constants: the operator hides keys for which a mask has no elements."""


@pytest.mark.parametrize("mask", [*MASKS_OF_ATTENTION, "encrypted bias"])
@pytest.mark.parametrize("causal", [0, 1])
def test_masks_and_biases_of_the_operator_attention(mask: str, causal: int) -> None:
    constants = {"w": (RNG.normal(size=(4, 4)) / 2).astype(np.float32), "one": np.array([1])}
    nodes = [node("MatMul", ["x", "w"], ["bias"]), node("Unsqueeze", ["bias", "one"], ["m"])]
    if mask in MASKS_OF_ATTENTION:
        nodes, constants = [], {"m": MASKS_OF_ATTENTION[mask]}
    heads: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2}
    nodes.append(node("Attention", ["x", "x", "x", "m"], ["y"], is_causal=causal, **heads))
    program, samples, expected = compiled(nodes, (4, 4), constants, opset=23, fit={"error": 0.05})
    agree(program, samples, expected, 0.05)


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        (((4, 4), (4, 4), (3, 3)), "shapes that broadcast"),
        (((4, 4), (2, 2, 4), (4, 4)), "three or four axes in each"),
        (((8, 2), (8, 2), (8,)), "a divisor of the width 2"),
    ],
)
def test_attention_of_operands_that_do_not_fit_is_refused(
    shapes: tuple[tuple[int, ...], ...], reason: str
) -> None:
    constants = {f"s{place}": np.array([0, *shape]) for place, shape in enumerate(shapes[:2])}
    nodes = [node("Reshape", ["x", f"s{place}"], [name]) for place, name in enumerate("qk")]
    nodes.append(node("Attention", ["q", "k", "k", "m"], ["y"], q_num_heads=4, kv_num_heads=4))
    model = build_model(nodes, (16,), constants | {"m": np.ones(shapes[2], bool)}, opset=23)
    (refusal, *_) = import_model(model).reasons
    assert re.search(reason, str(refusal))


@pytest.mark.parametrize(("name", "value"), [("softcap", 2.0), ("qk_matmul_output_mode", 1)])
def test_attention_refuses_what_it_does_not_compute(name: str, value: float) -> None:
    given: dict[str, Any] = {name: value, "q_num_heads": 2, "kv_num_heads": 2}
    with pytest.raises(ModelRefusedError, match=name):
        compiled([node("Attention", ["x", "x", "x"], ["y"], **given)], (3, 4), opset=23)


def test_layers_of_every_token_by_weights_and_by_entries_compile_to_one_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one matrix for all tokens, and as the entries that it has for each: the same diagonals, fewer
    values."""
    nodes, constants = attention_layer(8, 16, 2)
    nodes[-1].output[0], target = "sum", compiler.Target(slots=1 << 9, levels=60)
    nodes += [node("MatMul", ["sum", "wide"], ["w"]), node("Mul", ["w", "w"], ["s"])]
    nodes += [node("LayerNormalization", ["s", "g"], ["n"], axis=-1), node("MatMul", ["n", "narrow"], ["y"])]
    shapes = {"wide": (16, 64), "narrow": (64, 16), "g": (64,)}
    constants |= {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    once, samples, _ = compiled(nodes, (8, 16), constants, fit={"error": 0.5}, target=target)
    everywhere = Convolution.everywhere
    monkeypatch.setattr(Convolution, "everywhere", lambda *parts: everywhere(*parts).explicit())
    fit = compiler.Fit(calibration=samples, error=0.5)
    entries = compiler.compile_program(build_model(nodes, (8, 16), constants, opset=20), target, fit)
    require_equal_programs(once, entries)
    sizes = [sum(each.bytes for each in program.operands.transforms) for program in (once, entries)]
    assert sizes[0] < sizes[1]


def test_rms_normalization() -> None:
    nodes = [node("RMSNormalization", ["x", "g"], ["y"])]
    program, samples, expected = compiled(
        nodes, (3, 8), {"g": np.arange(1, 9, dtype=np.float32)}, opset=23, fit={"error": 0.1}
    )
    agree(program, samples, expected, 0.02)


def test_products_take_few_diagonals() -> None:
    """The order of the joint elements: both factors and the sums take some 10 rotations a map, where the
    order of the axes takes one for each pair of a row and a column."""
    nodes, constants = attention_layer(16, 32, 2)
    program, _, _ = compiled(nodes, (16, 32), constants, fit={"error": 0.2})
    rotations = [layer.rotations for layer in program.layers if layer.kind == "linear"]
    assert max(rotations) <= 40


def test_sums_of_long_sequences_take_few_rotations() -> None:
    """Sums over 32 features of joint elements in 128 ciphertexts take 3 rotations of each, not 8."""
    nodes, constants = attention_layer(32, 64, 2)
    target = compiler.Target(slots=1 << 10, levels=60)
    program, _, _ = compiled(nodes, (32, 64), constants, fit={"error": 0.2}, target=target)
    assert sum(layer.rotations for layer in program.layers if layer.kind == "linear") <= 1_000


def test_encrypted_attention_agrees_with_the_clear_run() -> None:
    nodes, constants = attention_layer(4, 8, 2)
    model = build_model(nodes, (4, 8), constants, opset=20)
    samples = RNG.normal(size=(60, 4, 8)).astype(np.float32)
    parameters = kw.Parameters.from_bits(12, [50] + [40] * 26, [50] * 4, 40, insecure=True)
    target = compiler.Target(slots=parameters.max_slots, levels=parameters.max_level)
    program = compiler.compile_program(model, target, compiler.Fit(calibration=samples, error=0.05))
    execution = KeyFrontier(program, parameters).execution
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    backend = EncryptedBackend(kw.Evaluator(parameters, execution.follow(keys)), plan=execution)
    encryptor, decryptor = kw.Encryptor(generator.public_key()), kw.Decryptor(secret)
    outputs = backend.run(program, encrypt_sample(program, encryptor, samples[0]))
    changes = decrypt_result(program, decryptor, outputs) - run_clear(program, samples[0])
    assert np.abs(changes).max() <= program.output.unit * max(ct.error_bound for ct in outputs)


@pytest.mark.parametrize("operator", ["LayerNormalization", "RMSNormalization"])
def test_stored_statistics_take_one_level(operator: str) -> None:
    """Instead of each sample's own variance, one of all calibration data: a linear map of the centred
    values."""
    nodes = [
        node(operator, ["x", "scale"], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("MatMul", ["r", "w"], ["y"]),
    ]
    constants = {
        "scale": RNG.normal(size=8).astype(np.float32),
        "w": RNG.normal(size=(8, 3)).astype(np.float32),
    }
    fit: dict[str, Any] = {"activations": {operator.lower(): "stored", "relu": "chebyshev:3"}}
    program, samples, _ = compiled(nodes, (3, 8), constants, opset=23, fit=fit)
    other, _, _ = compiled(nodes, (3, 8), constants, opset=23, fit={"activations": {"relu": "chebyshev:3"}})
    assert program.depth == 4 < other.depth
    (stored,) = (each for each in program.fit_report.activations if each.method == "stored")
    assert stored.label.startswith(operator)
    centred = samples - samples.mean(-1, keepdims=True) * (operator == "LayerNormalization")
    roots = 1 / np.sqrt((centred**2).mean(-1) + 1e-5)
    mean = roots[np.arange(60) % 5 != 4].mean()
    assert roots.min() < mean < roots.max()
    assert stored.max_error >= np.abs(roots - mean).max() * (1 - 1e-12)
    relu = next(each for each in program.fit_report.activations if each.method == "chebyshev:3")
    inner = centred * mean * constants["scale"]
    assert relu.low <= inner.min() < inner.max() <= relu.high


def test_stored_is_for_statistics_alone() -> None:
    nodes = [node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])]
    constants = {"w": np.eye(4, dtype=np.float32)}
    with pytest.raises(ModelRefusedError, match="not the inverse of a statistic"):
        compiled(nodes, (3, 4), constants, fit={"activations": {"relu": "stored"}})


def test_a_program_with_stored_statistics_is_stored(tmp_path: Path) -> None:
    nodes = [node("LayerNormalization", ["x", "s"], ["n"]), node("MatMul", ["n", "w"], ["y"])]
    constants = {"s": np.ones(4, np.float32), "w": np.eye(4, dtype=np.float32)}
    program, samples, _ = compiled(
        nodes, (3, 4), constants, fit={"activations": {"layernormalization": "stored"}}
    )
    storage.save(program, tmp_path / "program.kwp")
    again = storage.load(tmp_path / "program.kwp")
    assert np.array_equal(run_clear(again, samples[:2]), run_clear(program, samples[:2]))
    assert again.fit_report is not None
    assert [each.method for each in again.fit_report.activations] == ["stored"]
