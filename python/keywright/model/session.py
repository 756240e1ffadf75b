"""Client and server in one process: results under encryption, and their costs."""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keywright._core import Ciphertext, EvaluationKeys, KeyGenerator, Parameters, SecretKey
from keywright._progress import Progress, silent
from keywright.model.folder.files import EVALUATION_KEYS
from keywright.plan.memory.process import ProcessPlan
from keywright.program.program import Program
from keywright.runtime.evaluation import Evaluation

from .client import ModelClient
from .server import ModelServer


@dataclass(frozen=True)
class Inference:
    """Results of samples, and their costs.

    Attributes:
        outputs: (samples, *output_shape).
        key_seconds: time to make all keys.
        key_bytes: of the evaluation keys.
        prepare_seconds: time to encode the model, once.
        batches: samples of each batch.
        encrypt_seconds, evaluate_seconds, decrypt_seconds: for each batch.
        sent_bytes, returned_bytes: of the ciphertexts of a batch.
        error_bound: derived bound on the error of every output.
        kinds: kinds of layers, with their times per batch; see `LayerClock.by_kind`.
        plaintext_bytes: of the encoded model.
        planned: the memory plan.
    """

    outputs: NDArray[np.float64]
    key_seconds: float
    key_bytes: int
    prepare_seconds: float
    batches: list[int]
    encrypt_seconds: list[float]
    evaluate_seconds: list[float]
    decrypt_seconds: list[float]
    sent_bytes: int
    returned_bytes: int
    error_bound: float
    kinds: list[dict[str, str | int | float]]
    plaintext_bytes: int
    planned: ProcessPlan


def infer(
    program: Program,
    parameters: Parameters,
    samples: NDArray[np.float64],
    planned: ProcessPlan,
    progress: Progress = silent,
) -> Inference:
    """Run client and server on samples, (count, *input_shape), in batches of the program. The server's part
    only sees ciphertexts and evaluation keys.

    Args:
        planned: keys and diagonals, from `CompiledModel.plan_process`.
        progress: receives the progress of every part.
    """
    with ExitStack() as stack:
        start, execution = time.perf_counter(), planned.execution
        secret = SecretKey.generate(parameters)
        keys = _make_keys(secret, parameters, planned, progress, stack)
        key_seconds = time.perf_counter() - start
        client = ModelClient(program, parameters, secret=secret)
        server = ModelServer(program, parameters, execution)
        evaluation = Evaluation(program, parameters, keys, planned, progress)
        return _evaluate(client, server, evaluation, samples, planned, key_seconds, progress)


def _make_keys(
    secret: SecretKey, parameters: Parameters, planned: ProcessPlan, progress: Progress, stack: ExitStack
) -> EvaluationKeys:
    """Make the keys, in memory or in a temporary file from which they are streamed."""
    generator, execution = KeyGenerator(secret), planned.execution
    specs = execution.key_specs
    if planned.key_memory is None:
        with progress("evaluation keys", len(specs)) as advance:
            made = generator.evaluation_keys(
                relinearization=False, specs=specs, progress=lambda done, total: advance(1)
            )
        return execution.follow(made)
    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="keywright."))) / EVALUATION_KEYS
    with progress("evaluation keys, to a file", len(specs)) as advance:
        generator.save_evaluation_keys(path, specs, lambda done, total: advance(1))
    return execution.load_keys(path, memory=planned.key_memory)


def _evaluate(
    client: ModelClient,
    server: ModelServer,
    evaluation: Evaluation,
    samples: NDArray[np.float64],
    planned: ProcessPlan,
    key_seconds: float,
    progress: Progress,
) -> Inference:
    program, clock = client.program, time.perf_counter
    batches = program.batches(samples)
    outputs, encrypting, evaluating, decrypting = [], [], [], []
    sent, returned, error_bound = 0, 0, 0.0
    predicted = sum(layer.seconds for layer in program.layers)
    with progress(f"{len(samples)} samples", predicted * len(batches)) as advance:
        for batch in batches:
            start = clock()
            message = [bytes(ciphertext.to_bytes()) for ciphertext in client.encrypt_batch(batch)]
            encrypting.append(clock() - start)

            start = clock()
            inputs = [server.read_ciphertext(data) for data in message]
            answer = [bytes(output.to_bytes()) for output in evaluation.run(inputs, advance)]
            evaluating.append(clock() - start)

            start = clock()
            results = [Ciphertext.from_bytes(data, client.parameters) for data in answer]
            outputs.append(client.decrypt_batch(results, len(batch)))
            decrypting.append(clock() - start)
            sent, returned = sum(map(len, message)), sum(map(len, answer))
            error_bound = max(error_bound, *(result.error_bound for result in results))
    return Inference(
        np.concatenate(outputs),
        key_seconds,
        evaluation.keys.bytes,
        evaluation.prepare_seconds,
        [len(batch) for batch in batches],
        encrypting,
        evaluating,
        decrypting,
        sent,
        returned,
        error_bound * program.output_unit,
        evaluation.clock.by_kind(len(batches)),
        evaluation.plaintext_bytes,
        planned,
    )
