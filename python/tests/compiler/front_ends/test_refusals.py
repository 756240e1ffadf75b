"""Models that cannot be compiled are refused by name, with all reasons at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import pytest
from keywright import compiler
from keywright.compiler import approximating, arrangement
from keywright.compiler.front_ends.to_onnx import to_onnx
from keywright.errors import EncodeError, ModelRefusedError, RefusalError
from keywright.errors.refusals.exports import not_exported
from keywright.runtime import run_clear
from onnx import helper

node = helper.make_node
Build = Callable[..., onnx.ModelProto]
TARGET = compiler.Target(slots=256, levels=5)
ONES = {"w": np.ones((2, 2, 3, 3), np.float32)}


def reasons(
    model: onnx.ModelProto | bytes, target: compiler.Target = TARGET, **options: int
) -> list[RefusalError]:
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(model, target, **options)  # type: ignore[arg-type]
    assert all(str(reason) in str(caught.value) for reason in caught.value.exceptions)
    return list(caught.value.exceptions)  # type: ignore[arg-type]


def test_all_reasons_at_once(build: Build) -> None:
    model = build(
        [
            node("Conv", ["x", "w"], ["a"], "conv"),
            node("Tan", ["a"], ["b"], "tangent"),
            node("Relu", ["b"], ["c"], "relu"),
            node("LogSoftmax", ["c"], ["d"], "softmax"),
            node("Conv", ["d", "w"], ["e"], "ceil", auto_pad="SAME_UPPER", dilations=[1, 1]),
            node(
                "AveragePool",
                ["e"],
                ["y"],
                "average",
                kernel_shape=[2, 2],
                count_include_pad=1,
                ceil_mode=1,
            ),
        ],
        (2, 8, 8),
        ONES,
    )
    refusals = reasons(model, compiler.Target(slots=256, levels=2))
    assert [(type(reason), reason.code) for reason in refusals] == [
        (RefusalError, "operator"),
        (RefusalError, "operator"),
        (RefusalError, "attribute"),
        (RefusalError, "activations"),
        (RefusalError, "depth"),
    ]
    assert "'tangent': operator Tan is not supported; replace it" in str(refusals[0])
    assert "AveragePool" not in str(refusals[0])
    assert "'softmax'" in str(refusals[1])
    assert "ceil_mode = 1" in str(refusals[2])


def test_a_maximum_that_takes_too_many_levels(build: Build) -> None:
    nodes = [node("MaxPool", ["x"], ["m"], "pool", kernel_shape=[2, 2]), node("Relu", ["m"], ["y"])]
    samples = np.random.default_rng(1).normal(size=(60, 1, 4, 4))
    model, fit = (
        build(nodes, (1, 4, 4)),
        compiler.Fit(calibration=samples, activations={"maxpool": "minimax:8"}),
    )
    with pytest.raises(ModelRefusedError, match="AveragePool instead of MaxPool at 'pool'"):
        compiler.compile_program(model, compiler.Target(slots=16, levels=6), fit)


def test_except_star_selects_reasons(build: Build) -> None:
    model = build([node("Tan", ["x"], ["y"])], (2, 8, 8))
    seen = []
    try:
        compiler.compile_program(model, compiler.Target(slots=16, levels=1))
    except* RefusalError as group:
        seen = list(group.exceptions)
    assert [getattr(reason, "code", "") for reason in seen] == ["operator"]


def test_too_deep_names_need_and_bound(build: Build) -> None:
    squares = [node("Mul", [name, name], [after]) for name, after in ("xa", "ab", "bc", "cy")]
    (reason,) = reasons(build(squares, (4,)), compiler.Target(slots=256, levels=3))
    assert isinstance(reason, RefusalError)
    assert reason.code == "depth"
    assert (reason.needed, reason.available) == (4, 3)
    assert compiler.compile_program(build(squares, (4,)), compiler.Target(slots=16, levels=4)).depth == 4
    (reason,) = reasons(build(squares, (4,)), compiler.Target(slots=256, levels=5, output_level=2))
    assert isinstance(reason, RefusalError)
    assert reason.code == "depth"
    assert (reason.needed, reason.available) == (4, 3)


def test_no_list_of_operators_is_shown(build: Build) -> None:
    nodes = [node("Tan", ["x"], ["a"]), node("Tan", ["a"], ["y"])]
    with pytest.raises(ModelRefusedError) as caught:
        compiler.compile_program(build(nodes, (2, 8, 8)), TARGET)
    assert len(caught.value.exceptions) == 2
    assert str(caught.value).count("Abs, Add") == 0


@pytest.mark.parametrize(
    ("operator", "way"),
    [
        ("Hardmax", "only at the end"),
        ("NonZero", "end the model before it"),
        ("RandomNormalLike", "no random numbers"),
        ("Unique", "end the model before it"),
    ],
)
def test_the_way_out_is_named_for_families_of_operators(build: Build, operator: str, way: str) -> None:
    nodes = [
        node("MatMul", ["x", "m"], ["a"]),
        node(operator, ["a"], ["b"], "other"),
        node("Cast", ["b"], ["c"], to=1),
        node("MatMul", ["c", "m"], ["y"]),
    ]
    refusals = reasons(build(nodes, (4,), {"m": np.eye(4, dtype=np.float32)}))
    assert any(operator in str(each) and way in str(each) for each in refusals), refusals


def test_functions_of_a_model_are_named(build: Build) -> None:
    model = build([node("Neg", ["x"], ["y"])], (4,))
    model.graph.node[0].CopyFrom(helper.make_node("twice", ["x"], ["y"], domain="own"))
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("own", "twice", ["a"], ["b"], body, opsets))
    model.opset_import.append(helper.make_opsetid("own", 1))
    target = compiler.Target(slots=16, levels=3)
    with pytest.raises(ModelRefusedError, match=r"twice is not supported; it is a function of the model"):
        compiler.compile_program(model, target)
    compiler.compile_program(onnx.inliner.inline_local_functions(model), target)


def test_an_input_that_nothing_reads_is_named(build: Build) -> None:
    model = build([node("Neg", ["x"], ["y"])], (4,))
    model.graph.input.append(helper.make_tensor_value_info("spare", onnx.TensorProto.FLOAT, ["batch", 2]))
    with pytest.raises(ModelRefusedError, match="nothing in the model reads its input 'spare'"):
        compiler.compile_program(model, compiler.Target(slots=16, levels=3))


def test_dynamic_shapes(build: Build) -> None:
    (reason,) = reasons(build([node("Identity", ["x"], ["y"])], (1, "height", 8)))
    assert isinstance(reason, RefusalError)
    assert reason.code == "dynamic_shape"
    weights = {"w": np.ones((4, 4), np.float32)}
    (reason,) = reasons(build([node("MatMul", ["x", "w"], ["y"])], ("features",), weights))
    assert reason.code == "dynamic_shape", "shapes that follow from it are no reasons"


@pytest.mark.parametrize(
    ("nodes", "shape", "word"),
    [
        ([node("Reshape", ["x", "five"], ["y"])], (4,), "4 elements a sample"),
        ([node("Einsum", ["x"], ["y"], equation="...i")], (4,), "beside an ellipsis"),
        ([node("Einsum", ["x"], ["y"], equation="bi->b" + "i" * 10**3)], (4,), "iiii... is"),
        ([node("Pow", ["x", "many"], ["y"])], (4,), "2.... is"),
        ([node("Pow", ["x", "none"], ["y"])], (4,), "other than 0"),
        ([node("Div", ["x", "zero"], ["y"])], (4,), "divisor"),
        ([node("Conv", ["x", "w1"], ["y"])], (2, 8, 8, 8), "(1, channels, height, width)"),
    ],
)
def test_unsupported_attributes(
    build: Build, nodes: list[onnx.NodeProto], shape: tuple[int, ...], word: str
) -> None:
    constants = {
        "none": np.float32(0),
        "zero": np.float32(0),
        "five": np.asarray([5]),
        "w1": np.ones((1, 2, 3, 3, 3), np.float32),
        "many": np.full((10**4, 4), 2, np.float32),
    }
    (reason,) = reasons(build(nodes, shape, constants))
    assert isinstance(reason, RefusalError)
    assert reason.code == "attribute"
    assert word in str(reason)
    assert len(str(reason)) < 300


@pytest.mark.parametrize(
    "equation",
    [
        "......j,jk->...k",
        "...j...,jk->...k",
        "b\tij,jk->bik",
        "bij,jk-",
        "bij,jk>bik",
        "b\xe9j,jk->bk",
        "b1j,jk->bk",
    ],
)
@pytest.mark.parametrize("place", ["graph", "nested graph", "function"])
def test_equations_that_are_none_are_refused_before_onnx_reads_them(
    build: Build, equation: str, place: str
) -> None:
    """It would read some of them for ever."""
    layer = node("Einsum", ["x", "w"], ["y"], "layer", equation="bij,jk->bik")
    model = build([layer], (3, 4), {"w": np.ones((4, 2), np.float32)})
    layer.attribute[0].s = equation.encode()
    del model.graph.node[:]
    if place == "graph":
        model.graph.node.append(layer)
    elif place == "nested graph":
        inner = helper.make_graph([layer], "inner", [], [model.graph.output[0]])
        model.graph.node.append(node("If", ["x"], ["y"], then_branch=inner, else_branch=inner))
    else:
        opsets = list(model.opset_import)
        model.functions.append(helper.make_function("own", "Layer", ["x", "w"], ["y"], [layer], opsets))
        model.graph.node.append(node("Layer", ["x", "w"], ["y"], domain="own"))
    (reason,) = reasons(model)
    assert isinstance(reason, RefusalError)
    assert reason.code == "attribute"
    assert "node 'layer'" in str(reason)
    assert repr(equation) in str(reason)


def test_an_interpolation_of_many_weights_is_refused(build: Build) -> None:
    resize = node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")
    (reason,) = reasons(build([resize], (1, 8192), {"sizes": np.array([1, 1, 4096])}))
    assert isinstance(reason, RefusalError)
    assert reason.code == "size"
    assert reason.allowed < reason.size == 8192 * 4096


def test_weights_that_are_not_finite(build: Build) -> None:
    weights = ONES["w"].copy()
    weights[0, 0, 0, 0] = np.nan
    (reason,) = reasons(build([node("Conv", ["x", "w"], ["y"])], (2, 8, 8), {"w": weights}))
    assert isinstance(reason, RefusalError)
    assert reason.code == "model"
    assert "'w'" in str(reason)


def test_foreign_bytes() -> None:
    (reason,) = reasons(b"not a model")
    assert isinstance(reason, RefusalError)
    assert reason.code == "model"


def test_too_wide_layers_are_refused_before_any_search(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long: the run on calibration data, the choice of polynomials, the placement of levels."""
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])]
    model = build(nodes, (64,), {"w": np.ones((64, 64), np.float32)})
    fit = compiler.Fit(calibration=np.zeros((4, 64)))

    def searched(*arguments: object, **options: object) -> None:
        raise AssertionError

    monkeypatch.setattr(arrangement, "place", searched)
    with monkeypatch.context() as patch:
        for name in ("run_exact", "choose"):
            patch.setattr(approximating, name, searched)
        target = compiler.Target(slots=64, levels=40)
        for call in (
            lambda: compiler.compile_program(model, target, fit, max_plaintext_bytes=1000),
            lambda: compiler.approximate(model, fit, 1000),
        ):
            with pytest.raises(ModelRefusedError) as caught:
                call()
            (reason,) = caught.value.exceptions
            assert isinstance(reason, RefusalError)
            assert reason.code == "diagonals"
    # 64 by 65 entries are on 128 diagonals: the layout shows it, before levels are searched.
    uneven = build([node("MatMul", ["x", "w"], ["y"])], (64,), {"w": np.ones((64, 65), np.float32)})
    most = 8 * 64 * 65
    (reason,) = reasons(uneven, compiler.Target(slots=128, levels=4), max_plaintext_bytes=most)
    assert isinstance(reason, RefusalError)
    assert reason.code == "diagonals"
    assert reason.details["needed"] > most
    # Of several samples, halves of their number are counted, down to the smallest that would be tried.
    (reason,) = reasons(uneven, compiler.Target(slots=1024, levels=4, samples=8), max_plaintext_bytes=most)
    assert reason.code == "diagonals"


