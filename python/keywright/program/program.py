"""A program: a compiled network, and its file."""

from pathlib import Path

from .file import storage
from .network import CompiledNetwork


class Program(CompiledNetwork):
    """An encrypted network. Its attributes are those of `CompiledNetwork`; `keywright.runtime` runs it."""

    def save(self, path: str | Path) -> None:
        """Write to one file, atomically; see `keywright.program.file.storage.save`."""
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Program":
        """Read a file that `save` wrote; see `keywright.program.file.storage.load`."""
        return storage.load(path, cls)
