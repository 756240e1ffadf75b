"""Eviction: which key set gives way to another one, where places or bytes are used up."""

import math
import time
from collections.abc import Callable, Sequence

from keywright.serve.tenants.holders import MANY, items_of_largest, totals_of

from .uploaded import UploadedKeys

Size = Callable[[UploadedKeys], int]

UPLOAD_BYTES_A_SECOND = 1 << 20
"""Speed of an upload that is to end within the turn of a place."""

RETRY_S, AWAY_S = 20.0, 60.0
"""How soon a holder that waits for a place is to ask again, and how long after its last question it no longer
waits."""

MAX_EMPTY = 1024
"""Maximum number of a tenant's sets without bytes. The holder with the most loses its oldest for the next."""


def unit_size(uploaded: UploadedKeys) -> int:
    """Return 1, for a number of sets."""
    return 1


def size_of(uploaded: UploadedKeys) -> int:
    """Return the bytes of a complete set."""
    return uploaded.configuration.key_bytes


class Rotation:
    """Places that addresses without accounts share if there are more of them than places.

    A set that nobody used for `turn` gives way to another address. Otherwise the set of the address that has
    had places the longest does, one after each `interval`. Addresses that ask for a place get it in the order
    in which they asked first, also a place that somebody left or whose set stalls. A new address therefore
    waits for an interval, and for another one and `AWAY_S` at most for each address before it. A set that got
    its place in this way keeps it for all intervals of a turn but one, or for fewer if others leave theirs to
    further addresses. An address that leaves its place, or replaces its own set, and takes a place again
    within a turn, is as old as before: it wins no time against those that stay.

    Args:
        capacity: number of places.
        turn: seconds.
    """

    def __init__(self, capacity: int, turn: float) -> None:
        self._capacity, self._turn = capacity, turn
        self._last, self._next = -math.inf, 0.0
        self._line: dict[str, float] = {}
        """When each holder that waits for a place asked last, in the order in which they asked first."""
        self._tenures: dict[str, tuple[float, float]] = {}
        """Since when each holder has had places, and when it last got or left one."""

    def interval(self, others: Sequence[UploadedKeys]) -> float:
        """Return the seconds between two sets that give way."""
        upload = max((size_of(s) for s in others), default=0) / UPLOAD_BYTES_A_SECOND
        return max(self._turn, upload) / self._capacity

    def victim(self, uploaded: UploadedKeys, others: Sequence[UploadedKeys]) -> UploadedKeys | None:
        """Return the set that gives way to one of another holder, among those of holders with as much; None
        if it is not its turn."""
        if not others:
            return None
        now, interval = time.monotonic(), self.interval(others)
        idle = [s for s in others if now - s.used >= self._turn and not s.busy()]
        if idle and not self.is_reserved(uploaded, others, len(idle)):
            return min(idle, key=lambda s: s.used)
        self._wait(uploaded, now)
        oldest = min(others, key=lambda s: s.since)
        self._next = max(self._last, oldest.since) + interval
        return oldest if now >= self._next and next(iter(self._line)) == uploaded.holder else None

    def _wait(self, uploaded: UploadedKeys, now: float) -> None:
        self._line = {name: then for name, then in self._line.items() if now - then < AWAY_S}
        if len(self._line) < MANY:
            self._line[uploaded.holder] = now

    def is_reserved(self, uploaded: UploadedKeys, others: Sequence[UploadedKeys], free: int) -> bool:
        """Whether holders that asked before wait for all of the places that are free, so that this one waits,
        too. A holder that has a place comes after all of them."""
        now = time.monotonic()
        waiting = [name for name, then in self._line.items() if now - then < AWAY_S]
        if uploaded.holder in waiting and all(s.holder != uploaded.holder for s in others):
            waiting = waiting[: waiting.index(uploaded.holder)]
        ahead = len([name for name in waiting if name != uploaded.holder])
        if free > ahead:
            return False
        self._wait(uploaded, now)
        self._next = now
        return True

    def delay(self, uploaded: UploadedKeys) -> int:
        """Return the seconds after which a holder that waits should ask again; 0 if it does not wait."""
        left = self._next - time.monotonic()
        return math.ceil(min(RETRY_S, max(1.0, left))) if uploaded.holder in self._line else 0

    def end(self, uploaded: UploadedKeys, victims: Sequence[UploadedKeys]) -> None:
        """Record that a set got its place, for which others gave way."""
        now = time.monotonic()
        if self._line.pop(uploaded.holder, None) is not None and victims:
            self._last = now
        for victim in victims:
            if victim.holder != uploaded.holder:
                self._tenures.pop(victim.holder, None)
        since, last = self._tenures.get(uploaded.holder, (now, now))
        uploaded.since = since if now - last < self._turn else now
        self._tenures[uploaded.holder] = uploaded.since, now
        if len(self._tenures) > MANY:
            self._tenures = {name: each for name, each in self._tenures.items() if now - each[1] < self._turn}

    def leave(self, uploaded: UploadedKeys) -> None:
        """Record that a set left its place."""
        if (tenure := self._tenures.get(uploaded.holder)) is not None:
            self._tenures[uploaded.holder] = tenure[0], time.monotonic()


def victim_for(
    uploaded: UploadedKeys, others: Sequence[UploadedKeys], size: Size, rotation: Rotation
) -> UploadedKeys | None:
    """Return the set that gives way to another one; None if none of them does now.

    Args:
        uploaded: the set that needs room.
        others: the sets that have room.
        size: how much of it a set has.
        rotation: the turns of holders that have as much.
    """
    have = totals_of([uploaded, *others], size)
    # A client that pauses keeps its place against a holder that would have more places than it.
    stalled = [s for s in others if s.stalled() and not s.busy() and have[s.holder] >= have[uploaded.holder]]
    if stalled and rotation.is_reserved(uploaded, others, len(stalled)):
        stalled = [s for s in stalled if s.holder == uploaded.holder]
    if stalled:
        return min(stalled, key=lambda s: (-have[s.holder], s.moved))
    largest = items_of_largest(others, size)
    if largest and have[largest[0].holder] > have[uploaded.holder]:
        idle = [s for s in largest if not s.busy()] or largest
        # Sets that are incomplete first.
        return min(idle, key=lambda s: (s.ready, s.used))
    equal = [s for s in others if s.holder != uploaded.holder and have[s.holder] >= have[uploaded.holder]]
    return rotation.victim(uploaded, equal)


def empty_victims(sets: Sequence[UploadedKeys]) -> list[UploadedKeys]:
    """Return the sets without bytes among a tenant's that give way to another one."""
    empty, victims = [s for s in sets if not s.placed and not s.busy()], list[UploadedKeys]()
    while len(empty) >= MAX_EMPTY:
        victims.append(min(items_of_largest(empty), key=lambda s: s.used))
        empty.remove(victims[-1])
    return victims