def test_fewer_samples_at_a_time_where_their_diagonals_fit(build: Build) -> None:
    """Memory decides, even where more samples at a time would take less time."""
    model = build(
        [node("MatMul", ["x", "w"], ["y"])],
        (16,),
        {"w": np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)},
    )
    target = compiler.Target(slots=256, levels=4, samples=8)
    one = 8 * 16 * 16
    batches = [
        compiler.compile_program(model, target, max_plaintext_bytes=most * one).batch for most in (2, 4, 64)
    ]
    assert batches == [2, 4, 8]


def test_diagonals_within_memory(build: Build) -> None:
    model = build([node("MatMul", ["x", "w"], ["y"])], (64,), {"w": np.ones((64, 64), np.float32)})
    needed = 64 * 64 * 8
    assert (
        compiler.compile_program(model, compiler.Target(slots=64, levels=1), max_plaintext_bytes=needed).depth
        == 1
    )
    (reason,) = reasons(model, compiler.Target(slots=64, levels=5), max_plaintext_bytes=needed - 1)
    assert isinstance(reason, RefusalError)
    assert reason.code == "diagonals"
    assert (reason.details["needed"], reason.details["allowed"]) == (needed, needed - 1)


@pytest.mark.parametrize(
    "samples", [np.zeros((0, 4)), np.zeros((3, 5)), np.zeros(4), np.full((2, 4), np.inf), np.array(1.0)]
)
def test_calibration_data(build: Build, samples: np.ndarray) -> None:
    model = build([node("Tanh", ["x"], ["y"])], (4,))
    with pytest.raises(
        EncodeError, match=r"shape \(count, 4\)|not finite", check=lambda error: error.code == "samples"
    ):
        compiler.compile_program(
            model, compiler.Target(slots=16, levels=5), compiler.Fit(calibration=samples)
        )


