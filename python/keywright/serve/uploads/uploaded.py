"""A complete or partial key set of a client: which of its bytes have arrived, and in which objects."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from keywright.serve.configurations import Configuration
from keywright.serve.exchanged import Direction, ExchangedObject
from keywright.serve.storage.objects import tenant_digest

STALLED_S, MOVED_BYTES = 60.0, 1 << 16
"""An upload that moves fewer than this many bytes in this many seconds may be evicted if all slots are
taken."""

MAX_RUNS = 64
"""Maximum number of contiguous ranges of a set; each parallel part creates one."""

LEAST_PART = 1 << 20
"""Bytes of the shortest range that may begin where no other one ended, once `MAX_RUNS` have: each is an
object of its own, and every request looks at all objects of its set."""

DIGITS = 12
"""Digits of an object's name: its offset in the set, in hexadecimal."""


def object_name(tenant: str, identifier: str, begin: int) -> str:
    """Return the name of the object with the bytes of a set from an offset on."""
    return f"keys/{tenant_digest(tenant)}/{identifier}/{begin:0{DIGITS}x}"


LISTED = 32
"""Exchanged objects of a set that are listed, the latest ones."""


@dataclass(eq=False)
class IncomingRange:
    """A range of a set that is being received.

    Attributes:
        begin, end: the range.
        anywhere: whether it may begin after a gap.
        stopped: whether no more of its bytes are accepted.
        writing: held during a write.
    """

    begin: int
    end: int
    anywhere: bool
    stopped: bool = False
    writing: threading.Lock = field(default_factory=threading.Lock, repr=False)


@dataclass
class UploadedKeys:
    """A complete or partial key set.

    Attributes:
        identifier: 32 hexadecimal digits.
        model: hash of the model that the client named at the start.
        configuration: the configuration of the keys.
        start: start of the upload, in seconds since 1970.
        tenant: its tenant.
        holder: tenant, or without accounts the address that the set counts for (`holder_of`).
        parts: bytes of each object, by its offset. Objects are adjacent, or have gaps between them.
        digest: SHA-256 of a ready set.
        ready: whether all bytes have arrived and were checked.
        since: time when it got its place, by the clock of `used`.
        used: time of the last use, in seconds of a monotonic clock.
        moved: time when another `MOVED_BYTES` had arrived, by that clock.
        receiving: the ranges that are being received.
        boundaries: offsets where separately received parts meet.
        unseen: whether a client wrote bytes of it to the object storage itself.
        checking: whether it is being checked.
        gone: whether it was deleted.
        begun: whether it ever counted towards the capacity.
        exchanged: the latest objects that its client and the server exchanged.
        lock: held while any of these change.
    """

    identifier: str
    model: str
    configuration: Configuration
    start: float
    tenant: str = ""
    holder: str = ""
    parts: dict[int, int] = field(default_factory=dict)
    digest: str = field(default="", init=False)
    ready: bool = field(default=False, init=False)
    since: float = field(default_factory=time.monotonic, init=False)
    used: float = field(default_factory=time.monotonic, init=False)
    moved: float = field(default_factory=time.monotonic, init=False)
    receiving: list[IncomingRange] = field(default_factory=list, init=False)
    boundaries: set[int] = field(default_factory=set, init=False)
    unseen: bool = field(default=False, init=False)
    checking: bool = field(default=False, init=False)
    gone: bool = field(default=False, init=False)
    begun: bool = field(default=False, init=False)
    exchanged: deque[ExchangedObject] = field(default_factory=lambda: deque(maxlen=LISTED), init=False)
    lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _mark: int = field(default=0, init=False)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Return begin and end of each contiguous range."""
        ranges: list[tuple[int, int]] = []
        for begin, size in sorted(self.parts.items()):
            if ranges and ranges[-1][1] == begin:
                ranges[-1] = (ranges[-1][0], begin + size)
            elif size > 0:
                ranges.append((begin, begin + size))
        return ranges

    @property
    def received(self) -> int:
        """Bytes from the start on that have arrived without a gap."""
        runs = self.runs
        return runs[0][1] if runs and runs[0][0] == 0 else 0

    @property
    def stored(self) -> int:
        """Bytes that have arrived, anywhere."""
        return sum(list(self.parts.values()))

    @property
    def placed(self) -> bool:
        """Whether it counts towards capacity and quota: bytes of it have arrived, or are awaited."""
        return self.stored > 0 or any(incoming.begin < incoming.end for incoming in list(self.receiving))

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Return begin and end of each missing range."""
        ends = [0, *(end for _, end in self.runs)]
        begins = [*(begin for begin, _ in self.runs), self.configuration.key_bytes]
        return [(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin]

    @property
    def whole(self) -> bool:
        """Whether all bytes have arrived."""
        return self.received == self.configuration.key_bytes

    def name(self, begin: int) -> str:
        """Return the name of the object at an offset."""
        return object_name(self.tenant, self.identifier, begin)

    @property
    def names(self) -> list[str]:
        """Return the names of all objects, in order."""
        return [self.name(begin) for begin in sorted(self.parts)]

    def before(self, place: int) -> int | None:
        """Return the offset of the object that ends at ``place``, if there is one."""
        pairs = list(self.parts.items())
        return next((begin for begin, size in pairs if size and begin + size == place), None)

    def record(self, begin: int, size: int) -> None:
        """Record the size of an object."""
        with self.lock:
            self.parts[begin] = size
            stored = self.stored
            if stored - self._mark >= MOVED_BYTES:
                self.moved, self._mark = time.monotonic(), stored

    def note(self, direction: Direction, objects: Sequence[bytes]) -> None:
        """Record exchanged objects; errors as for `ExchangedObject.of`, which leave none of them recorded."""
        self.exchanged.extend([ExchangedObject.of(direction, data) for data in objects])

    def busy(self) -> bool:
        """Whether bytes are being received, or the set is being checked."""
        return bool(self.receiving) or self.checking

    def stalled(self) -> bool:
        """Whether it is incomplete and hardly progresses, so that it can be evicted."""
        return not self.ready and time.monotonic() - self.moved > STALLED_S
