"""Run a model on encrypted samples: keys, encryption, evaluation and decryption in one process."""

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import keywright as kw
from keywright import compiler, runtime
from keywright._files import new_file, require_place
from keywright._units import format_bytes, format_seconds, quantity
from keywright.commands.helpers.arguments import (
    add_batch_argument,
    add_model_arguments,
    add_preset_argument,
    add_shared,
)
from keywright.commands.helpers.errors import CommandError
from keywright.commands.helpers.fit import compile_model, fit_record, guard_samples, print_fit
from keywright.commands.helpers.inputs import load_features, load_typical
from keywright.commands.helpers.memory import key_memory, memory_budget, print_memory
from keywright.commands.output.report import print_report
from keywright.commands.steps.decrypt import prediction_columns, predictions
from keywright.commands.terminal import Column, Terminal, Value
from keywright.errors import ModelRefusedError, ParameterError
from keywright.model import Inference, Model
from keywright.plan import PlanExecution
from keywright.plan.cost import Calibration
from keywright.plan.memory import peak_bytes
from keywright.plan.workload import performed_bootstraps

LAYERS = [
    Column("kind", "kind"),
    Column("layers", "layers", "number"),
    Column("rotations", "rotations", "number"),
    Column("key_switches", "key switches", "number"),
    Column("seconds", "measured", "seconds"),
    Column("predicted", "predicted", "seconds"),
]

PREDICTED_BATCHES, PREDICTED_REPETITIONS = 2, 2
"""Batches, and runs with simulated errors for each, from which the error is predicted: six times the work of
one run."""

EXAMPLE = "keywright infer model.onnx --input samples.npy --calibration typical.npy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_arguments(parser)
    parser.add_argument(
        "--input", type=Path, help="one sample or many (.npy), an image, or a folder of images in [0, 1]"
    )
    parser.add_argument("--count", type=int, help="maximum number of samples to take")
    add_shared(parser, "--force")
    add_batch_argument(parser, automatic=True)
    parser.add_argument("--out", type=Path, help="file of the results (.npy), (count, *output_shape)")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="instead of running, print ring, keys, traffic, fit, layers, levels, bootstraps, predicted "
        "times, memory, and costs of batches",
    )
    add_preset_argument(parser)
    add_shared(parser, "--memory", "--key-memory")


def predict_error(
    program: compiler.Program, plan: PlanExecution, samples: NDArray[np.float64], terminal: Terminal
) -> runtime.Simulation:
    """Predict and print the error of the first samples' results.

    Raises:
        OutOfRangeError: a sample drives a value above 1 into a bootstrap.
    """
    with terminal.progress("predicting the error", None):
        result = runtime.simulate(
            program, plan, samples[: PREDICTED_BATCHES * program.batch], repetitions=PREDICTED_REPETITIONS
        )
    terminal.note(str(result))
    return result


def _predicted(result: runtime.Simulation) -> dict[str, float]:
    """Return the prediction for an output as JSON."""
    return {"predicted_mean_error": result.mean_error, "predicted_error": result.worst_error}


def predicted_speedup() -> tuple[float, str]:
    """Return the divisor of predicted times, which are for one thread, and the number of threads of the
    quotients. The divisor is 1 unless the speed of several threads was measured (`keywright calibrate`)."""
    count, calibration = kw.threads(), Calibration.stored()
    times = None if calibration is None else calibration.speedup(count)
    return (1.0, "one thread") if times is None or count == 1 else (times, f"{count} threads")


def explain(program: compiler.Program, terminal: Terminal) -> None:
    """Print what a program does at each level, and why."""
    times, of_threads = predicted_speedup()
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
                "seconds": layer.seconds / times,
            }
            for layer in program.layers
        ],
        title=f"Layers; times are predicted for {of_threads} and a key for every rotation",
    )


