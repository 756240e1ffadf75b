"""Client and server in one process: results under encryption, and their costs."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keywright._copies import Unchanging
from keywright._core import EvaluationKeys
from keywright._processes import temporary_folder
from keywright._progress import Progress, silent
from keywright._units import quantity
from keywright.plan.memory.process import ProcessPlan

from .client import ModelClient
from .folder.files import EVALUATION_KEYS
from .server import ModelServer


@dataclass(frozen=True)
class Preparation:
    """Costs of the preparation, once per session.

    Attributes:
        key_seconds: time to make all keys.
        key_bytes: of the evaluation keys in the server's memory.
        seconds: time to encode the model.
        plaintext_bytes: of the encoded model.
    """

    key_seconds: float
    key_bytes: int
    seconds: float
    plaintext_bytes: int


@dataclass
class Batches:
    """Costs of batches.

    Thread safety: one thread at a time.

    Attributes:
        samples: of each batch.
        encrypt_seconds, evaluate_seconds, decrypt_seconds: of each batch.
        sent_bytes, returned_bytes: of the ciphertexts of a batch.
        request: the last ciphertext that the server received, as bytes.
    """

    samples: list[int] = field(default_factory=list)
    encrypt_seconds: list[float] = field(default_factory=list)
    evaluate_seconds: list[float] = field(default_factory=list)
    decrypt_seconds: list[float] = field(default_factory=list)
    sent_bytes: int = 0
    returned_bytes: int = 0
    request: bytes = b""


@dataclass(frozen=True)
class Inference(Unchanging, elsewhere="send its outputs, which are an array"):
    """Results of samples, and their costs.

    Attributes:
        outputs: (samples, *output_shape).
        error_bound: derived bound on the error of every output by encryption, without that of polynomials.
        preparation: costs of the preparation.
        batches: costs of the batches.
        kinds: kinds of layers, with their times per batch; see `LayerClock.by_kind`.
        planned: the memory plan.
    """

    outputs: NDArray[np.float64]
    error_bound: float
    preparation: Preparation
    batches: Batches
    kinds: list[dict[str, str | int | float]]
    planned: ProcessPlan


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
    path = stack.enter_context(temporary_folder()) / EVALUATION_KEYS
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
    parts, costs = program.batches(samples), Batches()
    outputs, error_bound = [], 0.0
    predicted = program.seconds
    with progress(quantity(len(samples), "sample"), predicted * len(parts)) as advance:
        for part in parts:
            costs.samples.append(len(part))
            start = clock()
            message = client.encrypt_batch(part)
            costs.encrypt_seconds.append(clock() - start)

            start = clock()
            answer = server.evaluate(message, advance)
            costs.evaluate_seconds.append(clock() - start)

            start = clock()
            outputs.append(client.decrypt_batch(answer.objects, len(part)))
            costs.decrypt_seconds.append(clock() - start)
            costs.request = message[-1]
            costs.sent_bytes, costs.returned_bytes = sum(map(len, message)), sum(map(len, answer.objects))
            error_bound = max(error_bound, answer.error_bound)
    return Inference(
        np.concatenate(outputs),
        error_bound * program.output.unit,
        Preparation(key_seconds, server.keys.bytes, runner.prepare_seconds, runner.plaintext_bytes),
        costs,
        runner.clock.by_kind(len(parts)),
        planned,
    )
