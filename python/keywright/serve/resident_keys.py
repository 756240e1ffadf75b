"""The key sets of a machine that are in memory, once for all its workers, within a budget of bytes.

A set is sealed memory (`EvaluationKeys.share`), of which this process holds the descriptor. Workers map it
while they evaluate, and only then: a set that nobody uses is one descriptor, and closing it gives the memory
back at once. What goes first is the choice of `KeyCache`; a set in use never goes.
"""

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from keywright._units import format_bytes
from keywright.plan.memory.machine import SHARE, available_bytes

from .errors import TooLargeError
from .key_cache import KeyCache

DESCRIPTORS = 512
"""What connections, files and workers have of the descriptors of the process."""


PATIENCE_S = 1.0
"""How often it is looked whether other programs have given memory back."""


@dataclass
class _Set:
    """A key set that is in memory, or that somebody is loading."""

    size: int
    descriptor: int | None = None
    seconds: float = 0.0
    uses: int = 0
    wanted: bool = True


@dataclass
class Loan:
    """The use of a key set by one evaluation.

    Attributes:
        descriptor: of its memory; None if the borrower is the one to load it.
        evicted: names of what made room.
        loaded: seconds that loading took, 0 if it was there.
    """

    descriptor: int | None
    evicted: list[str] = field(default_factory=list)
    loaded: float = 0.0
    _keep: Callable[[int, float], None] | None = None

    @property
    def hit(self) -> bool:
        """Whether the set was in memory."""
        return self._keep is None

    def keep(self, descriptor: int, seconds: float) -> None:
        """Hand over the memory of a set that was loaded, and how long that took."""
        assert self._keep is not None
        self.loaded = seconds
        self._keep(descriptor, seconds)


class ResidentKeys:
    """Key sets by name.

    Args:
        budget: bytes of all of them; as much as a process may take by default, where nobody says.
        available: bytes that the machine has left. Where that is less, idle sets go before the budget is
            used.
    """

    def __init__(self, budget: int | None = None, available: Callable[[], int] = available_bytes) -> None:
        self._available = available
        self.budget = int(SHARE * available()) if budget is None else budget
        self._sets: dict[str, _Set] = {}
        self._idle: KeyCache[_Set] = KeyCache(self.budget)
        self._changed = threading.Condition()
        self._most = _descriptors() - DESCRIPTORS
        self.hits = self.loads = self.evictions = 0

    @property
    def size(self) -> int:
        """Bytes of the sets that are here or being loaded."""
        with self._changed:
            return self._size()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._sets)

    @property
    def reachable(self) -> int:
        """Bytes that the machine has left, and those of all sets."""
        with self._changed:
            return self._available() + self._size()

    def sizes(self) -> dict[str, int]:
        """Bytes of the sets that are here, by name."""
        with self._changed:
            return {name: each.size for name, each in self._sets.items() if each.descriptor is not None}

    def __contains__(self, name: str) -> bool:
        found = self._sets.get(name)
        return found is not None and found.descriptor is not None

    def require(self, size: int) -> None:
        """Refuse a set that never fits.

        Raises:
            TooLargeError: it is larger than the budget.
        """
        if size > self.budget:
            raise TooLargeError(
                f"the keys take {format_bytes(size)} of memory, and this server has "
                f"{format_bytes(self.budget)} for keys; start it with more --memory",
                value=size,
                maximum=self.budget,
            )

    @contextmanager
    def lend(self, name: str, size: int) -> Iterator[Loan]:
        """The use of a set. Waits while somebody else loads it, and while there is no room for it.

        Args:
            name: of the set.
            size: bytes that it takes at most.

        Raises:
            TooLargeError: as of `require`.
        """
        self.require(size)
        loan = self._borrow(name, size)
        try:
            yield loan
        finally:
            self._give_back(name)

    def forget(self, name: str) -> None:
        """Have a set go: now, or when nobody uses it any more."""
        with self._changed:
            found = self._sets.get(name)
            if found is not None:
                found.wanted = False
                self._drop(name, found)

    def close(self) -> None:
        """Have all sets go that nobody uses."""
        for name in list(self._sets):
            self.forget(name)

    def _size(self) -> int:
        return sum(each.size for each in self._sets.values())

    def _borrow(self, name: str, size: int) -> Loan:
        with self._changed:
            evicted: list[str] = []
            while True:
                found = self._sets.get(name)
                if found is None:
                    gone = self._make_room(size)
                    evicted += gone or ()
                    if gone is not None:
                        break
                elif found.descriptor is not None and found.wanted:
                    self.hits += 1
                    found.uses += 1
                    self._idle.forget(name)
                    return Loan(found.descriptor, evicted)
                self._changed.wait(PATIENCE_S)
            self.loads += 1
            made = self._sets[name] = _Set(size, uses=1)

            def keep(descriptor: int, seconds: float) -> None:
                with self._changed:
                    made.descriptor, made.seconds = descriptor, seconds
                    self._changed.notify_all()

            return Loan(None, evicted, _keep=keep)

    def _give_back(self, name: str) -> None:
        with self._changed:
            found = self._sets[name]
            found.uses -= 1
            if not found.uses and found.wanted and found.descriptor is not None:
                self._idle.put(name, found, found.size, found.seconds)
            else:
                self._drop(name, found)
            self._changed.notify_all()

    def _drop(self, name: str, found: _Set) -> None:
        """Let go of a set that nobody uses."""
        if found.uses:
            return
        self._idle.forget(name)
        del self._sets[name]
        if found.descriptor is not None:
            os.close(found.descriptor)
        self._changed.notify_all()

    def _make_room(self, size: int) -> list[str] | None:
        """Have idle sets go until so many bytes more are within the budget and the machine's memory. Returns
        their names; None, with all of them left, if that is not enough."""
        lacking = max(self._size() + size - self.budget, size - self._available())
        surplus = len(self._sets) + 1 - self._most
        if lacking > self._idle.size or surplus > len(self._idle):
            return None
        gone = []
        while lacking > 0 or surplus > 0:
            name = self._idle.pop()
            freed = self._sets[name].size
            self._drop(name, self._sets[name])
            gone.append(name)
            lacking, surplus = lacking - freed, surplus - 1
        self.evictions += len(gone)
        return gone


def _descriptors() -> int:
    """How many descriptors this process may have, after it asked for as many as it may ask for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < hard):
        wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        soft = max(soft, wanted)
    return 1 << 16 if soft == resource.RLIM_INFINITY else soft