@pytest.mark.parametrize(
    "options",
    [{"slots": 12}, {"slots": 0}, {"output_level": 6}, {"output_level": -1}],
)
def test_targets_out_of_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="got"):
        compiler.Target(**({"slots": 16, "levels": 5} | options))


@pytest.mark.parametrize(
    "options",
    [
        {"activations": {"tanh": "chebyshev:0"}},
        {"activations": {"tanh": "chebyshev:1024"}},
        {"activations": {"relu": "minimax:15"}},
        {"activations": {"relu": "remez:7"}},
        {"accuracy": 1.5},
        {"error": 0.0},
        {"noise": 0.0},
    ],
)
def test_fits_out_of_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got|not a method"):
        compiler.Fit(**options)


@pytest.mark.parametrize(
    "options", [{"margin": -0.1}, {"margin": float("nan")}, {"headroom": 0.5}, {"input_range": (1.0, 1.0)}]
)
def test_ranges_out_of_bounds(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="got"):
        compiler.Ranges(**options)


@pytest.mark.parametrize("sample", [np.zeros(5), np.zeros((2, 4)), np.full(4, np.nan)])
def test_samples_of_a_program(build: Build, sample: np.ndarray) -> None:
    program = compiler.compile_program(
        build([node("Neg", ["x"], ["y"])], (4,)), compiler.Target(slots=16, levels=1)
    )
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        program.pack(sample)
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        program.unpack(np.zeros((2, program.slots)))


