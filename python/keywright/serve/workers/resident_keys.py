"""Key sets in memory, shared by all workers of a machine, within a budget of bytes.

A set is sealed memory (`EvaluationKeys.share`), and this process holds its descriptor. Workers map it only
while they evaluate. An idle set is therefore one descriptor, and closing it frees the memory at once.
`KeyCache` chooses the set to evict, among those of holders with at least the mean and those not used
lately. A set in use is never evicted.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from keywright._units import format_bytes
from keywright.errors.choices import require_integer
from keywright.errors.service import LimitError
from keywright.plan.memory.machine import SHARE, available_bytes
from keywright.serve.tenants.holders import totals_of

from .key_cache import KeyCache

WINDOWS: bool = sys.platform == "win32"
if not WINDOWS:
    import resource

DESCRIPTORS = 512
"""Descriptors that connections, files and workers of the process need."""

WINDOWS_DESCRIPTORS = 8192
"""The most that the C library of Windows gives a process."""

LOOK_EVERY_S = 0.1

LATELY_S = 60.0
"""How long after its last use a set is not evicted for a holder with more sets."""

PATIENCE_S = 1.0
"""How often the memory left by other programs is checked."""


@dataclass
class _ResidentSet:
    """A key set that is resident or being loaded, with its current uses and all uses since it was loaded."""

    size: int
    holder: str
    descriptor: int | None = None
    seconds: float = 0.0
    uses: int = 0
    all_uses: int = 1
    retained: bool = True
    used: float = field(default_factory=time.monotonic)


@dataclass
class Loan:
    """The use of a key set by one evaluation.

    Attributes:
        descriptor: descriptor of its memory; None if the borrower must load it.
        evicted: names of evicted sets.
        loaded: seconds that loading took, 0 if the set was resident.
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
        """Hand over the memory of a loaded set, and the seconds that loading took."""
        assert self._keep is not None
        self.loaded = seconds
        self._keep(descriptor, seconds)


class CachedReading:
    """The result of a call at most `LOOK_EVERY_S` ago, because measuring the free memory takes half a
    millisecond."""

    def __init__(self, call: Callable[[], int]) -> None:
        self._call, self._value, self._then = call, 0, -LOOK_EVERY_S

    def __call__(self) -> int:
        now = time.monotonic()
        if now - self._then >= LOOK_EVERY_S:
            self._value, self._then = self._call(), now
        return self._value


