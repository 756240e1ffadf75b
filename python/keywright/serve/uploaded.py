"""A key set of a client, or as much of it as has come: which of its bytes are here, and in which objects."""

import threading
import time
from dataclasses import dataclass, field

from .configurations import Configuration
from .storage.objects import drawer

STALLED_S, MOVED_BYTES = 60.0, 1 << 16
"""An upload that has not moved so many bytes for so long makes room where all places are taken."""

MAX_RUNS = 64
"""Stretches of a set that are here with nothing between them: parallel parts make one each."""

DIGITS = 12
"""Of an object's name: where in the set it begins, in hexadecimal."""


def object_name(tenant: str, identifier: str, begin: int) -> str:
    """The object with the bytes of a set from one of them on."""
    return f"keys/{drawer(tenant)}/{identifier}/{begin:0{DIGITS}x}"


@dataclass(eq=False)
class Stretch:
    """Bytes of a set that are being received.

    Attributes:
        begin, end: where they belong.
        anywhere: whether they may lie behind a hole.
        stopped: whether nothing more of them is taken.
        writing: held while some are written.
    """

    begin: int
    end: int
    anywhere: bool
    stopped: bool = False
    writing: threading.Lock = field(default_factory=threading.Lock, repr=False)


@dataclass
class UploadedKeys:
    """A key set, or as much of it as has come.

    Attributes:
        identifier: 32 hexadecimal digits.
        model: hash of the model that it was made for.
        configuration: whose keys they are.
        made: when it was begun, in seconds since 1970.
        tenant: whose it is.
        parts: bytes of each object, by where it begins. They lie side by side, or with holes between them.
        digest: SHA-256 of a set that is ready.
        ready: whether all bytes have come, and were checked.
        used: when it was last used, in seconds of a clock that nobody sets.
        moved: when `MOVED_BYTES` had come since the time before, by that clock.
        receiving: the pieces that are being received.
        joints: where bytes begin that were not looked at together with those before them.
        checking: whether it is being checked.
        gone: whether it was deleted.
        lock: held to change any of these.
    """

    identifier: str
    model: str
    configuration: Configuration
    made: float
    tenant: str = ""
    parts: dict[int, int] = field(default_factory=dict)
    digest: str = ""
    ready: bool = False
    used: float = field(default_factory=time.monotonic)
    moved: float = field(default_factory=time.monotonic)
    receiving: list[Stretch] = field(default_factory=list)
    joints: set[int] = field(default_factory=set)
    checking: bool = False
    gone: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _mark: int = 0

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Beginnings and ends of what is here without a hole."""
        found: list[tuple[int, int]] = []
        for begin, size in sorted(self.parts.items()):
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], begin + size)
            elif size > 0:
                found.append((begin, begin + size))
        return found

    @property
    def received(self) -> int:
        """Bytes that have come from the beginning on, without a hole."""
        runs = self.runs
        return runs[0][1] if runs and runs[0][0] == 0 else 0

    @property
    def stored(self) -> int:
        """Bytes that have come, wherever they belong."""
        return sum(list(self.parts.values()))

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Beginnings and ends of what has not come."""
        ends = [0, *(end for _, end in self.runs)]
        begins = [*(begin for begin, _ in self.runs), self.configuration.key_bytes]
        return [(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin]

    @property
    def whole(self) -> bool:
        """Whether all bytes have come."""
        return self.received == self.configuration.key_bytes

    def name(self, begin: int) -> str:
        """The object that begins there."""
        return object_name(self.tenant, self.identifier, begin)

    @property
    def names(self) -> list[str]:
        """All objects, in order."""
        return [self.name(begin) for begin in sorted(self.parts)]

    def before(self, place: int) -> int | None:
        """Where the object begins that ends at a place, if there is one."""
        pairs = list(self.parts.items())
        return next((begin for begin, size in pairs if size and begin + size == place), None)

    def came(self, begin: int, size: int) -> None:
        """Note that an object has so many bytes."""
        with self.lock:
            self.parts[begin] = size
            stored = self.stored
            if stored - self._mark >= MOVED_BYTES:
                self.moved, self._mark = time.monotonic(), stored

    def busy(self) -> bool:
        """Whether a piece of it is being received, or it is being checked."""
        return bool(self.receiving) or self.checking

    def stalled(self) -> bool:
        """Whether it is incomplete and hardly moves: it makes room for others."""
        return not self.ready and time.monotonic() - self.moved > STALLED_S
