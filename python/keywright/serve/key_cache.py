"""A cache of keys in memory with a budget of bytes: GreedyDual-Size (Cao and Irani, USENIX ITS 1997).

The value of a set is the seconds that loading it took, divided by its bytes, plus the value of the set that
was evicted last. So sets that have not been used for long fall behind, and small sets that are slow to load
stay longest.
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
    """Values by name, of at most ``budget`` bytes.

    Attributes:
        size: bytes of all values.
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
        """Return the bytes of each value, by name."""
        return {name: entry.size for name, entry in self._entries.items()}

    def get(self, name: str) -> Value | None:
        """Return a value by name, and count this as a use."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        entry.worth = self._floor + entry.seconds / entry.size
        return entry.value

    def make_room(self, size: int) -> list[str]:
        """Evict the least valuable entries until so many more bytes fit. Returns their names."""
        gone = []
        while self._entries and self.size + size > self.budget:
            gone.append(self.pop())
        return gone

    def pop(self) -> str:
        """Evict the least valuable entry. Returns its name."""
        name = min(self._entries, key=lambda each: self._entries[each].worth)
        self._floor = self._entries[name].worth
        self.forget(name)
        return name

    def put(self, name: str, value: Value, size: int, seconds: float) -> None:
        """Add a value after `make_room`; values larger than the budget are not kept."""
        self.forget(name)
        if self.size + size <= self.budget:
            self._entries[name] = _Entry(value, size, seconds, self._floor + seconds / size)
            self.size += size

    def forget(self, name: str) -> None:
        """Remove an entry, if it is present."""
        entry = self._entries.pop(name, None)
        self.size -= 0 if entry is None else entry.size
