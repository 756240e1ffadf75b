"""A program: a compiled network with its operations."""

from pathlib import Path

import onnx
from numpy.typing import ArrayLike

from keywright.program.file import storage
from keywright.program.network import CompiledNetwork
from keywright.runtime import checking
from keywright.runtime.backend import Backend, Ciphertext
from keywright.runtime.executor import execute
from keywright.runtime.guard import guard


class Program(CompiledNetwork):
    """An encrypted network, ready to run on any `Backend`. Its attributes are those of `CompiledNetwork`."""

    def run(self, backend: Backend[Ciphertext], inputs: list[Ciphertext]) -> list[Ciphertext]:
        """Evaluate on encrypted inputs; see `keywright.runtime.executor.execute`."""
        return execute(self, backend, inputs)

    def check(
        self, samples: ArrayLike, model: onnx.ModelProto | str | Path | bytes
    ) -> "checking.CheckReport":
        """Compare with onnxruntime on clear data; see `keywright.runtime.checking.check`."""
        return checking.check(self, samples, model)

    def guard(self, samples: ArrayLike, largest_output: float | None = None) -> None:
        """Refuse samples that leave a calibrated range; see `keywright.runtime.guard.guard`."""
        guard(self, samples, largest_output)

    def save(self, path: str | Path) -> None:
        """Write to one file, atomically; see `keywright.program.file.storage.save`."""
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Program":
        """Read a file that `save` wrote; see `keywright.program.file.storage.load`."""
        return storage.load(path, cls)
