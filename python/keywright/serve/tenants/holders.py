"""Holders: whom everything is counted by that the clients of a service share.

A *holder* is a tenant, or without accounts a network address. All connections, key sets and evaluations of a
client count for one holder, however many there are of them. If a shared resource is used up, the holder with
the most of it gives way (`items_of_largest`), and where clients wait, holders share the time that is served
(`fair_queue`).
"""

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

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


Held = TypeVar("Held", bound=HasHolder)


def holder_of(tenant: str, address: str = "") -> str:
    """Return the holder of a request: its tenant, or without accounts its address."""
    return f"{ADDRESS}{neighbourhood(address)}" if tenant == NOBODY else f"tenant {tenant}"


def totals_of(items: Iterable[Held], size: Callable[[Held], int] = lambda _: 1) -> Counter[str]:
    """Return how much each holder has: the number of its items, or the sum of their sizes."""
    totals = Counter[str]()
    for item in items:
        totals[item.holder] += size(item)
    return totals


def items_of_largest(items: Sequence[Held], size: Callable[[Held], int] = lambda _: 1) -> list[Held]:
    """Return the items of the holders that have the most."""
    totals = totals_of(items, size)
    most = max(totals.values(), default=0)
    return [item for item in items if totals[item.holder] == most]


def parse_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
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
        exact = parse_address(address)
    except ValueError:
        return address
    if isinstance(exact, ipaddress.IPv4Address):
        return str(exact)
    return str(ipaddress.ip_network((exact, NETWORK_BITS), strict=False))
