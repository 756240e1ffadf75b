"""Token ids and attention masks as inputs: what the client looks up, and what it encrypts of a mask."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.compiler.front_ends.parts.client_start import split_first_steps
from keywright.errors import EncodeError, ModelRefusedError, OutOfRangeError, RefusalError
from keywright.program.arrays import Vector
from keywright.runtime import guard, run_clear
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.compiler.conftest import build_model

node = helper.make_node
TARGET = compiler.Target(slots=1 << 10, levels=60)
TOKENS, WIDTH, WORDS, COUNT = 3, 4, 9, 60
RNG = np.random.default_rng(36)
LENGTHS = np.arange(COUNT) % TOKENS + 1
MASK = (np.arange(TOKENS) < LENGTHS[:, None]).astype(np.int64)
SENTENCES = {
    "ids": RNG.integers(1, WORDS, (COUNT, TOKENS)) * MASK,
    "types": RNG.integers(0, 2, (COUNT, TOKENS)),
    "mask": MASK,
}
SECRET = {name: RNG.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 2 for name in ("wq", "wk", "wv")}
CONSTANTS: dict[str, Any] = {
    **SECRET,
    "words": RNG.normal(size=(WORDS, WIDTH)).astype(np.float32),
    "kinds": RNG.normal(size=(2, WIDTH)).astype(np.float32),
    "positions": RNG.normal(size=(1, TOKENS, WIDTH)).astype(np.float32),
    "scale": RNG.normal(size=WIDTH).astype(np.float32),
    "bias": RNG.normal(size=WIDTH).astype(np.float32),
    "pairs": np.stack([np.zeros(TOKENS), np.arange(TOKENS)], 1).astype(np.int64)[None, None],
    "all": np.ones((1, TOKENS, 1), bool),
    "none": np.float32(0),
    "least": np.float32(-3.4e38),
    "infinity": np.float32(-np.inf),
    "one": np.float32(1),
    "pad": np.int64(0),
    "tokens": np.arange(TOKENS),
    "row": np.array([1, 1, TOKENS]),
    "grown": np.array([1, TOKENS, TOKENS]),
    "second": np.array([1]),
}
EMBEDDED = [
    node("Gather", ["words", "ids"], ["w"]),
    node("Gather", ["kinds", "types"], ["k"]),
    node("Add", ["w", "k"], ["wk_sum"]),
    node("Add", ["wk_sum", "positions"], ["p"]),
    node("LayerNormalization", ["p", "scale", "bias"], ["x"], axis=-1, epsilon=1e-6),
]
ATTENTION = [
    node("MatMul", ["x", "wq"], ["q"]),
    node("MatMul", ["x", "wk"], ["k0"]),
    node("MatMul", ["x", "wv"], ["v"]),
    node("Transpose", ["k0"], ["kt"], perm=[0, 2, 1]),
    node("MatMul", ["q", "kt"], ["s"]),
    node("Add", ["s", "g"], ["t"]),
    node("Softmax", ["t"], ["share"], axis=-1),
    node("MatMul", ["share", "v"], ["y"]),
]
CAST = node("Cast", ["mask"], ["b"], to=TensorProto.BOOL)
CHOICE = node("Where", ["h", "none", "infinity"], ["g"])
MASKS: dict[str, list[onnx.NodeProto]] = {
    "torch.export": [
        CAST,
        node("GatherND", ["b", "pairs"], ["r"]),
        node("And", ["all", "r"], ["h"]),
        CHOICE,
    ],
    "TorchScript": [
        CAST,
        node("Flatten", ["b"], ["f"]),
        node("Gather", ["f", "tokens"], ["c"], axis=1),
        node("Reshape", ["c", "row"], ["r"]),
        node("And", ["r", "all"], ["a"]),
        node("Expand", ["a", "grown"], ["h"]),
        CHOICE,
    ],
    "arithmetic": [
        node("Cast", ["mask"], ["f"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["f", "second"], ["u"]),
        node("Sub", ["one", "u"], ["i"]),
        node("Mul", ["i", "least"], ["g"]),
    ],
    "hidden": [
        CAST,
        node("Not", ["b"], ["n"]),
        node("Unsqueeze", ["n", "second"], ["h"]),
        node("Where", ["h", "least", "none"], ["g"]),
    ],
    "padding": [
        node("Equal", ["ids", "pad"], ["e"]),
        node("Unsqueeze", ["e", "second"], ["h"]),
        node("Where", ["h", "infinity", "none"], ["g"]),
    ],
}
"""Masks as exporters write them: the last is that of a model that hides padding by its id."""


def model_of(nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """A model of sentences whose axes are open."""
    read = {name for each in nodes for name in each.input}
    graph = helper.make_graph(
        list(nodes),
        "sentences",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["N", "T"])
            for name in SENTENCES
            if name in read
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "t", "w"])],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in CONSTANTS.items() if name in read],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def of(model: onnx.ModelProto, samples: Any = slice(None)) -> dict[str, Any]:
    return {value.name: SENTENCES[value.name][samples] for value in model.graph.input}


def outputs(model: onnx.ModelProto, sentences: dict[str, Any]) -> Vector:
    """The model's outputs, one sentence at a time, by ONNX's reference implementation."""
    run = ReferenceEvaluator(model)
    count = len(next(iter(sentences.values())))
    each = [np.asarray(run.run(None, {n: a[i : i + 1] for n, a in sentences.items()})) for i in range(count)]
    result: Vector = np.concatenate(each, axis=1)[0].astype(np.float64)
    return result


@cache
def compiled(mask: str) -> tuple[onnx.ModelProto, Any]:
    model = model_of([*EMBEDDED, *MASKS[mask], *ATTENTION])
    return model, compiler.compile_program(model, TARGET, compiler.Fit(calibration=of(model), error=0.1))


@pytest.mark.parametrize("mask", MASKS)
def test_clients_embed_ids_and_encrypt_the_bits_of_a_mask(mask: str) -> None:
    model, program = compiled(mask)
    features, _ = program.features(of(model))
    assert features.shape == (COUNT, TOKENS * (WIDTH + 1))
    assert len(program.input.steps.bits) == TOKENS
    bits = features[:, list(program.input.steps.bits)]
    shown = SENTENCES["ids"] == 0 if mask in ("padding",) else MASK
    assert np.array_equal(bits, shown) or np.array_equal(bits, 1 - shown)
    expected = outputs(model, of(model))
    assert np.abs(run_clear(program, features).reshape(expected.shape) - expected).max() < 0.1
    steps = program.input.steps.first
    held = [numpy_helper.to_array(t) for t in onnx.load_from_string(steps.data).graph.initializer]
    numbers = {float(value) for array in held if array.dtype.kind == "f" for value in array.ravel()}
    assert not numbers & {float(value) for array in SECRET.values() for value in array.ravel()}


WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("ids", WORDS, EncodeError, "'ids' holds the id 9, and the ids of its table are 0 to 8"),
    ("ids", -1, EncodeError, "'ids' holds the id -1, and the ids of its table are 0 to 8"),
    ("types", 2, EncodeError, "'types' holds the id 2"),
    ("mask", 0, OutOfRangeError, "Softmax.* a mask hides all elements of a row"),
]


@pytest.mark.parametrize(("name", "value", "error", "reason"), WRONG)
def test_ids_outside_the_table_and_masks_that_hide_everything_are_refused(
    name: str, value: int, error: type[Exception], reason: str
) -> None:
    model, program = compiled("torch.export")
    sentences = of(model, slice(0, 2))
    guard(program, program.features(sentences)[0])
    wrong = sentences[name].copy()
    wrong[1] = value
    with pytest.raises(error, match=reason):
        guard(program, program.features(sentences | {name: wrong})[0])


def test_calibration_data_with_a_mask_that_hides_everything_are_refused() -> None:
    model = model_of([*EMBEDDED, *MASKS["torch.export"], *ATTENTION])
    sentences = of(model)
    sentences["mask"] = sentences["mask"].copy()
    sentences["mask"][1] = 0
    with pytest.raises(ModelRefusedError, match=r"a mask hides all elements of a row.* leave out row 1 "):
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=sentences))


@pytest.mark.parametrize("length", [0, 2, 4])
def test_sentences_of_another_length_are_refused(length: int) -> None:
    model, program = compiled("torch.export")
    sentences = {name: np.zeros((2, length), np.int64) for name in of(model)}
    with pytest.raises(
        EncodeError, match=r"\(count, 3\).*pad shorter ones", check=lambda e: e.code == "samples"
    ):
        program.features(sentences)


def test_a_length_that_everybody_knows_is_a_constant_mask() -> None:
    model = model_of([*EMBEDDED, *MASKS["torch.export"], *ATTENTION])
    short = of(model) | {"mask": np.repeat([[1, 1, 0]], COUNT, axis=0)}
    public = kw.compile(model, short, inputs={"mask": [1, 1, 0]}, error=0.1)
    features, _ = public.program.features({name: short[name] for name in ("ids", "types")})
    assert features.shape == (COUNT, TOKENS, WIDTH)
    expected = outputs(model, short)
    assert np.abs(run_clear(public.program, features).reshape(expected.shape) - expected).max() < 0.1


@pytest.mark.parametrize(
    ("count", "taken"),
    [
        (1, {"words"}),
        (3, {"words", "kinds"}),
        (4, {"words", "kinds"}),
        (5, {"words", "kinds", "positions", "scale", "bias"}),
    ],
)
def test_clients_get_constants_of_embeddings_where_a_normalisation_follows(
    count: int, taken: set[str]
) -> None:
    chosen = EMBEDDED[:count]
    model = model_of([*chosen, node("MatMul", [chosen[-1].output[0], "wq"], ["y"])])
    steps = split_first_steps(model, of(model)).steps
    assert steps is not None
    assert {t.name for t in onnx.load_from_string(steps.data).graph.initializer} == taken


def test_a_normalisation_is_the_layers_own_where_something_else_reads_the_sum() -> None:
    model = model_of([*EMBEDDED, node("MatMul", ["x", "wq"], ["m"]), node("Add", ["m", "p"], ["y"])])
    steps = split_first_steps(model, of(model)).steps
    assert steps is not None
    assert set(steps.operators) == {"Gather", "Add"}


def test_tables_that_no_client_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keywright.compiler.front_ends.parts.client_start.MAX_BYTES", 100)
    model = model_of([*EMBEDDED, node("MatMul", ["x", "wq"], ["y"])])
    with pytest.raises(RefusalError, match="look rows up before"):
        split_first_steps(model, of(model))


def test_a_mask_that_only_a_client_could_read_is_refused() -> None:
    """It is looked up in a table, which only clients have."""
    table = node("Constant", [], ["table"], value=numpy_helper.from_array(np.array([-np.inf, 0], np.float32)))
    other = [table, node("Gather", ["table", "mask"], ["r"]), node("Unsqueeze", ["r", "second"], ["g"])]
    model = model_of([*EMBEDDED, *other, *ATTENTION])
    with pytest.raises(ModelRefusedError, match="a choice between 0 and minus infinity"):
        compiler.compile_program(model, TARGET, compiler.Fit(calibration=of(model)))


@pytest.mark.parametrize(
    ("size", "axis", "chosen"), [(100, 0, [[70], [-1]]), (100, 1, [[70, 3]]), (40, 1, [[5]])]
)
def test_elements_of_long_tables(size: int, axis: int, chosen: list[list[int]]) -> None:
    """ONNX's reference implementation chooses among 32 elements at most, and BERT has 512 positions."""
    table = np.arange(size, dtype=np.float32)[:, None]
    table = table if axis == 0 else table.T
    gathered = node("GatherElements", ["table", "i"], ["g"], axis=axis)
    ends = [node("ReduceSum", ["g"], ["s"], keepdims=0), node("Add", ["x", "s"], ["y"])]
    model = build_model([gathered, *ends], (2,), {"table": table, "i": np.array(chosen)})
    graph = import_model(model).graph
    expected = np.take_along_axis(table, np.array(chosen), axis).sum()
    assert graph.evaluate(np.zeros(2))[graph.output].tolist() == [expected, expected]


def test_the_only_input_may_have_its_name() -> None:
    """As a BERT's argument ``inputs_embeds``, which is not its first."""
    model = build_model([node("MatMul", ["x", "wq"], ["y"])], (TOKENS, WIDTH), {"wq": SECRET["wq"]})
    samples = RNG.normal(size=(COUNT, TOKENS, WIDTH))
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration={"x": samples}))
    for given in (samples, {"x": samples}):
        features, _ = program.features(given)
        assert (
            np.abs(run_clear(program, features).reshape(samples.shape) - samples @ SECRET["wq"]).max() < 1e-6
        )
    for call in (
        lambda: program.features({"z": samples}),
        lambda: compiler.compile_program(model, TARGET, compiler.Fit(calibration={"z": samples})),
    ):
        with pytest.raises(EncodeError, match="takes the inputs 'x', got 'z'"):
            call()