class ResidentKeys:
    """Key sets by name.

    Args:
        budget: bytes of all sets; by default, as much memory as the process may use.
        available: returns the free bytes of the machine. If they are fewer than the budget, idle sets are
            evicted earlier.
    """

    def __init__(self, budget: int | None = None, available: Callable[[], int] = available_bytes) -> None:
        self._available, self._lately = available, CachedReading(available)
        self.budget = int(SHARE * available()) if budget is None else require_integer("key_memory", budget)
        self._sets: dict[str, _ResidentSet] = {}
        self._total = 0
        self._idle: KeyCache[_ResidentSet] = KeyCache(self.budget)
        self._changed = threading.Condition()
        self._most = _descriptors() - DESCRIPTORS
        self.hits = self.loads = self.evictions = 0

    @property
    def size(self) -> int:
        """Bytes of the sets that are here or being loaded."""
        return self._total

    @property
    def count(self) -> int:
        """Number of sets."""
        return len(self._sets)

    @property
    def reachable(self) -> int:
        """Return the recently measured free bytes of the machine, plus the bytes of all sets."""
        with self._changed:
            return self._lately() + self._total

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the resident sets, by name."""
        with self._changed:
            return {name: each.size for name, each in self._sets.items() if each.descriptor is not None}

    def __contains__(self, name: str) -> bool:
        entry = self._sets.get(name)
        return entry is not None and entry.descriptor is not None

    def require(self, size: int) -> None:
        """Check that a set can fit.

        Raises:
            LimitError: it is larger than the budget.
        """
        if size > self.budget:
            raise LimitError(
                f"the keys take {format_bytes(size)} of memory, and this server has "
                f"{format_bytes(self.budget)} for keys; start it with more --memory",
                value=size,
                maximum=self.budget,
            )

    @contextmanager
    def lend(self, name: str, size: int, holder: str = "") -> Iterator[Loan]:
        """Lend a set. Waits while another borrower loads it, and while there is no room for it.

        Args:
            name: name of the set.
            size: an upper bound on its bytes.
            holder: its holder.

        Raises:
            LimitError: see `require`.
        """
        self.require(size)
        loan = self._borrow(name, _ResidentSet(size, holder, uses=1))
        try:
            yield loan
        finally:
            self._give_back(name)

    def forget(self, name: str) -> None:
        """Remove a set: now, or when its last use ends."""
        with self._changed:
            entry = self._sets.get(name)
            if entry is not None:
                entry.retained = False
                self._drop(name, entry)

    def close(self) -> None:
        """Remove all idle sets."""
        for name in list(self._sets):
            self.forget(name)

    def _borrow(self, name: str, loaded: _ResidentSet) -> Loan:
        with self._changed:
            evicted: list[str] = []
            while True:
                entry = self._sets.get(name)
                if entry is None:
                    gone = self._make_room(loaded)
                    evicted += gone or ()
                    if gone is not None:
                        break
                elif entry.descriptor is not None and entry.retained:
                    self.hits += 1
                    entry.uses += 1
                    entry.all_uses += 1
                    self._idle.forget(name)
                    return Loan(entry.descriptor, evicted)
                self._changed.wait(PATIENCE_S)
            self.loads += 1
            self._sets[name] = loaded
            self._total += loaded.size

            def keep(descriptor: int, seconds: float) -> None:
                with self._changed:
                    loaded.descriptor, loaded.seconds = descriptor, seconds
                    self._changed.notify_all()

            return Loan(None, evicted, _keep=keep)

    def _give_back(self, name: str) -> None:
        with self._changed:
            entry = self._sets[name]
            entry.uses, entry.used = entry.uses - 1, time.monotonic()
            if not entry.uses and entry.retained and entry.descriptor is not None:
                self._idle.put(name, entry, entry.size, entry.seconds, entry.all_uses)
            else:
                self._drop(name, entry)
            self._changed.notify_all()

    def _drop(self, name: str, entry: _ResidentSet) -> None:
        """Remove an idle set."""
        if entry.uses:
            return
        self._idle.forget(name)
        self._total -= self._sets.pop(name).size
        if entry.descriptor is not None:
            os.close(entry.descriptor)
        self._changed.notify_all()

    def _make_room(self, loaded: _ResidentSet) -> list[str] | None:
        """Evict idle sets until another one is within the budget and the machine's memory. Returns their
        names; None, without an eviction, if that is not enough."""
        lacking = max(self._total + loaded.size - self.budget, loaded.size - self._available())
        surplus = len(self._sets) + 1 - self._most
        if lacking > self._idle.size or surplus > len(self._idle):
            return None
        gone = []
        while lacking > 0 or surplus > 0:
            name = self._idle.pop(self._candidates(loaded))
            freed = self._sets[name].size
            self._drop(name, self._sets[name])
            gone.append(name)
            lacking, surplus = lacking - freed, surplus - 1
        self.evictions += len(gone)
        return gone

    def _candidates(self, loaded: _ResidentSet) -> list[str]:
        """Return the sets that may be evicted for another one."""
        totals = totals_of([*self._sets.values(), loaded], lambda each: each.size)
        mean, lately = totals.total() / len(totals), time.monotonic() - LATELY_S
        return [
            name for name, each in self._sets.items() if totals[each.holder] >= mean or each.used < lately
        ]


def _descriptors() -> int:
    """Raise the process's limit of descriptors as far as allowed, and return it."""
    if WINDOWS:
        return WINDOWS_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < hard):
        retained = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, retained), hard))
        soft = max(soft, retained)
    return 1 << 16 if soft == resource.RLIM_INFINITY else soft
