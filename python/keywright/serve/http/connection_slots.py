"""Slots for connections and the server's time, shared fairly among their holders.

A *holder* is a tenant, or without accounts a network address. Nobody can fill all slots: a new connection
replaces the connection with the least credit of the holder with the most connections. While several addresses
are served, each has a `Pace`, so that none takes all of the server's time.
"""

import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NETWORK_BITS = 64
"""An IPv6 customer has a network of this prefix, so its addresses count as one."""


REQUESTS_A_SECOND, BURST = 64, 128
"""Requests and connections of an address while others are served: on average, and at once."""

OPENING = 8
"""A request for a new key set counts as this number of requests: it writes, and may delete another set."""

OTHERS_S = 30.0
"""How long an address counts as served after a request."""

MANY = 4096
"""Addresses above which those that have all of their burst again are forgotten."""

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
    """The slots of a server."""

    def __init__(self) -> None:
        self._held: dict[Slot, None] = {}

    def __len__(self) -> int:
        return len(self._held)

    def enter(self, slot: Slot, most: int) -> None:
        """Take a slot. If more than ``most`` are taken, a connection of the holder with the most slots loses
        its slot. This may be the new connection, if the others have more credit."""
        self._held[slot] = None
        if len(self._held) <= most:
            return
        counts = Counter(each.holder for each in self._held)
        largest = max(counts.values())
        victim = min((each for each in self._held if counts[each.holder] == largest), key=_credit)
        # Its connection may take a while to end.
        self.leave(victim)
        victim.give_up()

    def leave(self, slot: Slot) -> None:
        """Free a slot."""
        self._held.pop(slot, None)


class Pace:
    """The request rate of each address while others are served. An address that is alone has no limit.

    Args:
        exempt: addresses and networks of proxies, which speak for many.
        clock: returns seconds.
    """

    def __init__(self, exempt: Sequence[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._exempt = [ipaddress.ip_network(each) for each in exempt]
        self._clock = clock
        self._next: dict[str, float] = {}
        """When an address would be idle at its pace, by its neighbourhood."""
        self._last = self._other = ("", -OTHERS_S)
        """The last request, and the last one of another address."""

    def admits(self, address: str) -> bool:
        """Whether a new connection is served now."""
        return self._delay(address, waits=False) <= 0

    def delay(self, address: str) -> float:
        """Return the seconds that the next request on a connection has to wait, and count that request."""
        return max(0.0, self._delay(address, waits=True))

    def charge(self, address: str, requests: int) -> None:
        """Count several requests of an address for one that takes as long."""
        for _ in range(requests):
            self._delay(address, waits=True)

    def _delay(self, address: str, *, waits: bool) -> float:
        if self._exempt and any(_parsed(address) in network for network in self._exempt):
            return 0.0
        now, holder = self._clock(), neighbourhood(address)
        if holder != self._last[0]:
            self._other = self._last
        self._last = holder, now
        busy = max(self._next.get(holder, now), now)
        if alone := now - self._other[1] >= OTHERS_S:
            # What it did alone is not held against it.
            busy = min(busy, now + (BURST - 1) / REQUESTS_A_SECOND)
        delay = 0.0 if alone else busy - now - (BURST - 1) / REQUESTS_A_SECOND
        if waits or delay <= 0:
            self._next[holder] = busy + 1 / REQUESTS_A_SECOND
            if len(self._next) > MANY:
                self._next = {name: end for name, end in self._next.items() if end > now}
        return delay


class Door(socket.socket):
    """A listening socket that refuses connections above the pace of their address before they cost any work.

    Args:
        listener: the socket; its descriptor is taken over.
        pace: of each address.
    """

    def __init__(self, listener: socket.socket, pace: Pace) -> None:
        super().__init__(listener.family, listener.type, listener.proto, listener.detach())
        self._pace = pace

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept a connection.

        Raises:
            BlockingIOError: no connection waits, or many were refused; the others wait for the next call.
        """
        for _ in range(REFUSED_AT_ONCE):
            connection, address = super().accept()
            if self._pace.admits(str(address[0])):
                return connection, address
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
        raise BlockingIOError


def _credit(slot: Slot) -> float:
    return slot.until


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an address of a socket.

    Raises:
        ValueError: it is not an address.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped


def neighbourhood(address: str) -> str:
    """Return the holder of an address: the address itself, or the network of an IPv6 address."""
    try:
        parsed = _parsed(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))