@pytest.mark.parametrize("kind", [255, -(1 << 31)])
def test_weights_of_a_type_that_does_not_exist_are_refused(build: Build, kind: int) -> None:
    model = build([node("Conv", ["x", "w"], ["y"], "conv")], (2, 8, 8), ONES)
    model.graph.initializer[0].data_type = kind
    refusals = reasons(model)
    assert any(getattr(reason, "code", "") == "model" for reason in refusals)
    assert f"have type {kind}, which onnx does not know" in str(refusals[0])


def test_a_loop_that_reads_encrypted_values(build: Build) -> None:
    """None of its operands is encrypted, but it is not a constant."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Add", ["x", "x"], ["twice"])],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("twice", onnx.TensorProto.FLOAT, None),
        ],
    )
    nodes = [node("Loop", ["three", ""], ["each"], "steps", body=body), node("Identity", ["each"], ["y"])]
    (reason,) = reasons(build(nodes, (4,), {"three": np.asarray(3)}))
    assert isinstance(reason, RefusalError)
    assert reason.code == "operator"
    assert "'steps': operator Loop is not supported" in str(reason)
    assert "unroll=True" in str(reason)


def test_erfc_of_tensorflow_is_read(build: Build) -> None:
    model = build([node("Erf", ["x"], ["e"]), node("Sub", ["one", "e"], ["y"])], (4,), {"one": np.float32(1)})
    samples = np.random.default_rng(3).normal(size=(60, 4))
    fit, target = (
        compiler.Fit(calibration=samples, activations={"erf": "chebyshev:15"}),
        compiler.Target(slots=16, levels=5),
    )
    expected = run_clear(compiler.compile_program(model, target, fit), samples)
    del model.graph.node[1]
    model.graph.node[0].op_type = "Erfc"
    model.graph.node[0].output[0] = "y"
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(model)
    outputs = run_clear(compiler.compile_program(model, target, fit), samples)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=2**-40)


def test_an_exporter_is_refused_with_its_innermost_cause() -> None:
    outer = ValueError("\x1b[96mFailed to export\x1b[0m the model")
    outer.__cause__ = TypeError("forward() is missing\n an argument: 'b'")
    text = str(not_exported("Two", "torch.onnx.export", outer))
    assert "forward() is missing an argument: 'b'" in text
    plain = str(not_exported("Two", "torch.onnx.export", ValueError("\x1b[96mFailed\x1b[0m here")))
    assert "Failed here" in plain
    flat = AssertionError("only 4D query, key, and value are supported")
    assert "query.unsqueeze(1)" in str(not_exported("Flat", "torch.onnx.export", flat))
    branch = ValueError(
        "Could not guard on data-dependent expression Eq(u0, 1)\n\nCaused by: (file.py:9 in f)\n"
    )
    assert "Eq(u0, 1); choose between results by torch.where" in str(not_exported("B", "export", branch))

    def _detect_is_causal_mask() -> None:
        """Branches on the values of a mask, as PyTorch's function of this name does."""
        raise branch

    with pytest.raises(ValueError, match="guard") as caught:
        _detect_is_causal_mask()
    assert "is_causal=True" in str(not_exported("Stack", "torch.onnx.export", caught.value))


