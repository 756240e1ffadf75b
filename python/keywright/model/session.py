"""Client and server in one process: results under encryption, and their costs."""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keywright._core import EvaluationKeys
from keywright._progress import Progress, silent
from keywright.plan.memory.process import ProcessPlan

from .client import ModelClient
from .folder.files import EVALUATION_KEYS
from .server import ModelServer


@dataclass(frozen=True)
class Inference:
    """Results of samples, and their costs.

    Attributes:
        outputs: (samples, *output_shape).
        key_seconds: time to make all keys.
        key_bytes: of the evaluation keys in the server's memory.
        prepare_seconds: time to encode the model, once.
        batches: samples of each batch.
        encrypt_seconds, evaluate_seconds, decrypt_seconds: for each batch.
        sent_bytes, returned_bytes: of the ciphertexts of a batch.
        request: the last ciphertext that the server received, as bytes.
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
    request: bytes


def infer(
    client: ModelClient,
    server: ModelServer,
    samples: NDArray[np.float64],
    planned: ProcessPlan,
    progress: Progress = silent,
) -> Inference:
    """Run client and server on samples, (count, *input_shape), in batches of the program. The server's part
    only sees ciphertexts and evaluation keys.

    Args:
        planned: keys and diagonals, from `Model.plan_process`.
        progress: receives the progress of every part.
    """
    with ExitStack() as stack:
        start = time.perf_counter()
        keys = _make_keys(client, planned, progress, stack)
        key_seconds = time.perf_counter() - start
        server.take_keys(keys, planned, progress)
        return _evaluate(client, server, samples, planned, key_seconds, progress)


def _make_keys(
    client: ModelClient, planned: ProcessPlan, progress: Progress, stack: ExitStack
) -> EvaluationKeys:
    """Make the keys, in memory or in a temporary file from which they are streamed."""
    if planned.key_memory is None:
        return planned.execution.follow(client.evaluation_keys(progress))
    path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="keywright."))) / EVALUATION_KEYS
    client.save_evaluation_keys(path, progress)
    return planned.execution.load_keys(path, memory=planned.key_memory)


def _evaluate(
    client: ModelClient,
    server: ModelServer,
    samples: NDArray[np.float64],
    planned: ProcessPlan,
    key_seconds: float,
    progress: Progress,
) -> Inference:
    program, runner, clock = client.program, server.runner, time.perf_counter
    batches = program.batches(samples)
    outputs, encrypting, evaluating, decrypting = [], [], [], []
    sent, returned, error_bound, request = 0, 0, 0.0, b""
    predicted = sum(layer.seconds for layer in program.layers)
    with progress(f"{len(samples)} samples", predicted * len(batches)) as advance:
        for batch in batches:
            start = clock()
            message = client.encrypt_batch(batch)
            encrypting.append(clock() - start)

            start = clock()
            inputs = [server.requests.read(data) for data in message]
            results = runner.run(server.keys, inputs, advance)
            answer = [server.requests.write(result) for result in results]
            evaluating.append(clock() - start)

            start = clock()
            outputs.append(client.decrypt_batch(answer, len(batch)))
            decrypting.append(clock() - start)
            sent, returned, request = sum(map(len, message)), sum(map(len, answer)), message[-1]
            error_bound = max(error_bound, *(result.error_bound for result in results))
    return Inference(
        np.concatenate(outputs),
        key_seconds,
        server.keys.bytes,
        runner.prepare_seconds,
        [len(batch) for batch in batches],
        encrypting,
        evaluating,
        decrypting,
        sent,
        returned,
        error_bound * program.output_unit,
        runner.clock.by_kind(len(batches)),
        runner.plaintext_bytes,
        planned,
        request,
    )
