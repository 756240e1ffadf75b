"""Several samples in one ciphertext: each gets the result that it gets alone."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keywright import compiler, runtime
from keywright.compiler.layout.batches import interleave_transform
from keywright.errors import EncodeError, FormatError
from keywright.plan import KeyFrontier
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.runtime import run_clear
from keywright.runtime.encrypted.backend import EncryptedBackend
from onnx import helper
from tests.ciphertexts import decrypt_result, encrypt_sample, encrypt_sample_seeded

Build = Callable[..., onnx.ModelProto]
node = helper.make_node


@pytest.fixture(scope="module")
def residual(build: Build) -> onnx.ModelProto:
    """Two convolutions, one of stride 2, a polynomial beside a shortcut, a dense layer."""
    rng = np.random.default_rng(5)
    return build(
        [
            node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
            node("Tanh", ["a"], ["t"]),
            node("Conv", ["t", "v"], ["b"], pads=[1, 1, 1, 1]),
            node("Add", ["b", "t"], ["s"]),
            node("Relu", ["s"], ["r"]),
            node("Flatten", ["r"], ["f"]),
            node("Gemm", ["f", "g", "h"], ["y"]),
        ],
        (2, 6, 6),
        {
            "w": rng.normal(size=(4, 2, 3, 3)).astype(np.float32) / 4,
            "v": rng.normal(size=(4, 4, 3, 3)).astype(np.float32) / 6,
            "g": rng.normal(size=(36, 5)).astype(np.float32) / 6,
            "h": rng.normal(size=5).astype(np.float32),
        },
    )


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return np.random.default_rng(6).normal(size=(11, 2, 6, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def fit(samples: np.ndarray) -> compiler.Fit:
    return compiler.Fit(calibration=samples, activations={"tanh": "chebyshev:7", "relu": "chebyshev:2"})


TARGET = compiler.Target(slots=512, levels=12)


@pytest.fixture(scope="module")
def alone(residual: onnx.ModelProto, fit: compiler.Fit) -> compiler.Program:
    return compiler.compile_program(residual, TARGET, fit)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_interleaved_matrix_is_the_matrix_of_every_sample(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    slots, batch = data.draw(st.sampled_from([8, 32])), data.draw(st.sampled_from([1, 2, 8]))
    period = data.draw(st.sampled_from([1, 2, slots]))
    steps = data.draw(st.sets(st.integers(0, slots - 1), min_size=1, max_size=6))
    diagonals = {r: rng.normal(size=period) for r in steps}
    transform = DiagonalMatrix(slots, (diagonals,), data.draw(st.sampled_from([1, 4, slots])))
    dense = np.zeros((slots, slots))
    for r, values in diagonals.items():
        for i in range(slots):
            dense[i, (i + r) % slots] = values[i % period]
    x = rng.normal(size=(slots, batch))
    backend = runtime.ClearBackend(slots * batch)
    outputs = backend.linear_transform(
        [backend.encrypt(x.ravel(), 1)], interleave_transform(transform, batch)
    )
    assert np.allclose(outputs.values.reshape(slots, batch), dense @ x, rtol=0, atol=1e-12)
    # As many key switches as one sample takes.
    single = runtime.ClearBackend(slots)
    single.linear_transform([single.encrypt(x[:, 0].copy(), 1)], transform)
    assert [(s.step * batch, s.level) for s in single.log] == [(s.step, s.level) for s in backend.log]


@pytest.mark.parametrize("batch", [1, 2, 4, 32, 512])
def test_every_sample_has_the_result_that_it_has_alone(
    residual: onnx.ModelProto, samples: np.ndarray, fit: compiler.Fit, alone: compiler.Program, batch: int
) -> None:
    program = compiler.compile_program(residual, replace(TARGET, batch=batch), fit)
    assert program.batch == batch
    assert program.slots <= 512
    expected = np.asarray([run_clear(alone, sample) for sample in samples])
    outputs = run_clear(program, samples)
    assert outputs.shape == (11, 5)
    assert np.abs(outputs - expected).max() < 1e-12 * np.abs(expected).max() * program.slots
    assert np.array_equal(run_clear(program, samples[7]), run_clear(program, samples[7:8])[0])


def test_a_batch_costs_what_one_sample_does(
    residual: onnx.ModelProto, samples: np.ndarray, fit: compiler.Fit, alone: compiler.Program
) -> None:
    """As long as every sample has the room that it has alone."""
    room = 512 // alone.slots
    program = compiler.compile_program(residual, replace(TARGET, batch=room), fit)
    assert room > 1
    assert program.slots == 512
    assert program.input.level == alone.input.level
    assert program.layers == alone.layers
    scaled = [dataclasses.replace(switch, step=0, source="") for switch in alone.key_switches]
    assert [dataclasses.replace(switch, step=0, source="") for switch in program.key_switches] == scaled
    assert [key.step for key in program.required_keys] == [key.step * room for key in alone.required_keys]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 100])
def test_the_compiler_chooses_the_batch_of_least_time(
    residual: onnx.ModelProto, fit: compiler.Fit, count: int
) -> None:
    def seconds(program: compiler.Program) -> float:
        return program.seconds * -(-count // program.batch)

    chosen = compiler.compile_program(residual, replace(TARGET, samples=count), fit)
    largest = max(len(chosen.input.layout.positions), 2 * 6 * 6)
    every = [
        compiler.compile_program(residual, replace(TARGET, batch=1 << k), fit)
        for k in range(10)
        if (1 << k) * largest <= TARGET.slots * 4
    ]
    assert len(every) == 5
    assert seconds(chosen) <= min(map(seconds, every)) * (1 + 1e-9)
    assert (chosen.batch == 1) == (count == 1)


def test_samples_that_are_not_there_hold_others(
    residual: onnx.ModelProto, samples: np.ndarray, fit: compiler.Fit
) -> None:
    """Zeros can leave the range of a polynomial, and its values then corrupt their neighbours."""
    program = compiler.compile_program(residual, replace(TARGET, batch=4), fit)
    three = program.pack(samples[:3])
    assert np.array_equal(three, program.pack(samples[[0, 1, 2, 0]]))
    assert np.array_equal(program.pack(samples[0]), program.pack(np.repeat(samples[:1], 4, axis=0)))
    assert [len(part) for part in program.batches(samples)] == [4, 4, 3]
    with pytest.raises(EncodeError, match="up to 4 at a time", check=lambda error: error.code == "samples"):
        program.pack(samples[:5])
    with pytest.raises(EncodeError, match="not finite", check=lambda error: error.code == "samples"):
        program.batches(np.where(samples > 0, np.nan, samples))
    for shape in ((0, 2, 6, 6), (3, 6, 6), ()):
        with pytest.raises(
            EncodeError, match="samples have shape", check=lambda error: error.code == "samples"
        ):
            program.batches(np.zeros(shape))
    slots = np.zeros((program.output.layout.ciphertexts, program.slots))
    for count in (0, 5):
        with pytest.raises(EncodeError, match="1 to 4", check=lambda error: error.code == "samples"):
            program.unpack(slots, count)
    assert program.unpack(slots, 2).shape == (2, 5)
    assert program.unpack(slots).shape == (5,)


@pytest.mark.parametrize("batch", [0, 3, -2, 1024])
def test_batches_that_there_are_none_of(batch: int) -> None:
    with pytest.raises(ValueError, match=f"got {batch}"):
        compiler.Target(slots=512, levels=1, batch=batch)


def test_a_batch_fits_the_bootstraps() -> None:
    bootstrap = compiler.Bootstrap(64, 1, 4)
    with pytest.raises(ValueError, match="at most the 64 slots"):
        compiler.Target(slots=512, levels=4, batch=128, bootstraps=(bootstrap,))
    with pytest.raises(ValueError, match="samples must be at least 1"):
        compiler.Target(slots=512, levels=4, samples=0)


def test_files(residual: onnx.ModelProto, samples: np.ndarray, fit: compiler.Fit, tmp_path: Path) -> None:
    path = tmp_path / "program.kwp"
    program = compiler.compile_program(residual, replace(TARGET, batch=4), fit)
    compiler.save(program, path)
    loaded = compiler.load(path)
    assert loaded.batch == 4
    assert np.array_equal(run_clear(loaded, samples), run_clear(program, samples))

    def rewritten(batch: int) -> compiler.Program:
        with zipfile.ZipFile(path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        description = json.loads(entries["program.json"]) | {"batch": batch}
        entries["program.json"] = json.dumps(description).encode()
        changed = tmp_path / "changed.kwp"
        with zipfile.ZipFile(changed, "w") as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        return compiler.load(changed)

    for batch, word in ((3, "power of two"), (1 << 10, "power of two"), (8, "interleave 8")):
        with pytest.raises(FormatError, match=word, check=lambda error: error.code == "program"):
            rewritten(batch)


@pytest.mark.parametrize("batch", [8, None])
def test_ciphertexts_of_several_samples(
    residual: onnx.ModelProto, samples: np.ndarray, fit: compiler.Fit, batch: int | None
) -> None:
    """With as many samples as fit one ciphertext, and with all samples, which are faster in several
    ciphertexts."""
    widths = [50, *[40] * 9]
    parameters = kw.Parameters.from_bits(11, widths, [50, 50], 40, insecure=True)
    count = len(samples)
    target = compiler.Target(slots=1024, levels=parameters.max_level, samples=count, batch=batch)
    program = compiler.compile_program(residual, target, fit)
    size, ciphertexts = (8, 1) if batch else (16, 2)
    assert program.batch == size
    assert len(program.pack(samples[:2])) == ciphertexts
    secret = kw.SecretKey.generate(parameters)
    generator, decryptor = kw.KeyGenerator(secret), kw.Decryptor(secret)
    execution = KeyFrontier(program, parameters).execution
    keys = generator.evaluation_keys(relinearization=False, specs=execution.key_specs)
    server = EncryptedBackend(kw.Evaluator(parameters, execution.follow(keys)), plan=execution)
    expected, rows_of_outputs = run_clear(program, samples), []
    for number, part in enumerate(program.batches(samples)):
        if number == 0:
            inputs = [ct.expand() for ct in encrypt_sample_seeded(program, decryptor, part)]
        else:
            inputs = encrypt_sample(program, kw.Encryptor(generator.public_key()), part)
        outputs = server.run(program, inputs)
        rows_of_outputs.append(decrypt_result(program, decryptor, outputs, len(part)))
        bound = max(ct.error_bound for ct in outputs) * program.output.scale
        assert np.abs(rows_of_outputs[-1] - expected[size * number :][: len(part)]).max() <= bound
    assert np.concatenate(rows_of_outputs).shape == (11, 5)
