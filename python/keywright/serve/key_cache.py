"""Keys in memory, by a budget of bytes: GreedyDual-Size (Cao and Irani, USENIX ITS 1997).

A set is worth the seconds that loading it took, divided by its bytes, plus what the set that went last was
worth: sets that were not used for long fall behind, and small ones that are slow to load stay longest.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class _Entry(Generic[Value]):
    value: Value
    size: int
    seconds: float
    worth: float


class KeyCache(Generic[Value]):
    """Things by name, of at most ``budget`` bytes.

    Attributes:
        size: bytes of what is here.
    """

    def __init__(self, budget: int) -> None:
        self.budget, self.size = budget, 0
        self._entries: dict[str, _Entry[Value]] = {}
        self._floor = 0.0

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def sizes(self) -> dict[str, int]:
        """Bytes of what is here, by name."""
        return {name: entry.size for name, entry in self._entries.items()}

    def get(self, name: str) -> Value | None:
        """What has a name, which is thereby used."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        entry.worth = self._floor + entry.seconds / entry.size
        return entry.value

    def make_room(self, size: int) -> list[str]:
        """Let go of what is worth least until so many bytes more are within the budget. Returns its names."""
        gone = []
        while self._entries and self.size + size > self.budget:
            gone.append(self.pop())
        return gone

    def pop(self) -> str:
        """Let go of what is worth least; its name."""
        name = min(self._entries, key=lambda each: self._entries[each].worth)
        self._floor = self._entries[name].worth
        self.forget(name)
        return name

    def put(self, name: str, value: Value, size: int, seconds: float) -> None:
        """Keep something, of which `make_room` was asked; nothing that is larger than the budget."""
        self.forget(name)
        if self.size + size <= self.budget:
            self._entries[name] = _Entry(value, size, seconds, self._floor + seconds / size)
            self.size += size

    def forget(self, name: str) -> None:
        """Let go of something, if it is here."""
        entry = self._entries.pop(name, None)
        self.size -= 0 if entry is None else entry.size