BATCHES = [
    Column("batch", "samples at a time", "number"),
    Column("seconds", "predicted time, per sample", "seconds"),
    Column("sent_bytes", "sent, per sample", "bytes"),
    Column("returned_bytes", "returned, per sample", "bytes"),
]


def explain_batches(compiled: Model, terminal: Terminal) -> None:
    """Print the cost of a sample if 1, 2, 4, ... share ciphertexts, as long as that makes it faster."""
    rows: list[dict[str, int | float]] = []
    with terminal.progress("weighing batches", None):
        while True:
            batch = 1 << len(rows)
            try:
                other = compiled.for_batch(batch)
            except (ParameterError, ModelRefusedError):
                break  # there are fewer slots, or its diagonals or errors are too large
            rows.append(batch_row(other))
            if len(rows) > 1 and rows[-1]["seconds"] >= rows[-2]["seconds"]:
                break
    terminal.table(BATCHES, rows, title="Samples that share ciphertexts; times as for the layers")


def batch_row(compiled: Model) -> dict[str, int | float]:
    """Return the cost of a sample in a full batch: predicted seconds, and bytes of its ciphertexts."""
    program, report = compiled.program, compiled.report
    return {
        "batch": program.batch,
        "seconds": program.seconds / predicted_speedup()[0] / program.batch,
        "sent_bytes": report.sizes.sent_bytes / program.batch,
        "returned_bytes": report.sizes.returned_bytes / program.batch,
    }


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the largest output of every sample, and write all outputs if a file is named."""
    if options.input is None and not options.explain:
        raise CommandError("--input is missing; name the samples to classify, or add --explain")
    if options.count is not None and options.count < 1:
        raise CommandError(f"--count {options.count} is too small; use at least 1 sample")
    if options.out is not None:
        require_place(options.out)
    budget, start = memory_budget(options), time.perf_counter()
    count = 1
    if options.input is not None:
        count = len(load_typical(options.input, options.model, options.count, finite=False))
    compiled = compile_model(options.model, options, terminal, samples=count, batch=options.batch)
    print_fit(compiled.program, terminal, table=options.explain)
    if options.explain:
        with terminal.progress("planning keys and memory", None):
            model, planned = compiled.plan_batches(count, budget, key_memory(options))
        # The keys of this process, whose bytes its memory has below.
        kept = model.with_plan(planned.execution.plan)
        title = f"{options.model} with keys for this process; keywright info shows the keys for a server"
        print_report(kept, terminal, title=title, seconds=planned.seconds)
        explain(model.program, terminal)
        explain_batches(compiled, terminal)
        print_memory(planned, terminal)
        source = options.input or options.calibration
        if source is None:
            terminal.note("give --input or --calibration to predict the error of the outputs")
            return
        count = options.calibration_count if options.input is None else options.count
        samples = load_features(source, compiled.program, count)
        result = predict_error(compiled.program, planned.execution, samples, terminal)
        if terminal.json:
            terminal.record(_predicted(result))
        return
    samples = load_features(options.input, compiled.program, options.count)
    guard_samples(compiled.client(), samples, force=options.force, terminal=terminal)
    with terminal.progress("planning keys and memory", None):
        compiled, planned = compiled.plan_batches(len(samples), budget, key_memory(options))
    program = compiled.program
    compile_seconds = time.perf_counter() - start
    batch = f", {compiled.program.batch} samples at a time" if compiled.program.batch > 1 else ""
    terminal.note(f"{quantity(compiled.program.depth, 'level')} deep{batch}; {compiled.parameters!r}")
    predicted = predict_error(compiled.program, planned.execution, samples, terminal)
    inference = compiled.infer(samples, planned, terminal.progress)
    for warning in compiled.warnings_about(inference.outputs, planned):
        terminal.warn(warning)
    if options.out is not None:
        with new_file(options.out) as path, path.open("wb") as file:
            np.save(file, inference.outputs)
    columns = [*prediction_columns(program), Column("seconds", "evaluation", "seconds")]
    terminal.table(columns, _predictions(program, inference))
    if terminal.json:
        terminal.record(_summary(compiled, inference, compile_seconds) | _predicted(predicted))
    else:
        batch = "sample" if program.batch == 1 else f"batch of up to {program.batch} samples"
        title = (
            f"Time of a {batch}; predictions are for {predicted_speedup()[1]} and a key for every rotation"
        )
        terminal.table(LAYERS, _kinds(inference), title=title)
    prepared = inference.preparation
    keys, encoded, peak, total = map(
        format_bytes,
        (prepared.key_bytes, prepared.plaintext_bytes, peak_bytes(), inference.planned.memory.total),
    )
    terminal.note(
        f"keys made in {format_seconds(prepared.key_seconds)}; {error_text(inference)}\n"
        f"memory: keys {keys}, encoded model {encoded}, peak {peak}, predicted {total}"
    )


def _predictions(program: compiler.Program, inference: Inference) -> list[dict[str, Value]]:
    """Return a row for each sample; its time is its share of its batch's time."""
    batches = zip(inference.batches.samples, inference.batches.evaluate_seconds, strict=True)
    shares = [seconds / count for count, seconds in batches for _ in range(count)]
    rows = predictions(program, inference.outputs)
    return [row | {"seconds": seconds} for row, seconds in zip(rows, shares, strict=True)]


