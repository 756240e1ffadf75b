"""Classify samples under encryption in one go: keys, encryption, evaluation and decryption in one process."""

import argparse
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright import nn
from keywright._terminal import Column, Terminal
from keywright.nn.run.encrypted import EncryptedBackend, decrypt_result, encrypt_sample_seeded
from keywright.nn.run.timing import LayerClock

from .decrypt import PREDICTION, prediction
from .helpers.arguments import add_model_arguments, add_preset_argument
from .helpers.errors import CommandError
from .helpers.folders import new_file
from .helpers.inputs import load_samples
from .helpers.program_and_keys import Compiled, compile_model, make_keys

LAYERS = [
    Column("kind", "kind"),
    Column("layers", "layers", "number"),
    Column("rotations", "rotations", "number"),
    Column("seconds", "measured", "seconds"),
    Column("predicted", "predicted", "seconds"),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser)
    parser.add_argument(
        "--input", type=Path, help="one sample or many (.npy), an image, or a folder of images in [0, 1]"
    )
    parser.add_argument(
        "--count", type=int, help="how many samples to classify, and to calibrate on, at most"
    )
    parser.add_argument("--out", type=Path, help="file of the results (.npy), (count, *output_shape)")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="print layers, levels, bootstraps and predicted times instead of running",
    )
    add_preset_argument(parser)


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
        kinds: of layers, with their times; see `LayerClock.by_kind`.
        plaintext_bytes: of the encoded model.
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
    kinds: list[dict[str, str | int | float]]
    plaintext_bytes: int


def infer(compiled: Compiled, samples: NDArray[np.float64], terminal: Terminal) -> Inference:
    """Run client and server on samples. The server's part sees ciphertexts and evaluation keys only."""
    program, parameters = compiled.program, compiled.parameters
    clock = time.perf_counter
    start = clock()
    secret = kw.SecretKey.generate(parameters)
    execution = compiled.execution
    keys = execution.follow(make_keys(kw.KeyGenerator(secret), execution.key_specs(), terminal))
    key_seconds = clock() - start
    client, evaluator = kw.Decryptor(secret), kw.Evaluator(parameters, keys)
    steps = len(samples) * sum(step.opcode != "input" for step in program.instructions)
    outputs, encrypting, evaluating, decrypting = [], [], [], []
    sent_bytes, returned_bytes, error_bound = 0, 0, 0.0
    with terminal.progress("operations on ciphertexts", steps) as advance:
        stopwatch = LayerClock(program, advance)
        start = clock()
        bootstrappers = [kw.Bootstrapper(plan) for plan in execution.bootstrapper_plans]
        server = EncryptedBackend(evaluator, bootstrappers, plan=execution, on_step=stopwatch.step)
        server.prepare(program)
        prepare_seconds = clock() - start
        for sample in samples:
            start = clock()
            message = [ciphertext.to_bytes() for ciphertext in encrypt_sample_seeded(program, client, sample)]
            encrypting.append(clock() - start)

            start = clock()
            inputs = [kw.SeededCiphertext.from_bytes(data, parameters).expand() for data in message]
            stopwatch.start()
            answer = [ciphertext.to_bytes() for ciphertext in server.run(program, inputs)]
            evaluating.append(clock() - start)

            start = clock()
            results = [kw.Ciphertext.from_bytes(data, parameters) for data in answer]
            outputs.append(decrypt_result(program, client, results))
            decrypting.append(clock() - start)
            sent_bytes, returned_bytes = sum(map(len, message)), sum(map(len, answer))
            error_bound = max(error_bound, *(result.error_bound for result in results))
    scale = program.output_scale
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
        error_bound * scale,
        stopwatch.by_kind(len(samples)),
        server.plaintext_bytes + sum(bootstrapper.bytes for bootstrapper in bootstrappers),
    )


def explain(program: nn.Program, terminal: Terminal) -> None:
    """Print what a program does at which level, and why."""
    terminal.table(
        [
            Column("layer", "layer"),
            Column("levels", "levels"),
            Column("rotations", "rotations", "number"),
            Column("seconds", "predicted", "seconds"),
        ],
        [
            {
                "layer": f"bootstrap {layer.name}" if layer.kind == "bootstrap" else layer.name,
                "levels": f"{layer.input_level} to {layer.output_level}",
                "rotations": layer.rotations,
                "seconds": layer.seconds,
            }
            for layer in program.layers
        ],
        title=f"{program.depth} levels, {sum(layer.seconds for layer in program.layers):.1f} s predicted",
    )


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the largest output of every sample, and write all outputs if a file is named."""
    if options.input is None and not options.explain:
        raise CommandError("--input names what to classify; with --explain it is not needed")
    if options.count is not None and options.count < 1:
        raise CommandError(f"--count {options.count}: at least 1 sample is needed")
    with terminal.progress("compiling", None):
        compiled = compile_model(options.model, options.calibration, options.preset, options.count)
    if options.explain:
        explain(compiled.program, terminal)
        return
    samples = load_samples(options.input, compiled.program.input_shape, options.count)
    with terminal.progress("planning keys", None):
        _ = compiled.execution
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
    if not terminal.json:
        terminal.table(LAYERS, inference.kinds, title="Time per sample by kind of layer")
    gigabytes = [size / 1e9 for size in (inference.key_bytes, inference.plaintext_bytes, peak_bytes())]
    terminal.note(
        f"keys {inference.key_seconds:.2f} s, {error_text(inference)}; "
        f"GB: keys {gigabytes[0]:.2f}, encoded model {gigabytes[1]:.2f}, peak memory {gigabytes[2]:.2f}"
    )


def error_text(inference: Inference) -> str:
    """What the bound says about the outputs. It holds for all inputs: deep networks have none of use."""
    if inference.error_bound < np.abs(inference.outputs).max(initial=0.0):
        return f"error of outputs at most {inference.error_bound:.2g}"
    return "the worst case over all inputs bounds the error of the outputs by more than they are"


def peak_bytes() -> int:
    """The largest resident memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
