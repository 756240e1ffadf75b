"""Local copies of stored objects, as files that can be read while they are fetched."""

import contextlib
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from keywright.serve.storage.incoming_file import IncomingFile

FETCHES = 4
"""Objects of a copy that are fetched at once."""

Bring = Callable[[str, BinaryIO], int]
"""Write an object's bytes to a file from its position on. Returns their number."""


@dataclass(eq=False)
class Copy:
    """Several objects, concatenated in a file.

    Attributes:
        incoming: the file.
        uses: current uses of the copy.
        left: parts that are missing.
        error: the reason why parts will not arrive.
        ended: set when all parts have arrived, or never will.
    """

    incoming: IncomingFile
    left: int
    uses: int = 1
    error: OSError | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.incoming.ends[-1]

    def wait(self) -> Path:
        """Return the file when all of it is there.

        Raises:
            OSError: it cannot be fetched.
        """
        self.ended.wait()
        if self.error is not None:
            raise self.error
        return self.incoming.path


class Copies:
    """The copies in a folder.

    Args:
        folder: emptied here.
        most: maximum bytes of copies, besides those in use; the least recently used are dropped.
        bring: fetches an object.
    """

    def __init__(self, folder: Path, most: int, bring: Bring) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        self.folder, self._most, self._bring = folder, most, bring
        self._lock, self._numbers = threading.Lock(), itertools.count()
        # The most recently used are at the end.
        self._all: dict[tuple[str, ...], Copy] = {}

    @contextlib.contextmanager
    def hold(
        self, names: Sequence[str], sizes: Callable[[], Sequence[int]], order: Sequence[int] | None = None
    ) -> Iterator[Copy]:
        """Keep a copy of objects while the context lasts. It is fetched, in the background, unless it is
        there or being fetched.

        Args:
            names: the objects.
            sizes: returns their bytes.
            order: their numbers, in the order in which they are fetched.
        """
        key = tuple(names)
        with self._lock:
            copy = self._take(key)
        if copy is None:
            ends = tuple(itertools.accumulate(sizes()))
            copy = self._begin(key, ends, range(len(names)) if order is None else order)
        try:
            yield copy
        finally:
            with self._lock:
                copy.uses -= 1

    def forget(self, names: Sequence[str]) -> bool:
        """Drop a copy. Open files stay readable. Returns whether there was one."""
        with self._lock:
            copy = self._all.pop(tuple(names), None)
        if copy is not None:
            self._stop(copy, OSError("the copy of the objects was dropped"))
        return copy is not None

    def close(self) -> None:
        """Drop all copies."""
        for names in list(self._all):
            self.forget(names)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _take(self, key: tuple[str, ...]) -> Copy | None:
        copy = self._all.pop(key, None)
        if copy is not None:
            self._all[key] = copy
            copy.uses += 1
        return copy

    def _begin(self, key: tuple[str, ...], ends: tuple[int, ...], order: Sequence[int]) -> Copy:
        with self._lock:
            # Another thread may have begun to fetch it.
            if (there := self._take(key)) is not None:
                return there
            self._make_room(ends[-1])
            # A new name: threads of a copy that was dropped may still write to its file.
            incoming = IncomingFile(self.folder / f"{next(self._numbers)}.copy", ends)
            copy = Copy(incoming, len(ends))
            try:
                incoming.begin()
            except OSError:
                incoming.give_up()
                raise
            self._all[key] = copy
        pool = ThreadPoolExecutor(FETCHES, thread_name_prefix="keywright-fetch")
        for number in order:
            pool.submit(self._fetch, key, copy, number)
        pool.shutdown(wait=False)
        return copy

    def _fetch(self, key: tuple[str, ...], copy: Copy, number: int) -> None:
        if copy.ended.is_set():
            return
        ends = copy.incoming.ends
        start = ends[number - 1] if number else 0
        try:
            with copy.incoming.path.open("r+b") as file:
                file.seek(start)
                size = self._bring(key[number], file)
            if size != ends[number] - start:
                raise OSError(f"an object has {size} bytes, but {ends[number] - start} were stored")
            copy.incoming.mark(number)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever
            with self._lock:
                if self._all.get(key) is copy:
                    del self._all[key]
            self._stop(copy, error if isinstance(error, OSError) else OSError(repr(error)))
            return
        with self._lock:
            copy.left -= 1
            if not copy.left:
                copy.ended.set()

    def _stop(self, copy: Copy, error: OSError) -> None:
        with self._lock:
            if not copy.ended.is_set():
                copy.error = error
                copy.ended.set()
        copy.incoming.give_up()

    def _make_room(self, size: int) -> None:
        for key, copy in list(self._all.items()):
            if sum(each.size for each in self._all.values()) + size <= self._most:
                return
            if not copy.uses and copy.ended.is_set():
                del self._all[key]
                copy.incoming.give_up()
