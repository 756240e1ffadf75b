"""A memory plan of a process: its keys, how they and the diagonals are stored, and its peak memory."""

from collections.abc import Mapping
from dataclasses import dataclass

from keywright._copies import Unchanging
from keywright._units import format_bytes
from keywright.plan.keys.execution import PlanExecution

from .diagonals import Place, Storage


@dataclass(frozen=True)
class Parts:
    """Bytes of a process at its peak, a field for each part."""

    @property
    def total(self) -> int:
        """The sum."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, int]:
        """Return the parts by name."""
        return dict(vars(self))

    def describe(self) -> str:
        """Return a description."""
        listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in self.parts().items() if size)
        return f"{format_bytes(self.total)}: {listed}"


@dataclass(frozen=True)
class Memory(Parts):
    """Bytes of a process that evaluates a network.

    Attributes:
        process: before anything is made: interpreter, libraries, the program.
        tables: of the transforms of every prime.
        keys: keys in memory at a time, including master keys.
        diagonals: of the network, as they are stored.
        bootstraps: of the bootstraps, as they are stored.
        ciphertexts: maximum of live ciphertexts.
        scratch: of an operation, including diagonals made for one use.
        idle: cached for reuse.
    """

    process: int
    tables: int
    keys: int
    diagonals: int
    bootstraps: int
    ciphertexts: int
    scratch: int
    idle: int


@dataclass(frozen=True)
class DiagonalStorage:
    """How diagonals are stored.

    Attributes:
        transforms: diagonals of each transform of the network, by its index and its level.
        bootstraps: diagonals of each bootstrap, in order.
    """

    transforms: Mapping[Place, Storage]
    bootstraps: tuple[Storage, ...]


@dataclass(frozen=True)
class ProcessPlan(Unchanging, elsewhere="plan the model in the other process"):
    """The memory plan of a process that evaluates a network.

    Attributes:
        execution: of the keys.
        diagonals: how diagonals are stored.
        key_memory: maximum bytes of keys in memory, if they are streamed from a file; None if all are in
            memory.
        memory: predicted peak.
        budget: the limit of the peak.
        seconds: predicted time of an evaluation, of all samples of a batch together, one thread.
        making_seconds: predicted time of making keys and diagonals, one thread.
        key_sets: number of owners whose keys are in memory at a time.
    """

    execution: PlanExecution
    diagonals: DiagonalStorage
    key_memory: int | None
    memory: Memory
    budget: int
    seconds: float
    making_seconds: float
    key_sets: int

    def explain(self) -> str:
        """Describe how keys and diagonals are stored."""
        counts = {kind: sum(kept == kind for kept in self.diagonals.transforms.values()) for kind in STORAGES}
        kept = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        keys = (
            "in memory" if self.key_memory is None else f"{format_bytes(self.key_memory)} of them in memory"
        )
        text = f"keys {keys}; diagonals of transforms: {kept or 'none'}"
        return text + (
            f"; of bootstraps: {', '.join(self.diagonals.bootstraps)}" if self.diagonals.bootstraps else ""
        )


STORAGES: tuple[Storage, ...] = ("encoded", "coefficients", "streamed")
