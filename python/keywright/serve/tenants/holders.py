"""Holders: whom everything is counted by that the clients of a service share.

A *holder* is a tenant, or without accounts a network address. All connections, key sets and evaluations of a
client count for one holder, however many there are of them. If a shared resource is used up, the holder with
the most of it gives way (`of_largest`), and where clients wait, holders share the time that is served
(`FairQueue`).
"""

import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from keywright.serve.tenants.accounts import NOBODY

NETWORK_BITS = 48
"""The shortest prefix that one customer of IPv6 gets (RFC 6177), so its addresses count as one. With 64 bits,
a free tunnel would be 65,536 holders. Customers of a provider that gives longer ones share, as behind an
address of IPv4."""

MANY = 4096
"""Holders that are remembered. Above it, those that have all of their burst again are forgotten, and the one
whose turn was the longest ago."""

ADDRESS = "address "
"""Begin of the name of a holder without an account."""


class HasHolder(Protocol):
    """What belongs to a holder."""

    holder: str


Item = TypeVar("Item")
Held = TypeVar("Held", bound=HasHolder)


def holder_of(tenant: str, address: str = "") -> str:
    """Return the holder of a request: its tenant, or without accounts its address."""
    return f"{ADDRESS}{neighbourhood(address)}" if tenant == NOBODY else f"tenant {tenant}"


def sums(items: Iterable[Held], size: Callable[[Held], int] = lambda _: 1) -> Counter[str]:
    """Return how much each holder has: the number of its items, or the sum of their sizes."""
    totals = Counter[str]()
    for item in items:
        totals[item.holder] += size(item)
    return totals


def of_largest(items: Sequence[Held], size: Callable[[Held], int] = lambda _: 1) -> list[Held]:
    """Return the items of the holders that have the most."""
    totals = sums(items, size)
    most = max(totals.values(), default=0)
    return [item for item in items if totals[item.holder] == most]


class FairQueue(Generic[Item]):
    """A queue whose holders share the time that serving its items takes (`charge`): start-time fair queueing
    (Goyal, Vin and Cheng, IEEE/ACM Transactions on Networking 5(5), 1997).

    The clock of the queue is the start of the item that was taken last. An item of a holder starts where its
    last one ended, or now if that is past; the earliest start is next. A client that asks now and then
    therefore waits for no second item of another holder, and one with many short items gets as much time as
    one with few long ones. Of holders with one start, the one whose last turn was the longest ago is next;
    without charges they take turns. Within the turns of a holder, its key sets take turns.
    """

    def __init__(self) -> None:
        self._lines: dict[str, OrderedDict[str, list[Item]]] = {}
        self._ends: OrderedDict[str, float] = OrderedDict()
        """Where the last item of a holder ended, in seconds of the clock; the last holder at the end."""
        self._now = 0.0

    def __len__(self) -> int:
        return sum(map(self.count, self._lines))

    def count(self, holder: str) -> int:
        """Return the number of items of a holder."""
        return sum(map(len, self._lines.get(holder, {}).values()))

    def line(self, holder: str, key_set: str = "") -> Sequence[Item]:
        """Return the items of a key set, the next one first."""
        lines = self._lines.get(holder)
        return () if lines is None else tuple(lines.get(key_set, ()))

    def put(self, item: Item, holder: str, key_set: str = "", place: int | None = None) -> None:
        """Add an item, behind the others of its key set or at a place among them."""
        line = self._lines.setdefault(holder, OrderedDict()).setdefault(key_set, [])
        line.insert(len(line) if place is None else place, item)

    def following(self, busy: Collection[str] = ()) -> str | None:
        """Return the holder whose turn is next; None if there is none but ``busy`` ones."""
        starts = {name: self._start(name) for name in self._lines if name not in busy}
        first = [name for name, start in starts.items() if start == min(starts.values())]
        new = [name for name in first if name not in self._ends]
        return new[0] if new else next((name for name in self._ends if name in first), None)

    def _start(self, holder: str) -> float:
        return max(self._now, self._ends.get(holder, 0.0))

    def take(self, busy: Collection[str] = ()) -> Item:
        """Remove the next item and return it. Its holder and its key set go to the end.

        Args:
            busy: holders that get no turn; another one waits.
        """
        holder = self.following(busy)
        assert holder is not None
        self._now = self._ends[holder] = self._start(holder)
        self._ends.move_to_end(holder)
        if len(self._ends) > MANY:
            self._ends.popitem(last=False)
        lines = self._lines[holder]
        key_set, line = lines.popitem(last=False)
        item = line.pop(0)
        if line:
            lines[key_set] = line
        if not lines:
            del self._lines[holder]
        return item

    def charge(self, holder: str, seconds: float) -> None:
        """Count the time that an item of a holder took, after `take`."""
        if holder in self._ends:
            self._ends[holder] += seconds

    def discard(self, item: Item, holder: str, key_set: str = "") -> bool:
        """Remove an item. Returns whether it was there."""
        lines = self._lines.get(holder, OrderedDict())
        line = lines.get(key_set, [])
        if item not in line:
            return False
        line.remove(item)
        if not line:
            del lines[key_set]
        if not lines:
            del self._lines[holder]
        return True


class RateLimiter:
    """A rate of actions of each holder.

    Args:
        a_second: actions a second on average.
        burst: actions at once.
    """

    def __init__(self, a_second: float, burst: int) -> None:
        self._each, self._burst = 1 / a_second, burst
        self._next: dict[str, float] = {}

    def delay(self, holder: str) -> float:
        """Return the seconds until a holder may act again; if they are 0, the action is counted."""
        now = time.monotonic()
        idle = max(self._next.get(holder, now), now)
        delay = max(0.0, idle - now - (self._burst - 1) * self._each)
        if not delay:
            self._next[holder] = idle + self._each
            if len(self._next) > MANY:
                self._next = {name: end for name, end in self._next.items() if end > now}
        return delay


def parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse an address of a socket.

    Raises:
        ValueError: it is not an address.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped


def neighbourhood(address: str) -> str:
    """Return the part of an address that counts: the address itself, or the network of an IPv6 address."""
    try:
        exact = parsed(address)
    except ValueError:
        return address
    if isinstance(exact, ipaddress.IPv4Address):
        return str(exact)
    return str(ipaddress.ip_network((exact, NETWORK_BITS), strict=False))
