"""A cache of keys in memory with a budget of bytes: GreedyDual-Size with frequency (Cherkasova, Improving WWW
Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy, HP Laboratories 1998).

The value of a set is the seconds that loading it took, times its uses since then, divided by its bytes, plus
the value of the set that was evicted last. Sets that have not been used for long thus fall behind, and small
sets that are slow to load and often used stay longest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass
class _CachedValue(Generic[Value]):
    value: Value
    size: int
    seconds: float
    uses: int
    worth: float


class KeyCache(Generic[Value]):
    """Values by name, of at most ``budget`` bytes.

    Attributes:
        size: bytes of all values.
    """

    def __init__(self, budget: int) -> None:
        self.budget, self.size = budget, 0
        self._entries: dict[str, _CachedValue[Value]] = {}
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
        entry.uses += 1
        entry.worth = self._worth(entry.size, entry.seconds, entry.uses)
        return entry.value

    def make_room(self, size: int) -> list[str]:
        """Evict the least valuable entries until so many more bytes fit. Returns their names."""
        gone = []
        while self._entries and self.size + size > self.budget:
            gone.append(self.pop())
        return gone

    def pop(self, names: Iterable[str] = ()) -> str:
        """Evict the least valuable entry, among those of some names if any is here. Returns its name."""
        among = [name for name in names if name in self._entries] or self._entries
        name = min(among, key=lambda each: self._entries[each].worth)
        self._floor = self._entries[name].worth
        self.forget(name)
        return name

    def put(self, name: str, value: Value, size: int, seconds: float, uses: int = 1) -> None:
        """Add a value after `make_room`; values larger than the budget are not kept.

        Args:
            name: its name.
            value: the value.
            size: its bytes.
            seconds: how long loading it took.
            uses: how often it was used since.
        """
        self.forget(name)
        if self.size + size <= self.budget:
            worth = self._worth(size, seconds, uses)
            self._entries[name] = _CachedValue(value, size, seconds, uses, worth)
            self.size += size

    def _worth(self, size: int, seconds: float, uses: int) -> float:
        return self._floor + uses * seconds / size

    def forget(self, name: str) -> None:
        """Remove an entry, if it is present."""
        entry = self._entries.pop(name, None)
        self.size -= 0 if entry is None else entry.size
