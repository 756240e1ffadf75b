"""Slots for connections and the server's time, shared fairly among their holders.

Nobody can fill all slots: a new connection replaces the connection with the least credit of the holder with
the most connections. While several addresses are served, each has a `Pace`, so that none takes all of the
server's time. Calls that wait for a disk or another process have `Threads`, and holders take turns.
"""

import asyncio
import ipaddress
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple

from anyio.to_thread import run_sync

from keywright.serve.tenants.fair_queue import FairQueue
from keywright.serve.tenants.holders import MANY, items_of_largest, neighbourhood, parse_address

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

MAX_WAITING = 128
"""Maximum number of requests that wait for the end of an evaluation."""

THREADS, CHECKING, ASKING = 24, 1, 8
"""Calls at a time: those of requests, checks of whole key sets, and tokens whose issuer must be asked. The
process has 40 threads for all of them."""

REQUESTS_A_SECOND, BURST = 64, 128
"""Requests and connections of an address while others are served: on average, and at once."""

BODY_BYTES = 1 << 18
"""Bytes of key sets that take the event loop as long as a request. They have a pace of their own: a long
upload does not refuse the connections of its address."""

OPENING = 8
"""A request for a new key set counts as this number of requests: it writes, and may delete another set."""

READS = 8
"""Reads from connections that count as one request, in a pace of their own."""

OTHERS_S = 30.0
"""How long an address counts as served after a request."""

REFUSED_AT_ONCE = 64
"""Connections that are refused before the event loop goes on with others."""

_RESET = struct.pack("ii", 1, 0)
"""A connection that is closed with this option leaves nothing behind."""


@dataclass(eq=False)
class Slot:
    """The slot of one connection.

    Attributes:
        give_up: called when the connection loses its slot.
        holder: holder of the connection.
        until: end of its credit, by the clock of the event loop.
    """

    give_up: Callable[[], object]
    holder: str = ""
    until: float = float("inf")


class ConnectionSlots:
    """The slots of a server.

    Args:
        most: connections at a time.

    Attributes:
        most: the same.
    """

    def __init__(self, most: int) -> None:
        self._held: dict[Slot, None] = {}
        self.most = most

    def __len__(self) -> int:
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether a newcomer would replace another connection."""
        return len(self._held) >= self.most

    def enter(self, slot: Slot) -> None:
        """Take a slot. If none is free, a connection of the holder with the most slots loses its slot. This
        may be the new connection, if the others have more credit."""
        self._held[slot] = None
        if len(self._held) <= self.most:
            return
        victim = min(items_of_largest(list(self._held)), key=lambda slot: slot.until)
        # Its connection may take a while to end.
        self.leave(victim)
        victim.give_up()

    def leave(self, slot: Slot) -> None:
        """Free a slot."""
        self._held.pop(slot, None)


class Threads:
    """Threads for calls that may wait for a disk or another process. Holders take turns.

    Args:
        most: calls at a time.
    """

    def __init__(self, most: int) -> None:
        self._free, self._waiting = most, FairQueue[asyncio.Event]()

    async def run(self, holder: str, call: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Run a call in a thread when it is the holder's turn, and return its result."""
        if self._free:
            self._free -= 1
        else:
            await self._turn(holder)
        try:
            return await run_sync(call, *arguments)
        finally:
            self._next()

    async def _turn(self, holder: str) -> None:
        turn = asyncio.Event()
        self._waiting.put(turn, holder)
        try:
            await turn.wait()
        except BaseException:
            if not self._waiting.discard(turn, holder):
                self._next()
            raise

    def _next(self) -> None:
        if self._waiting:
            self._waiting.take().set()
        else:
            self._free += 1


@dataclass(eq=False)
class Waiter:
    """A request that waits for the end of an evaluation.

    Attributes:
        holder: holder of the request.
        loop: its event loop.
        ended: set when it need not wait any longer.
    """

    holder: str
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        """End the wait; any thread may call this."""
        self.loop.call_soon_threadsafe(self.ended.set)


