"""Slots for connections, shared fairly among their holders.

A *holder* is a tenant, or without accounts a network address. Nobody can fill all slots: a new connection
replaces one of the holder with the most, namely the one with the least credit.
"""

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

NETWORK_BITS = 64
"""An IPv6 customer has a network of this prefix, so its addresses count as one."""


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
        its slot; that may be this one, if the others have more credit."""
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


def _credit(slot: Slot) -> float:
    return slot.until


def neighbourhood(address: str) -> str:
    """Return the holder of an address: the address itself, or the network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))
