"""What passed between clients and the server, as the server sees it."""

import threading
from collections import OrderedDict, deque
from dataclasses import asdict, dataclass

from keywright._core import inspect

SEEN = 32
"""Objects of a client that its account lists."""

SAMPLE_BYTES = 32
"""Bytes of the middle of an object that an account shows."""


@dataclass(frozen=True)
class Sight:
    """An object that passed between a client and the server, as the server sees it.

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
    def of(direction: str, data: bytes) -> "Sight":
        """Describe bytes, as far as that is possible without keys."""
        middle = len(data) // 2
        kind = str(inspect(data)["kind"])
        return Sight(direction, kind, len(data), data[middle : middle + SAMPLE_BYTES].hex())


class Sights:
    """The last things that passed of each client, by the identifier of its keys."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, deque[Sight]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, identifier: str, sight: Sight, most: int) -> None:
        """Note something.

        Args:
            identifier: of the client's keys.
            sight: what passed.
            most: clients that there are accounts of; the ones noted first go.
        """
        with self._lock:
            self._seen.setdefault(identifier, deque(maxlen=SEEN)).append(sight)
            while len(self._seen) > most:
                self._seen.popitem(last=False)

    def of(self, identifier: str) -> list[dict[str, object]]:
        """Those of a client, as JSON has them."""
        with self._lock:
            return [asdict(sight) for sight in self._seen.get(identifier, ())]

    def forget(self, identifier: str) -> None:
        """Forget a client."""
        with self._lock:
            self._seen.pop(identifier, None)
