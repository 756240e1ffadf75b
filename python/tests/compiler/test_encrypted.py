"""Programs on ciphertexts against the same programs in clear."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.compiler.layout.cyclic import REPACKED
from keywright.compiler.placement.costs import CostTable
from keywright.plan import KeyFrontier
from keywright.plan.keys.execution import PlanExecution
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from onnx import helper
from sklearn.svm import SVC
from tests.ciphertexts import decrypt_result, encrypt_sample

Build = Callable[..., onnx.ModelProto]
Samples = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture(scope="module")
def generator() -> kw.KeyGenerator:
    return kw.KeyGenerator(secret())


def parameters() -> kw.Parameters:
    return kw.Parameters.preset("N14_QP430_S40")


def secret() -> kw.SecretKey:
    return kw.SecretKey.generate(parameters(), bytes(32))


def evaluation_keys(
    execution: PlanExecution, generator: kw.KeyGenerator, skip: int | None = None
) -> kw.EvaluationKeys:
    keys = kw.EvaluationKeys(parameters())
    for index, spec in enumerate(execution.key_specs):
        if index != skip:
            keys.add(generator.switching_key(spec))
    return keys


def compare(program: compiler.Program, generator: kw.KeyGenerator, samples: Samples) -> None:
    """Decrypted results are within the ciphertexts' own error bounds of the clear ones."""
    execution = KeyFrontier(program, parameters()).execution
    keys = execution.follow(evaluation_keys(execution, generator))
    backend = EncryptedBackend(kw.Evaluator(parameters(), keys), plan=execution)
    encryptor, decryptor = kw.Encryptor(generator.public_key(), bytes(32)), kw.Decryptor(secret())
    for sample in samples:
        cts = backend.run(program, encrypt_sample(program, encryptor, sample))
        assert [ct.level for ct in cts] == [program.output.level] * len(cts)
        error = np.abs(decrypt_result(program, decryptor, cts) - run_clear(program, sample)).max()
        assert error <= max(ct.error_bound for ct in cts)
        assert (
            error <= 2**-16
        )  # the bound is for the worst case; 40-bit scales leave more than this in practice


def test_digits(generator: kw.KeyGenerator) -> None:
    data = files("keywright") / "data"
    with (data / "digits_test.npz").open("rb") as file:
        images = np.load(file)["images"]
    program = compiler.compile_program(
        (data / "digits.onnx").read_bytes(), compiler.Target(slots=1 << 13, levels=8)
    )
    compare(program, generator, images[:3])


def test_an_image_that_is_repacked_before_a_stride(build: Build, generator: kw.KeyGenerator) -> None:
    """Products with diagonals are expensive here, so the savings in two convolutions pay for a repacking."""
    node, rng = helper.make_node, np.random.default_rng(5)
    model = build(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1] * 4, strides=[2, 2]),
            node("Mul", ["a", "a"], ["b"]),
            node("Conv", ["b", "v"], ["c"], pads=[1] * 4),
            node("Mul", ["c", "c"], ["d"]),
            node("Conv", ["d", "v"], ["y"], pads=[1] * 4),
        ],
        (4, 8, 8),
        {
            "w": rng.normal(size=(8, 4, 3, 3)).astype(np.float32) / 6,
            "v": rng.normal(size=(8, 8, 3, 3)).astype(np.float32) / 8,
        },
    )
    cheap = (1e-6, 1e-6)
    costs = CostTable(
        rotation=cheap, hoisted=cheap, diagonal=(1.0, 1.0), multiplication=cheap, bootstrap=cheap
    )
    program = compiler.compile_program(model, compiler.Target(slots=256, levels=7), costs=costs)
    assert any(REPACKED in layer.name for layer in program.layers)
    samples = rng.normal(size=(2, 4, 8, 8)).astype(np.float32)
    report = compiler.check(program, samples, model)
    # Single precision through sums of 36, 72 and 72 products: 2^-24 each, and twice that behind a square.
    assert report.max_abs_error <= 2 * (2 * (36 + 1) + 72 + 1 + 72) * 2**-24 * np.abs(report.expected).max()
    compare(program, generator, samples)


