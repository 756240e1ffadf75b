"""Places that peers share fairly: the holder with the most loses one for the next newcomer.

A *holder* is a tenant, or without accounts a network address. Nobody can fill all places: a newcomer replaces
one of the holder with the most, namely the one with the least credit.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

NETWORK_BITS = 64
"""An IPv6 customer has a network of this prefix, so its addresses count as one."""


@dataclass(eq=False)
class Place:
    """A place in use.

    Attributes:
        give_up: called when it is taken away.
        holder: whose it is.
        until: when its credit ends, by the clock of the event loop.
    """

    give_up: Callable[[], object]
    holder: str = ""
    until: float = float("inf")


class Places:
    """The places of a server."""

    def __init__(self) -> None:
        self._held: dict[Place, None] = {}

    def __len__(self) -> int:
        return len(self._held)

    def enter(self, place: Place, most: int) -> None:
        """Take a place; above so many, another one is given up; this one, if its holder has the most and the
        others have more credit."""
        self._held[place] = None
        if len(self._held) <= most:
            return
        counts = Counter(each.holder for each in self._held)
        largest = max(counts.values())
        victim = min((each for each in self._held if counts[each.holder] == largest), key=_credit)
        # Its connection may take a while to end.
        self.leave(victim)
        victim.give_up()

    def leave(self, place: Place) -> None:
        """Free a place."""
        self._held.pop(place, None)


def _credit(place: Place) -> float:
    return place.until


def neighbourhood(address: str) -> str:
    """Return what an address is counted as: itself, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, NETWORK_BITS), strict=False))
