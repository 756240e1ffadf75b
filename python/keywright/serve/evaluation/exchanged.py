"""The objects that clients and the server exchange, as the server sees them."""

import threading
from collections import OrderedDict, deque
from dataclasses import asdict, dataclass

from keywright._core import inspect

LISTED = 32
"""Listed objects of a client."""

SAMPLE_BYTES = 32
"""Bytes of the sample from the middle of an object."""


@dataclass(frozen=True)
class ExchangedObject:
    """An object that a client sent or received, as the server sees it.

    Attributes:
        direction: "received" or "sent".
        what: the kind of object, from its header.
        size: its bytes.
        sample: a few bytes from its middle, in hexadecimal.
    """

    direction: str
    what: str
    size: int
    sample: str

    @staticmethod
    def of(direction: str, data: bytes) -> "ExchangedObject":
        """Describe bytes, as far as that is possible without keys."""
        middle = len(data) // 2
        kind = str(inspect(data)["kind"])
        return ExchangedObject(direction, kind, len(data), data[middle : middle + SAMPLE_BYTES].hex())


class ExchangeRecord:
    """The latest objects of each client, by the identifier of its keys."""

    def __init__(self) -> None:
        self._objects: OrderedDict[str, deque[ExchangedObject]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, identifier: str, item: ExchangedObject, most: int) -> None:
        """Record an object.

        Args:
            identifier: identifier of the client's keys.
            item: the object.
            most: maximum number of recorded clients; the oldest are dropped.
        """
        with self._lock:
            self._objects.setdefault(identifier, deque(maxlen=LISTED)).append(item)
            while len(self._objects) > most:
                self._objects.popitem(last=False)

    def of(self, identifier: str) -> list[dict[str, object]]:
        """Return the objects of a client, for JSON."""
        with self._lock:
            return [asdict(item) for item in self._objects.get(identifier, ())]

    def forget(self, identifier: str) -> None:
        """Drop the objects of a client."""
        with self._lock:
            self._objects.pop(identifier, None)