@pytest.mark.parametrize("slots", [16, 256])
def test_shortcuts_polynomials_and_several_ciphertexts(
    build: Build, generator: kw.KeyGenerator, slots: int
) -> None:
    node = helper.make_node
    rng = np.random.default_rng(3)
    model = build(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
            node("Sigmoid", ["a"], ["s"]),
            node("Conv", ["s", "v"], ["b"], pads=[1, 1, 1, 1]),
            node("Add", ["b", "s"], ["c"]),
            node("Mul", ["c", "c"], ["m"]),
            node("GlobalAveragePool", ["m"], ["y"]),
        ],
        (1, 4, 4),
        {
            "w": rng.normal(size=(2, 1, 3, 3)).astype(np.float32) / 3,
            "v": rng.normal(size=(2, 2, 3, 3)).astype(np.float32) / 4,
        },
    )
    samples = rng.normal(size=(10, 1, 4, 4)).astype(np.float32)
    program = compiler.compile_program(
        model,
        compiler.Target(slots=slots, levels=8),
        compiler.Fit(calibration=samples, activations={"sigmoid": "chebyshev:5"}),
    )
    compare(program, generator, samples[:2])


def test_moves_and_a_maximum(build: Build, generator: kw.KeyGenerator) -> None:
    node, rng = helper.make_node, np.random.default_rng(4)
    model = build(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1]),
            node("MaxPool", ["a"], ["m"], kernel_shape=[2], strides=[2]),
            node("Transpose", ["m"], ["t"], perm=[0, 2, 1]),
            node("Flatten", ["t"], ["f"]),
            node("Concat", ["f", "c"], ["j"], axis=1),
            node("MatMul", ["j", "v"], ["y"]),
        ],
        (2, 8),
        {
            "w": rng.normal(size=(3, 2, 3)).astype(np.float32) / 4,
            "c": np.ones((1, 2), np.float32),
            "v": rng.normal(size=(14, 3)).astype(np.float32) / 4,
        },
        batch=1,
    )
    samples = rng.normal(size=(20, 2, 8)).astype(np.float32)
    fit = compiler.Fit(calibration=samples, activations={"maxpool": "chebyshev:15"})
    compare(compiler.compile_program(model, compiler.Target(slots=64, levels=8), fit), generator, samples[:2])


def test_a_support_vector_machine(generator: kw.KeyGenerator) -> None:
    samples = np.random.default_rng(6).normal(size=(60, 4)).astype(np.float32)
    estimator = SVC(kernel="poly", degree=2).fit(samples, np.where((samples**2).sum(1) > 3.5, "far", "near"))
    model = compiler.to_onnx(estimator, samples)
    program = compiler.compile_program(
        model, compiler.Target(slots=64, levels=3), compiler.Fit(calibration=samples)
    )
    compare(program, generator, samples[:2])
    scores = run_clear(program, samples)
    decided = np.abs(scores[:, 0]) > 2**-16  # of what `compare` allows
    # Versions of scikit-learn name this output differently.
    labels = next(answer for name, answer in program.answers(scores).items() if "label" in name).ravel()
    assert np.array_equal(labels[decided], estimator.predict(samples)[decided])


def test_every_planned_key_is_needed(generator: kw.KeyGenerator, build: Build) -> None:
    model = build(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Mul", ["h", "h"], ["y"])],
        (8,),
        {"w": np.ones((8, 8), np.float32) / 8},
    )
    program = compiler.compile_program(model, compiler.Target(slots=8, levels=2))
    encrypted = encrypt_sample(program, kw.Encryptor(generator.public_key()), np.ones(8))
    execution = KeyFrontier(program, parameters()).execution
    for skip in range(len(execution.key_specs)):
        keys = evaluation_keys(execution, generator, skip)
        with pytest.raises(kw.errors.MismatchError, check=lambda error: error.code == "plan"):
            execution.follow(keys)
        with pytest.raises(kw.errors.MissingKeyError):
            EncryptedBackend(kw.Evaluator(parameters(), keys), plan=execution).run(program, encrypted)
