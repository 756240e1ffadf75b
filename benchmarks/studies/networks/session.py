"""Client and server of one network in one process, as `keywright infer` has them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
from harness.measurement.clock import timed
from harness.programs.peer import peak_rss_bytes
from keywright import compiler
from keywright.commands.helpers.inputs import load_inputs
from keywright.compiler import Program
from keywright.plan.cost.calibration import Calibration
from keywright.plan.memory.machine import default_budget, resident_bytes
from keywright.runtime import simulate
from numpy.typing import NDArray


@dataclass(frozen=True)
class Setting:
    """The settings of a run.

    Attributes:
        model: ONNX file.
        program: file that is written; streamed keys are beside it.
        calibration: file of samples that activations are fitted on (.npy).
        activations: methods of `Fit.activations`.
        preset: parameters; by default chosen as `keywright infer` does.
        batch: images in a ciphertext.
        images: number of images to evaluate.
        memory: maximum bytes of the process; by default most of the free memory.
        threads: of the engine.
        key_memory: maximum bytes of keys in memory at a time; by default as many as the budget allows.
        key_bytes: maximum bytes of all keys in memory; by default as the budget allows.
    """

    model: Path
    program: Path
    calibration: Path | None
    activations: dict[str, str]
    preset: str | None
    batch: int
    images: int
    memory: int | None
    threads: int
    key_memory: int | None = None
    key_bytes: int | None = None


class Session:
    """Compiles, makes keys and encodes the model.

    Args:
        typical: samples on which the error is predicted, (count, *input_shape).

    Attributes:
        facts: fields of the record's line about a run; see `record.RUN_FIELDS`.
    """

    def __init__(self, setting: Setting, typical: NDArray[np.float64]) -> None:
        kw.set_threads(setting.threads)
        compiled, compiling = timed(self._compiled, setting)
        self.facts: dict[str, Any] = {"compile_s": compiling.wall, "compile_peak_bytes": peak_rss_bytes()}
        self.program, self.parameters = compiled.program, compiled.parameters
        self.facts |= stored(self.program, setting.program)

        budget = default_budget() if setting.memory is None else setting.memory
        planned, planning = timed(compiled.plan_process, setting.images, budget, setting.key_memory)
        execution = planned.execution
        self.facts |= {
            "plan_s": planning.wall,
            "predicted_peak_bytes": planned.memory.total,
            "memory_parts": planned.memory.parts(),
            "kept": planned.explain(),
        }

        predicted, predicting = timed(simulate, self.program, execution, typical)
        self.facts |= {
            "predict_s": predicting.wall,
            "predicted_error": predicted.worst_error,
            "predicted_mean_error": predicted.mean_error,
        }

        self.client, self.server = compiled.pair(execution)
        path, specs = setting.program.with_name("keys.kw"), execution.key_specs
        if planned.key_memory is None:
            own, making = timed(self.client.evaluation_keys)
            keys = execution.follow(own)
            keys.save(path)
        else:
            _, making = timed(self.client.save_evaluation_keys, path)
            keys = execution.load_keys(path, memory=planned.key_memory)
        self.facts |= {
            "keys_s": making.wall,
            "key_bytes": planned.key_memory or keys.bytes,
            "key_file_bytes": path.stat().st_size,
            "keys": len(specs),
        }
        if planned.key_memory is None:
            path.unlink()

        _, preparing = timed(self.server.take_keys, keys, planned)
        runner = self.server.runner
        self.facts |= {"prepare_s": runner.prepare_seconds, "plaintext_bytes": runner.plaintext_bytes}
        parts = {"compile": compiling, "plan": planning, "keys": making, "prepare": preparing}
        self.facts["processor_s"] = {name: part.cpu for name, part in parts.items()}
        measured = Calibration.stored()
        self.facts |= {
            "parameters": repr(self.parameters),
            "threads": setting.threads,
            "depth": self.program.depth,
            "batch": self.program.batch,
            "bootstraps": sum(step.opcode == "bootstrap" for step in self.program.instructions),
            "rotations": sum(layer.rotations for layer in self.program.layers),
            "predicted_s": planned.seconds,
            "speedup": None if measured is None else measured.speedup(setting.threads),
            "setup_peak_bytes": peak_rss_bytes(),
        }

    @staticmethod
    def _compiled(setting: Setting) -> kw.Model:
        calibration = None if setting.calibration is None else load_inputs(setting.calibration)
        compiled = kw.compile(
            setting.model,
            calibration,
            activations=setting.activations,
            parameters=setting.preset,
            batch=setting.batch,
        )
        return compiled if setting.key_bytes is None else compiled.with_keys_within(setting.key_bytes)

    def classify(self, samples: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Run samples that share ciphertexts, (count, *input_shape).

        Returns a line for each, with the fields of `record.IMAGE_FIELDS` that need no run in the clear:
        such a run would take memory of this process.
        """
        program, clock, count = self.program, time.perf_counter, len(samples)
        start = clock()
        message = self.client.encrypt_batch(samples)
        encrypt = clock() - start
        server, runner = self.server, self.server.runner
        inputs = [server.requests.read(data) for data in message]
        before = list(runner.clock.seconds)
        start, processor = clock(), time.process_time()
        results = runner.run(server.keys, inputs)
        evaluate, processor = clock() - start, time.process_time() - processor
        kinds: dict[str, float] = {}
        for layer, after, earlier in zip(program.layers, runner.clock.seconds, before, strict=True):
            kinds[layer.kind] = kinds.get(layer.kind, 0.0) + (after - earlier) / count
        answer = [server.requests.write(result) for result in results]
        start = clock()
        scores = self.client.decrypt_batch(answer, count)
        decrypt = clock() - start
        bound = max(ciphertext.error_bound for ciphertext in results) * program.output.unit
        return [
            {
                "scores": own.ravel().tolist(),
                "error_bound": bound,
                "seconds": evaluate / count,
                "together": count,
                "together_s": evaluate,
                "processor_s": processor / count,
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
    """Indices of the samples that share ciphertexts."""
    for first in range(0, len(numbers), batch):
        yield list(range(first, min(first + batch, len(numbers))))


def stored(program: Program, path: Path) -> dict[str, Any]:
    """The time to save and to load a program."""
    clock = time.perf_counter
    start = clock()
    compiler.save(program, path)
    saved = clock()
    compiler.load(path)
    return {"save_s": saved - start, "load_s": clock() - saved, "program_file_bytes": path.stat().st_size}