def test_a_module_that_does_not_take_the_samples_says_what_it_takes() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: no module is exported here")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: no module is exported here")

    class Two(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, a: object, b: object) -> object:
            return a + b  # type: ignore[operator]

    with pytest.raises(ExceptionGroup) as caught:
        to_onnx(Two(), np.zeros((3, 5)))
    assert "Two raises an error" in str(caught.value.exceptions[0])
    assert "give a mapping with the arrays of 'a', 'b'" in str(caught.value.exceptions[0])
    with pytest.raises(EncodeError, match="give a mapping with the arrays of 'a', 'b'"):
        to_onnx(Two(), (np.zeros((3, 5)), np.zeros((3, 2))))
    with pytest.raises(ExceptionGroup) as caught:
        to_onnx(torch.nn.Linear(4, 2), np.zeros((3, 5)))
    assert "give samples of the shape that it takes" in str(caught.value.exceptions[0])


@pytest.mark.parametrize("declared", [None, onnx.TensorProto.FLOAT])
def test_an_output_without_a_shape_gets_the_inferred_one(declared: int | None) -> None:
    weights = onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32), "w")
    source = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 3])
    output = onnx.ValueInfoProto(name="y")
    if declared is not None:
        output = helper.make_tensor_value_info("y", declared, None)

    def model(node: onnx.NodeProto) -> onnx.ModelProto:
        graph = helper.make_graph([node], "test", [source], [output], [weights])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("other", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    compiler.compile_program(
        model(helper.make_node("MatMul", ["x", "w"], ["y"])), compiler.Target(slots=16, levels=3)
    )
    with pytest.raises(ModelRefusedError, match="output 'y' of the ONNX model has no shape"):
        compiler.compile_program(
            model(helper.make_node("Unknown", ["x", "w"], ["y"], domain="other")),
            compiler.Target(slots=16, levels=3),
        )
