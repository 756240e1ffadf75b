"""Classify samples under encryption in one go: keys, encryption, evaluation and decryption in one process."""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright._terminal import Column, Terminal
from keywright.nn.encrypted import EncryptedBackend, decrypt_result, encrypt_sample_seeded

from .common import load_samples, new_file
from .decrypt import PREDICTION, prediction
from .keygen import add_compile_arguments
from .session import Compiled, compile_model, make_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--model", type=Path, required=True, help="ONNX model")
    parser.add_argument("--input", type=Path, required=True, help="one sample or many (.npy)")
    parser.add_argument("--out", type=Path, help="file of the results (.npy), (count, *output_shape)")
    add_compile_arguments(parser)


@dataclass(frozen=True)
class Inference:
    """Results of samples, and what they took.

    Attributes:
        outputs: (samples, *output_shape).
        key_seconds: to make all keys.
        key_bytes: of the evaluation keys.
        prepare_seconds: to encode the model, once.
        encrypt_seconds, evaluate_seconds, decrypt_seconds: for each sample.
        sent_bytes, returned_bytes: of the ciphertexts of a sample.
        error_bound: derived bound on the error of every output.
    """

    outputs: NDArray[np.float64]
    key_seconds: float
    key_bytes: int
    prepare_seconds: float
    encrypt_seconds: list[float]
    evaluate_seconds: list[float]
    decrypt_seconds: list[float]
    sent_bytes: int
    returned_bytes: int
    error_bound: float


def infer(compiled: Compiled, samples: NDArray[np.float64], terminal: Terminal) -> Inference:
    """Run client and server on samples. The server's part sees ciphertexts and evaluation keys only."""
    program, parameters = compiled.program, compiled.parameters
    clock = time.perf_counter
    start = clock()
    secret = kw.SecretKey.generate(parameters)
    keys = make_keys(kw.KeyGenerator(secret), compiled.specs, terminal)
    key_seconds = clock() - start
    client, evaluator = kw.Decryptor(secret), kw.Evaluator(parameters, keys)
    steps = len(samples) * sum(step.operation != "input" for step in program.instructions)
    outputs, encrypting, evaluating, decrypting = [], [], [], []
    sent_bytes, returned_bytes, error_bound = 0, 0, 0.0
    with terminal.progress("operations on ciphertexts", steps) as advance:
        server = EncryptedBackend(evaluator, on_step=lambda: advance(1))
        start = clock()
        server.prepare(program)
        prepare_seconds = clock() - start
        for sample in samples:
            start = clock()
            message = [ciphertext.to_bytes() for ciphertext in encrypt_sample_seeded(program, client, sample)]
            encrypting.append(clock() - start)

            start = clock()
            inputs = [kw.SeededCiphertext.from_bytes(data, parameters).expand() for data in message]
            answer = [ciphertext.to_bytes() for ciphertext in server.run(program, inputs)]
            evaluating.append(clock() - start)

            start = clock()
            results = [kw.Ciphertext.from_bytes(data, parameters) for data in answer]
            outputs.append(decrypt_result(program, client, results))
            decrypting.append(clock() - start)
            sent_bytes, returned_bytes = sum(map(len, message)), sum(map(len, answer))
            error_bound = max(error_bound, *(result.error_bound for result in results))
    return Inference(
        np.asarray(outputs),
        key_seconds,
        keys.bytes,
        prepare_seconds,
        encrypting,
        evaluating,
        decrypting,
        sent_bytes,
        returned_bytes,
        error_bound,
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the largest output of every sample, and write all outputs if a file is named."""
    compiled = compile_model(options.model, options.calibration, options.preset)
    samples = load_samples(options.input, compiled.program.input_shape)
    terminal.note(f"{compiled.program.depth} levels deep; {compiled.parameters!r}")
    inference = infer(compiled, samples, terminal)
    if options.out is not None:
        with new_file(options.out) as path, path.open("wb") as file:
            np.save(file, inference.outputs)
    rows = [
        prediction(number, output) | {"seconds": seconds}
        for number, (output, seconds) in enumerate(
            zip(inference.outputs, inference.evaluate_seconds, strict=True)
        )
    ]
    terminal.table([*PREDICTION, Column("seconds", "evaluation", "seconds")], rows)
    terminal.note(f"keys {inference.key_seconds:.2f} s, error of outputs at most {inference.error_bound:.2g}")
