"""Uploads a key set in parts, several at once, to the ranges that the server lacks."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from pathlib import Path

from keywright.errors.replies import address
from keywright.errors.service import (
    BusyError,
    InvalidReplyError,
    ServeError,
    StorageError,
    UnreachableError,
    UploadError,
)

from .connection import current
from .exchange import POLL_S, Exchange, Progress, persist

PART_BYTES = 4 << 20
IN_FLIGHT = 3
"""Parts in flight at a time, each on its own connection: this hides the round trip of one part."""

RETRIES = 7
"""How often an upload continues after a broken connection without progress."""

PAUSE_S = 0.05
PATIENCE_S = 120.0
"""The longest pause that a server may ask for with Retry-After."""

CHECK_S = 600.0
"""How long a server may check a whole key set."""

MAX_RANGES = 1024

SENDINGS = 4
"""How often each byte is sent on average, at most: the server says what is missing, again and again."""

QUESTIONS = 3
"""How often the client asks for the missing ranges before it sends parts again."""

ByteRange = tuple[int, int]
"""Begin and end of a range of bytes."""


def send_keys(server: Exchange, name: str, path: Path, progress: Progress | None) -> None:
    """Upload the file of a key set, and wait until the server has checked it; errors as for `send_file`."""
    keys = f"/v1/keys/{name}"
    send_file(server, keys, path, progress)
    # The server's check of a large key set takes longer than a request.
    until = time.monotonic() + CHECK_S
    while persist(lambda: server.ask("GET", keys)).get("ready") is not True:
        if time.monotonic() > until:
            raise InvalidReplyError(
                f"the server has all bytes of the keys, and has not checked them in {CHECK_S:.0f} s; ask its "
                "operator"
            )
        time.sleep(POLL_S)


def send_file(server: Exchange, keys: str, path: Path, progress: Progress | None) -> None:
    """Send the missing bytes, directly to the object storage of the server if possible.

    Args:
        server: the server.
        keys: path of the key set there.
        path: path of the key set here.
        progress: called with bytes that have arrived and bytes in all.

    Raises:
        UnreachableError, BusyError: the server does not come back, or has no room.
        InvalidReplyError: it accepts no more bytes, or does not report which are missing.
        ServeError: a refusal of the server.
    """
    total, failures = path.stat().st_size, 0
    most = SENDINGS * total + (RETRIES + 1) * min(total, IN_FLIGHT * PART_BYTES)
    way = _Direct(server, keys, most)
    missing = _missing(server, keys, total)
    least = _size(missing)
    while missing:
        broken = None
        try:
            _send_parts(way, path, missing, progress, total)
        except (UnreachableError, BusyError, UploadError) as error:
            if error.code == "deadline":
                raise
            broken = error
            stated = error.retry_after if isinstance(error, BusyError) else 0
            if stated > PATIENCE_S:
                raise
            time.sleep(min(max(PAUSE_S * 2**failures, stated), current().left))
        # A part whose answer was lost is here: without this question it would be sent again for ever.
        for _ in range(QUESTIONS):
            with contextlib.suppress(UnreachableError):
                missing = _missing(server, keys, total)
                break
        # Only what was never reached before is progress: lists may alternate.
        failures = 0 if _size(missing) < least else failures + 1
        least = min(least, _size(missing))
        if failures > RETRIES or way.spent:
            if broken is not None and not isinstance(broken, UploadError):
                raise broken
            raise InvalidReplyError(f"the server accepts no more than {total - least} of {total} bytes")


class _Direct:
    """Sends parts to the object storage; to the server if there is no storage, or if it cannot be reached.

    Args:
        most: bytes that are sent in all, at most.
    """

    def __init__(self, server: Exchange, keys: str, most: int) -> None:
        self._server, self._keys, self._there = server, keys, True
        self._left, self._counting = most, threading.Lock()

    @property
    def spent(self) -> bool:
        """Whether more was sent than the server can have lost by accident."""
        return self._left < 0

    def send(self, begin: int, data: bytes) -> None:
        """Send a part, if the bytes that are left allow it."""
        with self._counting:
            self._left -= len(data)
        if self.spent:
            return
        if self._there and self._write(begin, data):
            return
        self._server.send("PUT", f"{self._keys}/parts?offset={begin}", data)

    def _write(self, begin: int, data: bytes) -> bool:
        """Write a part to the storage. Returns False if the storage cannot be used."""
        own = f"{self._keys}/direct?offset={begin}"
        try:
            entry = self._server.ask("POST", f"{own}&length={len(data)}")
            self._server.write(address(entry, "url"), data)
        except StorageError:
            self._there = False
            return False
        self._server.ask("PUT", own)
        return True


def _send_parts(
    way: _Direct,
    path: Path,
    missing: Sequence[ByteRange],
    progress: Progress | None,
    total: int,
) -> None:
    """Send ranges until one of their parts fails."""

    def send(part: ByteRange) -> int:
        begin, end = part
        with path.open("rb") as file:
            file.seek(begin)
            way.send(begin, file.read(end - begin))
        return end - begin

    done, pool = total - _size(missing), ThreadPoolExecutor(IN_FLIGHT)
    try:
        for sent in as_completed([pool.submit(copy_context().run, send, part) for part in _parts(missing)]):
            done += sent.result()
            if progress is not None:
                progress(done, total)
    except ServeError:
        raise
    except BaseException:
        # After an interrupt nobody waits for parts in flight, which may wait a minute for the server.
        current().abandon()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _parts(missing: Sequence[ByteRange]) -> Iterator[ByteRange]:
    for begin, end in missing:
        for place in range(begin, end, PART_BYTES):
            yield place, min(end, place + PART_BYTES)


def _size(missing: Sequence[ByteRange]) -> int:
    return sum(end - begin for begin, end in missing)


def _missing(server: Exchange, keys: str, total: int) -> list[ByteRange]:
    """Return the missing ranges, in order."""
    entry, last = server.ask("GET", keys).get("missing"), 0
    ranges: list[ByteRange] = []
    for item in entry if isinstance(entry, list) and len(entry) <= MAX_RANGES else [None]:
        match item:
            case [int(begin), int(end)] if last <= begin < end <= total and bool not in map(type, item):
                ranges.append((begin, end))
                last = end
            case _:
                raise InvalidReplyError("the server does not report which bytes of the keys are missing")
    return ranges