def _summary(compiled: Model, inference: Inference, compile_seconds: float) -> dict[str, object]:
    """Return the costs of all steps as JSON."""
    samples, batches = len(inference.outputs), len(inference.batches.samples)
    return {
        "samples": samples,
        "batch": compiled.program.batch,
        "compile_seconds": compile_seconds,
        "key_seconds": inference.preparation.key_seconds,
        "prepare_seconds": inference.preparation.seconds,
        "encrypt_seconds": sum(inference.batches.encrypt_seconds),
        "evaluate_seconds": sum(inference.batches.evaluate_seconds),
        "decrypt_seconds": sum(inference.batches.decrypt_seconds),
        "seconds_per_sample": sum(inference.batches.evaluate_seconds) / samples,
        "sent_bytes": inference.batches.sent_bytes * batches,
        "returned_bytes": inference.batches.returned_bytes * batches,
        "key_bytes": inference.preparation.key_bytes,
        "model_bytes": inference.preparation.plaintext_bytes,
        "peak_bytes": peak_bytes(),
        "predicted_peak_bytes": inference.planned.memory.total,
        "memory": inference.planned.memory.parts(),
        "memory_budget": inference.planned.budget,
        "error_bound": inference.error_bound if np.isfinite(inference.error_bound) else None,
        "fit": fit_record(compiled.program),
        "key_switches": key_switches(compiled),
        "predicted_seconds": inference.planned.seconds / predicted_speedup()[0],
        "kinds": _kinds(inference),
    }


def _kinds(inference: Inference) -> list[dict[str, Value]]:
    """Return the kinds of layers, with times predicted for the threads of this process."""
    times, _ = predicted_speedup()
    return [{**kind, "predicted": float(kind["predicted"]) / times} for kind in inference.kinds]


def key_switches(compiled: Model) -> int:
    """Return the key switches of one run, including the key switches of bootstraps."""
    program = compiled.program
    count = sum(switch.count for switch in program.key_switches)
    for plan in performed_bootstraps(program, compiled.bootstraps).values():
        groups = sum(times * max(len(elements), 1) for *_, elements, times in plan.key_groups)
        count += len(plan.fixed_keys) * plan.iterations + groups
    return count


def error_text(inference: Inference) -> str:
    """Describe the bound on the difference between encrypted outputs and the outputs of the program in the
    clear.

    Because it holds for all inputs, it is too large to be useful for deep networks."""
    if inference.error_bound < np.abs(inference.outputs).max(initial=0.0):
        return f"encryption changes outputs by at most {inference.error_bound:.2g} for all inputs"
    return "the bound for the worst input is larger than the outputs"
