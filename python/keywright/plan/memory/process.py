"""A plan of a process: its keys, how they and the diagonals are kept, and the most memory that it takes."""

from collections.abc import Mapping
from dataclasses import dataclass

from keywright._units import format_bytes
from keywright.plan.keys.execution import PlanExecution

from .diagonals import Place, Storage


@dataclass(frozen=True)
class Memory:
    """Bytes of a process at its peak, part by part.

    Attributes:
        process: what it has before anything is made: interpreter, libraries, the program.
        tables: of the transforms of every prime.
        keys: those that are in memory at a time, master keys included.
        diagonals: of the network, as they are kept.
        bootstraps: of the bootstraps, as they are kept.
        ciphertexts: the most that are alive at a time.
        scratch: what an operation takes beside them, diagonals that are made for one use included.
        idle: what is kept to be used again.
    """

    process: int
    tables: int
    keys: int
    diagonals: int
    bootstraps: int
    ciphertexts: int
    scratch: int
    idle: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, int]:
        """By name."""
        return dict(vars(self))

    def describe(self) -> str:
        """In words."""
        listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in self.parts().items() if size)
        return f"{format_bytes(self.total)}: {listed}"


@dataclass(frozen=True)
class ProcessPlan:
    """What a process that evaluates a network does with its memory.

    Attributes:
        execution: of the keys.
        storage: how the diagonals of each transform of the network are kept, by its index and its level.
        bootstraps: how those of each bootstrap are kept, in order.
        key_memory: most bytes of keys in memory at a time, where they are streamed from a file; None if all
            are in memory.
        memory: predicted peak.
        budget: what the peak had to be within.
        seconds: predicted time of a sample, one thread.
        making_seconds: predicted time of making keys and diagonals, one thread.
        key_sets: how many owners' keys are in memory at a time.
    """

    execution: PlanExecution
    storage: Mapping[Place, Storage]
    bootstraps: tuple[Storage, ...]
    key_memory: int | None
    memory: Memory
    budget: int
    seconds: float
    making_seconds: float
    key_sets: int

    def explain(self) -> str:
        """How keys and diagonals are kept, in words."""
        counts = {kind: sum(kept == kind for kept in self.storage.values()) for kind in STORAGES}
        kept = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        keys = (
            "in memory" if self.key_memory is None else f"{format_bytes(self.key_memory)} of them in memory"
        )
        text = f"keys {keys}; diagonals of transforms: {kept or 'none'}"
        return text + (f"; of bootstraps: {', '.join(self.bootstraps)}" if self.bootstraps else "")


STORAGES: tuple[Storage, ...] = ("encoded", "coefficients", "streamed")
