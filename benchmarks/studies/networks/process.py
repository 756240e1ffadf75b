"""Drives the process that is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from harness.folders import HERE
from keywright import compiler
from keywright.compiler import Program
from numpy.typing import NDArray


class Measured:
    """Client and server in a separate process, until the context ends.

    Args:
        scratch: folder for what the process reads.
        samples: (count, *input_shape).
        calibration: samples that activations are fitted on, if there are any.
        activations: methods of `keywright.compiler.Fit.activations`.
        batch: samples in a ciphertext.
        memory: maximum bytes of the process; by default most of the free memory.
        key_memory: maximum bytes of keys in memory at a time; by default as many as fit.
        key_bytes: maximum bytes of all keys in memory; by default as fit.
    """

    def __init__(
        self,
        scratch: Path,
        model: Path,
        samples: NDArray[np.float32],
        calibration: NDArray[np.float32] | None = None,
        *,
        activations: Mapping[str, str] | None = None,
        preset: str | None,
        batch: int = 1,
        memory: int | None = None,
        key_memory: int | None = None,
        key_bytes: int | None = None,
        threads: int,
    ) -> None:
        paths = scratch / "samples.npy", scratch / "calibration.npy"
        np.save(paths[0], samples)
        if calibration is not None:
            np.save(paths[1], calibration)
        setting = scratch / "setting.json"
        self._program = scratch / "program.kwp"
        fields = {
            "model": str(model.resolve()),
            "program": str(self._program),
            "calibration": None if calibration is None else str(paths[1]),
            "activations": dict(activations or {}),
            "preset": preset,
            "batch": batch,
            "images": len(samples),
            "memory": memory,
            "threads": threads,
            "key_memory": key_memory,
            "key_bytes": key_bytes,
            "samples": str(paths[0]),
        }
        setting.write_text(json.dumps(fields))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "studies.networks.worker", str(setting)],
            cwd=HERE,
            env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Measured:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # It frees nothing that matters: to end it at once is quicker than to let it end.
        self._process.kill()
        with self._process:  # closes the pipes and waits
            pass

    def facts(self) -> dict[str, Any]:
        """What it says about the run, once, when keys and diagonals are made."""
        return self._line()

    def program(self) -> Program:
        """What it evaluates, once `facts` are there."""
        return compiler.load(self._program)

    def classify(self, places: Sequence[int]) -> list[dict[str, Any]]:
        """A line for each of some samples, at most as many as share ciphertexts.

        Raises:
            SystemExit: the process ended.
        """
        assert self._process.stdin is not None
        try:
            print(json.dumps(list(places)), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            self._ended()
        return [self._line() for _ in places]

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._ended()
        fields: dict[str, Any] = json.loads(line)
        return fields

    def _ended(self) -> None:
        raise SystemExit(f"the measured process ended with status {self._process.wait()}")
