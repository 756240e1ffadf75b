"""Memory of connections and of arriving bodies, within a total that clients share fairly."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from keywright.errors.service import BusyError

BUFFER_BYTES = 64 << 20
"""Maximum bytes of all arriving bodies."""

LEAST_BODIES = 4
"""Minimum number of longest messages that fit."""

MAX_CONNECTIONS, MIN_CONNECTIONS = 512, 32
"""Connections at a time: for a server with much memory, and for one with little."""

CONNECTION_BYTES = 5 << 16
"""Maximum bytes of a connection besides `BUFFER_BYTES`: its TLS, a read and what waits for its turn, and an
answer's piece that the peer does not read, in the clear and encrypted."""

CONNECTIONS_SHARE = 16
"""Connections take at most one part in so many of the memory."""

TURN_S = 30.0
"""Seconds that a body keeps its memory while a client with as much memory needs it."""


def body_bytes(longest: int) -> int:
    """Return the bytes of all arriving bodies, where a message has at most ``longest``."""
    return max(BUFFER_BYTES, LEAST_BODIES * longest)


def listening_bytes(longest: int, connections: int) -> int:
    """Return the bytes of arriving bodies and of this number of connections."""
    return body_bytes(longest) + connections * CONNECTION_BYTES


def connections_within(memory: int) -> int:
    """Return how many connections a server with so many bytes of memory has."""
    most = memory // CONNECTIONS_SHARE // CONNECTION_BYTES
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, most))


@dataclass(eq=False)
class Share:
    """Memory of one body.

    Attributes:
        holder: owner of the memory.
        size: in bytes.
        lose: called when the body loses its memory.
        complete: whether the body has arrived; it is then not taken away.
        began: time of the reservation, in seconds of a monotonic clock.
        lost: whether it was taken away.
    """

    holder: str
    size: int
    lose: Callable[[], object]
    complete: bool = False
    lost: bool = False
    began: float = field(default_factory=time.monotonic)


class Buffers:
    """The memory for arriving bodies.

    Args:
        most: bytes of all of them.
    """

    def __init__(self, most: int) -> None:
        self.most, self._shares, self._lock = most, list[Share](), threading.Lock()

    @property
    def used(self) -> int:
        """Bytes that are reserved."""
        with self._lock:
            return sum(share.size for share in self._shares)

    @contextmanager
    def share(self, holder: str, size: int, lose: Callable[[], object]) -> Iterator[Share]:
        """Reserve memory for a body before its first byte. If none is left, the holder with the most memory
        loses its oldest body, provided that it has more than this holder would have.

        Args:
            holder: who asks, see `holders`.
            size: in bytes.
            lose: called if the memory is needed by others; any thread may call it.

        Raises:
            BusyError: there is no memory left.
        """
        share = Share(holder, size, lose)
        with self._lock:
            lost = self._make_room(share)
            self._shares.append(share)
        for each in lost:
            each.lose()
        try:
            yield share
        finally:
            with self._lock:
                if share in self._shares:
                    self._shares.remove(share)

    def _make_room(self, share: Share) -> list[Share]:
        """Return the shares that are taken away for another one."""
        kept, lost = list(self._shares), list[Share]()
        while sum(each.size for each in kept) + share.size > self.most:
            sums = Counter[str]()
            for each in (*kept, share):
                sums[each.holder] += each.size
            own, before = sums[share.holder], time.monotonic() - TURN_S
            candidates = [
                each
                for each in kept
                if not each.complete
                and each.holder != share.holder
                and (sums[each.holder] > own or (sums[each.holder] == own and each.began < before))
            ]
            if not candidates:
                raise BusyError("too many requests arrive at a time; ask again soon", retry_after=1)
            victim = max(candidates, key=lambda each: (sums[each.holder], -each.began))
            kept.remove(victim)
            lost.append(victim)
        for each in lost:
            each.lost = True
        self._shares = kept
        return lost