class JobWaiters:
    """Requests that wait for the end of an evaluation, at most `MAX_WAITING`. Above this limit, the oldest
    request of the holder with the most requests returns at once, and its client asks again."""

    def __init__(self) -> None:
        self._waiting: dict[Waiter, None] = {}

    @contextmanager
    def waiter(self, holder: str) -> Iterator[Waiter]:
        """Return what a request of a holder waits with. Its wait ends when another request takes the
        place."""
        mine = Waiter(holder, asyncio.get_running_loop())
        self._waiting[mine] = None
        if len(self._waiting) > MAX_WAITING:
            # Of holders with as many, the newcomer's own goes.
            large = items_of_largest(list(self._waiting))
            victim = mine if mine in large else large[0]
            del self._waiting[victim]
            victim.ended.set() if victim is mine else victim.tell()
        try:
            yield mine
        finally:
            self._waiting.pop(mine, None)


class Pace:
    """The request rate of each address while others are served. An address that is alone has no limit, until
    its connections fill all slots.

    Args:
        exempt: addresses and networks of proxies, which speak for many.
        clock: returns seconds.
        times: what counts as one request; 1 for requests.
    """

    def __init__(
        self, exempt: Sequence[str] = (), clock: Callable[[], float] = time.monotonic, times: int = 1
    ) -> None:
        self._exempt = [ipaddress.ip_network(each) for each in exempt]
        self._clock, self._times = clock, times
        self._next: dict[str, float] = {}
        """When an address would be idle at its pace, by its neighbourhood."""
        self._last = self._other = ("", -OTHERS_S)
        """The last request, and the last one of another address."""

    def wait(self, address: str) -> float:
        """Return the seconds until the turn of what an address sent, and count it only if they are 0."""
        return max(0.0, self._delay(address, waits=False))

    def admits(self, address: str, *, full: bool = False) -> bool:
        """Whether a new connection is served now, if all slots are ``full`` or not."""
        return self._delay(address, waits=False, full=full) <= 0

    def delay(self, address: str) -> float:
        """Return the seconds that the next request on a connection has to wait, and count that request."""
        return max(0.0, self._delay(address, waits=True))

    def body(self, address: str, length: int) -> float:
        """Return the seconds until a body is to be read, and count its bytes."""
        delays = [self._delay(address, waits=True, what=" bytes") for _ in range(0, length, BODY_BYTES)]
        return max([0.0, *delays[:1]])

    def charge(self, address: str, requests: int) -> None:
        """Count several requests of an address for one that takes as long."""
        for _ in range(requests):
            self._delay(address, waits=True)

    def _delay(self, address: str, *, waits: bool, what: str = "", full: bool = False) -> float:
        if self._exempt and any(parse_address(address) in network for network in self._exempt):
            return 0.0
        now, holder = self._clock(), neighbourhood(address)
        rate = REQUESTS_A_SECOND * self._times
        ahead = (BURST * self._times - 1) / rate
        if holder != self._last[0]:
            self._other = self._last
        self._last = holder, now
        holder += what
        busy = max(self._next.get(holder, now), now)
        if alone := not full and now - self._other[1] >= OTHERS_S:
            # What it did alone is not held against it.
            busy = min(busy, now + ahead)
        delay = 0.0 if alone else busy - now - ahead
        if waits or delay <= 0:
            self._next[holder] = busy + 1 / rate
            if len(self._next) > MANY:
                self._next = {name: end for name, end in self._next.items() if end > now}
        return delay


class PacedListener(socket.socket):
    """A listening socket that refuses connections above the pace of their address before they cost any work.

    Args:
        listener: the socket; its descriptor is taken over.
        pace: of each address.
        slots: the slots of the server's connections.
    """

    def __init__(self, listener: socket.socket, pace: Pace, slots: ConnectionSlots) -> None:
        super().__init__(listener.family, listener.type, listener.proto, listener.detach())
        self._pace, self._slots = pace, slots

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept a connection.

        Raises:
            BlockingIOError: no connection waits, or many were refused; the others wait for the next call.
        """
        for _ in range(REFUSED_AT_ONCE):
            connection, address = super().accept()
            if self._pace.admits(str(address[0]), full=self._slots.full):
                return connection, address
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
        raise BlockingIOError
