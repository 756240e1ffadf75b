"""Masks that clients encrypt: features of zeros and ones, which tokens are hidden."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.front_ends.onnx_importer import import_model
from keywright.errors import EncodeError, ModelRefusedError, OutOfRangeError
from keywright.model.exchange.interface import interface
from keywright.model.served.manifest import Manifest
from keywright.program.arrays import Vector
from keywright.program.file import storage
from keywright.runtime import guard, run_clear
from tests.compiler.attention.layers import RNG, TARGET, agree, attention_layer, compiled, node, reference
from tests.compiler.conftest import build_model


def _masked_layer(length: int, mask: list[Any], **more: Any) -> Any:
    """Attention on inputs whose last feature is "m", from which ``mask`` computes what logits get, "g"."""
    nodes, constants = attention_layer(length, 6, 2, np.zeros(1))
    names = {"x": "tokens", "mask": "g"}
    for each in nodes:
        each.input[:] = [names.get(name, name) for name in each.input]
    first = [
        node("Slice", ["x", "zero", "last", "two"], ["tokens"]),
        node("Slice", ["x", "last", "end", "two"], ["feature"]),
        node("Reshape", ["feature", "row"], ["m"]),
    ]
    numbers = {"none": 0.0, "one": 1.0, "least": -3.4e38, "infinity": -np.inf}
    constants |= {name: np.float32(number) for name, number in numbers.items()}
    constants |= {"zero": np.array([0]), "last": np.array([6]), "end": np.array([7]), "two": np.array([2])}
    constants |= {"row": np.array([0, 1, 1, length]), **more}
    return [*first, *mask, *nodes], constants


ENCRYPTED_MASKS: dict[str, list[Any]] = {
    "cast": [node("Cast", ["m"], ["b"], to=9), node("Where", ["b", "none", "infinity"], ["g"])],
    "factor": [node("Sub", ["one", "m"], ["h"]), node("Mul", ["h", "least"], ["g"])],
}
"""Compiled as a whole here; `test_mask_spellings` imports all spellings."""


def _sentences(count: int, length: int) -> Vector:
    """Inputs whose last feature shows from one to all tokens."""
    samples = RNG.normal(size=(count, length, 7))
    samples[..., 6] = np.arange(length) < RNG.integers(1, length + 1, count)[:, None]
    return np.asarray(samples.astype(np.float32), np.float64)


@pytest.mark.parametrize("how", ENCRYPTED_MASKS)
def test_masks_that_clients_encrypt(how: str) -> None:
    nodes, constants = _masked_layer(5, ENCRYPTED_MASKS[how])
    model, samples = build_model(nodes, (5, 7), constants), _sentences(80, 5)
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, error=0.05))
    expected = reference(model, samples)
    agree(program, samples, expected, 0.05)
    exact = import_model(model, bits=((samples == 0) | (samples == 1)).all(axis=0)).graph
    for length in range(1, 6):
        short = samples[samples[:, :, 6].sum(1) == length][:1]
        changed = short.copy()
        changed[:, length:, :6] *= -0.5
        same, other = (exact.evaluate(each.ravel())[exact.output] for each in (short, changed))
        assert np.abs(same - other)[: 6 * length].max() < 1e-12
        agree(program, changed, reference(model, changed), 0.05)


def test_a_mask_of_other_numbers_is_refused_by_every_client(tmp_path: Path) -> None:
    """The program computes a line where the model compares: what is no bit would be answered wrongly."""
    nodes, constants = _masked_layer(5, ENCRYPTED_MASKS["cast"])
    model, samples = build_model(nodes, (5, 7), constants), _sentences(80, 5)
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, error=0.05))
    assert program.input.steps.bits == tuple(range(6, 35, 7))
    compiler.save(program, tmp_path / "program.kwp")
    read = compiler.load(tmp_path / "program.kwp")
    assert read.input.steps.bits == program.input.steps.bits
    small = kw.Parameters.from_bits(14, [50, *[40] * 60], [60], 40, insecure=True)
    manifest = interface(read, small, None, "masked", ())
    assert Manifest.read(manifest.encoded).input.steps.bits == tuple(range(6, 35, 7))
    for value in (0.7, -1.0, 2.0):
        wrong = samples[:2].copy()
        wrong[1, 3, 6] = value
        with pytest.raises(OutOfRangeError, match="the mask in the input"):
            guard(read, wrong)
        with pytest.raises(OutOfRangeError, match="the mask in the input"):
            manifest.require_range(wrong)
    plain = build_model([node("MatMul", ["x", "w"], ["y"])], (5, 7), {"w": np.ones((7, 2), np.float32)})
    linear = compiler.compile_program(plain, TARGET, compiler.Fit(calibration=samples))
    assert len(linear.input.steps.bits) == 0


def test_other_features_of_zeros_and_ones_may_take_any_value() -> None:
    """A flag beside the mask is a number: the program computes of it what the model does."""
    nodes, constants = _masked_layer(5, ENCRYPTED_MASKS["cast"])
    for each in nodes:
        each.output[:] = ["before" if name == "y" else name for name in each.output]
    flag = [
        node("Slice", ["x", "zero", "next", "two"], ["flag"]),
        node("Mul", ["flag", "twice"], ["doubled"]),
        node("Add", ["before", "doubled"], ["y"]),
    ]
    constants |= {"next": np.array([1]), "twice": np.float32(2)}
    model, samples = build_model([*nodes, *flag], (5, 7), constants), _sentences(80, 5)
    samples[:, :, 0] = RNG.integers(0, 2, (80, 5))
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, error=0.1))
    assert program.input.steps.bits == tuple(range(6, 35, 7))


def test_an_encrypted_mask_of_causal_attention() -> None:
    bits, _ = ENCRYPTED_MASKS["cast"]
    last = [node("Where", ["b", "none", "infinity"], ["one_g"]), node("Add", ["one_g", "causal"], ["g"])]
    causal = np.where(np.tri(5, dtype=bool), 0.0, -np.inf).astype(np.float32)
    nodes, constants = _masked_layer(5, [bits, *last], causal=causal)
    model, samples = build_model(nodes, (5, 7), constants), _sentences(80, 5)
    program = compiler.compile_program(model, TARGET, compiler.Fit(calibration=samples, error=0.05))
    agree(program, samples, reference(model, samples), 0.05)


@pytest.mark.parametrize("truth", [False, True])
def test_the_operator_attention_adds_numbers_and_hides_by_truth_values(*, truth: bool) -> None:
    """Features of zeros and ones are a bias in single precision, and a mask once they are cast."""
    nodes, constants = _masked_layer(5, [])
    heads: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2}
    mask = node("Cast", ["m"], ["t"], to=9) if truth else node("Identity", ["m"], ["t"])
    nodes = [*nodes[:3], mask, node("Attention", ["tokens", "tokens", "tokens", "t"], ["y"], **heads)]
    model, samples = build_model(nodes, (5, 7), constants, opset=23), _sentences(80, 5)
    imported = import_model(model, bits=((samples == 0) | (samples == 1)).all(axis=0))
    outputs = imported.graph.evaluate(samples.reshape(80, -1))[imported.graph.output]
    expected = reference(model, samples)
    assert np.abs(outputs.reshape(expected.shape) - expected).max() < 1e-5
    assert len(imported.claims.required) == 5 * truth


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("number", "elements of the input that are 0 or 1"),
        ("nothing", "into Softmax.* a mask hides all elements of a row"),
        ("read", "an encrypted mask"),
        ("alone", "logits, to which the mask is added"),
    ],
)
def test_encrypted_masks_that_hide_nothing_or_everything(wrong: str, reason: str) -> None:
    """A mask of other numbers, of no token at all, and one that is read without a softmax."""
    nodes, constants = _masked_layer(5, ENCRYPTED_MASKS["cast"])
    samples = _sentences(80, 5)
    if wrong == "number":
        samples[:, 0, 6] = 0.7
    elif wrong == "nothing":
        samples[3, :, 6] = 0.0
    elif wrong == "read":
        nodes = [*nodes[:-6], node("MatMul", ["masked", "v"], ["z"]), *nodes[-4:]]
    else:
        nodes = [*nodes[:-7], node("Softmax", ["g"], ["p"], axis=-1), *nodes[-5:]]
    with pytest.raises((ModelRefusedError, EncodeError), match=reason):
        compiler.compile_program(
            build_model(nodes, (5, 7), constants), TARGET, compiler.Fit(calibration=samples, error=0.05)
        )


def test_a_mask_is_not_lost_behind_another_sum() -> None:
    """Minus infinity, then a sum with constants or with a broadcast: the first mask still holds."""
    nodes = [
        node("Unsqueeze", ["x", "one"], ["u"]),
        node("Add", ["u", "mask"], ["h"]),
        node("Add", ["h", "bias"], ["b"]),
        node("Softmax", ["b"], ["p"], axis=-1),
        node("MatMul", ["p", "w"], ["y"]),
    ]
    mask = np.where(np.arange(4) < 2, -np.inf, 0.0).astype(np.float32)
    for bias in (np.ones(4, np.float32), np.ones((1, 2, 3, 4), np.float32)):
        constants = {"mask": mask, "bias": bias, "w": np.eye(4, dtype=np.float32), "one": np.array([1])}
        program, samples, expected = compiled(nodes, (3, 4), constants, fit={"error": 0.05})
        agree(program, samples, expected, 0.05)
        assert np.abs(run_clear(program, samples[:1]).reshape(-1, 4)[:, :2]).max() < 1e-9


def test_clients_refuse_a_sentence_without_tokens(tmp_path: Path) -> None:
    nodes, constants = _masked_layer(5, ENCRYPTED_MASKS["cast"])
    samples = _sentences(80, 5)
    fit = compiler.Fit(calibration=samples, error=0.05)
    program = compiler.compile_program(build_model(nodes, (5, 7), constants), TARGET, fit)
    guard(program, samples[:4])
    empty = samples[:1].copy()
    empty[..., 6] = 0.0
    storage.save(program, tmp_path / "program.kwp")
    loaded = storage.load(tmp_path / "program.kwp")
    assert loaded.ranges == program.ranges
    assert {each.total for each in loaded.ranges} == {False, True}
    # The program says which value is such a sum, whatever its name is.
    for name, total, reason in (
        (None, None, "a mask hides all elements of a row"),
        ("Division", None, "Division .*a mask hides all elements of a row"),
        ("Softmax", False, "Softmax .*check the sample's scale"),
    ):
        changed = [
            replace(each, name=name or each.name, total=each.total if total is None else total)
            for each in loaded.ranges
        ]
        with pytest.raises(OutOfRangeError, match=reason):
            guard(replace(loaded, ranges=tuple(changed)), empty)
