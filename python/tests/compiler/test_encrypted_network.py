"""The shipped digits network on ciphertexts, compared with its evaluation in the clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import EncodeError, OperandError
from keywright.plan import KeyFrontier
from keywright.plan.keys.execution import PlanExecution
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from numpy.typing import NDArray
from tests.ciphertexts import decrypt_result, encrypt_sample, encrypt_sample_seeded


@dataclass(frozen=True)
class Digits:
    """Both sides of an inference."""

    parameters: kw.Parameters
    program: compiler.Program
    images: NDArray[np.float32]
    generator: kw.KeyGenerator
    decryptor: kw.Decryptor
    execution: PlanExecution
    backend: EncryptedBackend


@pytest.fixture(scope="module")
def digits() -> Digits:
    data = files("keywright") / "data"
    parameters = kw.Parameters.preset("N14_QP430_S40")
    program = compiler.compile_program(
        (data / "digits.onnx").read_bytes(),
        compiler.Target(slots=parameters.max_slots, levels=parameters.max_level),
    )
    with (data / "digits_test.npz").open("rb") as file:
        images = np.load(file)["images"]
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    execution = KeyFrontier(program, parameters).execution
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    backend = EncryptedBackend(kw.Evaluator(parameters, execution.follow(keys)), plan=execution)
    return Digits(parameters, program, images, generator, kw.Decryptor(secret), execution, backend)


def test_encrypted_results_are_the_clear_ones(digits: Digits) -> None:
    encryptor = kw.Encryptor(digits.generator.public_key())
    for index, image in enumerate(digits.images[:4]):
        if index % 2:
            inputs = encrypt_sample(digits.program, encryptor, image)
        else:
            inputs = [ct.expand() for ct in encrypt_sample_seeded(digits.program, digits.decryptor, image)]
        outputs = digits.backend.run(digits.program, inputs)
        encrypted = decrypt_result(digits.program, digits.decryptor, outputs)
        clear = run_clear(digits.program, image)
        assert encrypted.argmax() == clear.argmax()
        assert np.abs(encrypted - clear).max() <= max(ct.error_bound for ct in outputs)
        assert outputs[0].level == digits.program.output.level


def test_keys_are_at_the_levels_of_their_use(digits: Digits) -> None:
    specs = digits.execution.key_specs
    uses = {(use.galois_element(digits.parameters.log_n), use.level) for use in digits.program.required_keys}
    highest = dict(sorted(uses, key=lambda use: (use[0] or 0, use[1])))
    assert len(specs) >= len(highest)
    for spec in specs:
        assert spec.level <= highest[spec.galois_element]
        assert spec.seeded
    assert {spec.galois_element for spec in specs} == set(highest)


def test_a_missing_key_is_named(digits: Digits) -> None:
    specs = [s for s in digits.execution.key_specs if s.kind == "rotation"]
    keys = digits.generator.evaluation_keys(relinearization=False, specs=specs[1:])
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    backend = EncryptedBackend(kw.Evaluator(digits.parameters, keys), plan=digits.execution, on_step=count)
    inputs = encrypt_sample_seeded(digits.program, digits.decryptor, digits.images[0])
    with pytest.raises(kw.errors.MissingKeyError) as caught:
        backend.run(digits.program, [ct.expand() for ct in inputs])
    assert caught.value.level <= digits.program.input.level
    assert steps < len(digits.program.instructions)


def test_inputs_that_do_not_fit_are_refused(digits: Digits) -> None:
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        encrypt_sample_seeded(digits.program, digits.decryptor, np.zeros((3, 3)))
    with pytest.raises(EncodeError, check=lambda error: error.code == "samples"):
        encrypt_sample_seeded(digits.program, digits.decryptor, np.full((1, 8, 8), np.nan))
    with pytest.raises(OperandError):
        digits.backend.run(digits.program, [digits.decryptor.encrypt([1.0], slots=4).expand()])
    too_low = digits.decryptor.encrypt([1.0], slots=digits.program.slots, level=1).expand()
    with pytest.raises(OperandError):
        digits.backend.run(digits.program, [too_low])


def test_sums_of_different_scales_use_levels_to_spare(digits: Digits) -> None:
    values = np.linspace(-1, 1, digits.program.slots)
    x = digits.decryptor.encrypt(values, slots=digits.program.slots).expand()
    backend = digits.backend
    # The relinearization key of the program is below its input level.
    low = backend.drop_level(x, digits.program.input.level - 1)
    square = backend.mul(low, low)
    dropped = backend.drop_level(backend.drop_level(x, square.level + 2), square.level)
    for total in (backend.add(square, dropped), backend.add(dropped, square)):
        assert total.level == square.level
        decrypted = digits.decryptor.decrypt(total)
        assert np.abs(decrypted - (values**2 + values)).max() <= total.error_bound
    with pytest.raises(kw.errors.ScaleError):
        backend.add(square, backend.evaluator.drop_to_level(x, square.level))


def test_polynomials_are_at_the_level_of_their_degree(digits: Digits) -> None:
    values = np.linspace(-1, 1, digits.program.slots)
    x = digits.decryptor.encrypt(
        values, slots=digits.program.slots, level=digits.program.input.level - 1
    ).expand()
    result = digits.backend.polynomial(x, PolynomialSpec(np.array([0.5, 1.0, 0.25, 0.0, 0.0])))
    assert result.level == x.level - 3
    expected = np.polynomial.chebyshev.chebval(values, [0.5, 1.0, 0.25])
    assert np.abs(digits.decryptor.decrypt(result) - expected).max() <= result.error_bound


def test_the_ciphertexts_of_a_joined_value_have_one_scale(build: Callable[..., onnx.ModelProto]) -> None:
    """Each is made of one of the operands, whose scales differ; sums of them were refused in evaluations."""
    node, rng = onnx.helper.make_node, np.random.default_rng(1)
    sizes = {"a": (4, 4), "b": (4, 4), "s": (3, 8)}
    weights = {f"{name}.w": rng.normal(size=(*size, 1, 1)).astype(np.float32) for name, size in sizes.items()}
    nodes = [
        node("Conv", ["x", "a.w"], ["a"]),
        node("Mul", ["a", "a"], ["q"]),
        node("Conv", ["q", "b.w"], ["b"]),
        node("Concat", ["a", "b"], ["c"], axis=1),
        node("Mul", ["c", "c"], ["d"]),
        node("Conv", ["d", "s.w"], ["y"]),
    ]
    parameters = kw.Parameters.from_bits(10, [50] + 6 * [40], [50], 40, insecure=True)
    target = compiler.Target(slots=16, levels=parameters.max_level)
    program = compiler.compile_program(build(nodes, (4, 2, 2), weights), target)
    assert any(len(step.operands) > 1 for step in program.instructions if step.opcode == "linear_transform")
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    execution = KeyFrontier(program, parameters).execution
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    backend = EncryptedBackend(kw.Evaluator(parameters, execution.follow(keys)), plan=execution)
    sample = rng.uniform(-1, 1, (4, 2, 2))
    inputs = encrypt_sample(program, kw.Encryptor(generator.public_key()), sample)
    outputs = backend.run(program, inputs)
    error = decrypt_result(program, kw.Decryptor(secret), outputs) - run_clear(program, sample)
    assert np.abs(error).max() <= max(ct.error_bound for ct in outputs) * program.output.scale
