"""Client and server of one network in one process, as `keywright infer` has them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.peer import peak_rss_bytes
from keywright._terminal import Terminal
from keywright.commands.helpers.inputs import load_inputs
from keywright.commands.helpers.program_and_keys import compile_model, make_keys
from keywright.nn import Fit, Program, simulate
from keywright.nn.run.encrypted import EncryptedBackend, decrypt_result, encrypt_sample_seeded
from keywright.nn.run.timing import LayerClock
from numpy.typing import NDArray


@dataclass(frozen=True)
class Setting:
    """What is run.

    Attributes:
        model: ONNX file.
        program: file that is written.
        calibration: file of samples that activations are fitted on (.npy).
        activations: methods of `Fit.activations`.
        preset: parameters; chosen as `keywright infer` does where not given.
        batch: images in a ciphertext.
        threads: of the engine.
    """

    model: Path
    program: Path
    calibration: Path | None
    activations: dict[str, str]
    preset: str | None
    batch: int
    threads: int


class Session:
    """Compiles, makes keys and encodes the model.

    Args:
        typical: samples on which the error is predicted, (count, *input_shape).

    Attributes:
        facts: of a record's line about a run; see `record.RUN_FIELDS`.
    """

    def __init__(self, setting: Setting, typical: NDArray[np.float64]) -> None:
        kw.set_threads(setting.threads)
        clock = time.perf_counter
        start = clock()
        calibration = None if setting.calibration is None else load_inputs(setting.calibration)
        fit = Fit(calibration=calibration, activations=setting.activations)
        compiled = compile_model(setting.model, fit, setting.preset, batch=setting.batch)
        self.facts: dict[str, Any] = {"compile_s": clock() - start, "compile_peak_bytes": peak_rss_bytes()}
        self.program, self.parameters = compiled.program, compiled.parameters
        self.facts |= stored(self.program, setting.program)

        start = clock()
        execution = compiled.execution
        self.facts["plan_s"] = clock() - start

        start = clock()
        predicted = simulate(self.program, execution, typical)
        self.facts |= {
            "predict_s": clock() - start,
            "predicted_error": predicted.worst_error,
            "predicted_mean_error": predicted.mean_error,
        }

        start = clock()
        secret = kw.SecretKey.generate(self.parameters)
        made = make_keys(kw.KeyGenerator(secret), execution.key_specs(), Terminal(json=True))
        keys = execution.follow(made)
        self.facts |= {"keys_s": clock() - start, "keys": len(keys), "key_bytes": keys.bytes}
        self.facts["key_file_bytes"] = file_bytes(keys)

        start = clock()
        self.clock = LayerClock(self.program)
        bootstrappers = [kw.Bootstrapper(plan) for plan in execution.bootstrapper_plans]
        evaluator = kw.Evaluator(self.parameters, keys)
        self.server = EncryptedBackend(evaluator, bootstrappers, plan=execution, on_step=self.clock.step)
        self.server.prepare(self.program)
        self.facts |= {
            "prepare_s": clock() - start,
            "plaintext_bytes": self.server.plaintext_bytes + sum(b.bytes for b in bootstrappers),
        }
        self.client = kw.Decryptor(secret)
        self.facts |= {
            "parameters": repr(self.parameters),
            "threads": setting.threads,
            "depth": self.program.depth,
            "batch": self.program.batch,
            "bootstraps": sum(step.opcode == "bootstrap" for step in self.program.instructions),
            "rotations": sum(layer.rotations for layer in self.program.layers),
            "predicted_s": sum(layer.seconds for layer in self.program.layers),
            "setup_peak_bytes": peak_rss_bytes(),
        }

    def classify(self, samples: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Run samples that share ciphertexts, (count, *input_shape).

        Returns a line for each: those fields of `record.IMAGE_FIELDS` for which nothing runs in the clear,
        which would be memory of this process.
        """
        program, clock, count = self.program, time.perf_counter, len(samples)
        start = clock()
        message = [
            ciphertext.to_bytes() for ciphertext in encrypt_sample_seeded(program, self.client, samples)
        ]
        encrypt = clock() - start
        inputs = [kw.SeededCiphertext.from_bytes(data, self.parameters).expand() for data in message]
        before = list(self.clock.seconds)
        start = clock()
        self.clock.start()
        results = self.server.run(program, inputs)
        evaluate = clock() - start
        kinds: dict[str, float] = {}
        for layer, after, earlier in zip(program.layers, self.clock.seconds, before, strict=True):
            kinds[layer.kind] = kinds.get(layer.kind, 0.0) + (after - earlier) / count
        answer = [ciphertext.to_bytes() for ciphertext in results]
        start = clock()
        returned = [kw.Ciphertext.from_bytes(data, self.parameters) for data in answer]
        scores = decrypt_result(program, self.client, returned, count)
        decrypt = clock() - start
        bound = max(ciphertext.error_bound for ciphertext in returned) * program.output_scale
        return [
            {
                "scores": own.ravel().tolist(),
                "error_bound": bound,
                "seconds": evaluate / count,
                "together": count,
                "together_s": evaluate,
                "kinds": kinds,
                "encrypt_s": encrypt / count,
                "decrypt_s": decrypt / count,
                "sent_bytes": sum(map(len, message)) / count,
                "returned_bytes": sum(map(len, answer)) / count,
                "peak_bytes": peak_rss_bytes(),
                "rss_bytes": resident_bytes(),
            }
            for own in scores
        ]


def groups(numbers: Sequence[int], batch: int) -> Iterator[list[int]]:
    """Places of the samples that share ciphertexts."""
    for first in range(0, len(numbers), batch):
        yield list(range(first, min(first + batch, len(numbers))))


def stored(program: Program, path: Path) -> dict[str, Any]:
    """What saving and loading a program takes."""
    clock = time.perf_counter
    start = clock()
    program.save(path)
    saved = clock()
    Program.load(path)
    return {"save_s": saved - start, "load_s": clock() - saved, "program_file_bytes": path.stat().st_size}


def file_bytes(keys: kw.EvaluationKeys) -> int:
    """Bytes of the keys in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.kw"
        keys.save(path)
        return path.stat().st_size


def resident_bytes() -> int:
    """Memory of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmRSS line; the study runs on Linux")
