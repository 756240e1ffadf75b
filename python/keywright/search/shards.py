"""An index in several parts, of which each may be in a process of its own."""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeVar

from keywright._copies import Unpicklable
from keywright._core import set_threads
from keywright._processes import OfOneProcess
from keywright.errors import EvaluationError, ParameterError, SearchError

from .encrypted_index import EncryptedIndex
from .index import Index
from .messages import MAX_SHARDS

Value = TypeVar("Value")

LIMIT_S = 600.0
"""How long the process of an index may take for an answer, with those before it."""


class Shard(Protocol):
    """What answers for some of the vectors: an `Index`, an `EncryptedIndex`, an `IndexProcess`, or one
    elsewhere, as `keywright.serve.cluster.IndexActor` has it."""

    def directory(self) -> bytes:
        """Return `Index.directory`."""

    def answer(self, query: bytes, keys: bytes) -> bytes:
        """Return `Index.answer`."""


class Shards(
    Unpicklable, elsewhere="load the indices of their folders in the other process, and make Shards of them"
):
    """Several indices that answer as one. All round vectors by one `Quantisation`.

    Thread safety: any number of threads may use one at the same time.

    Args:
        shards: at least one.

    Raises:
        ParameterError: there is none, or more than 1024.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        if not 1 <= len(shards) <= MAX_SHARDS:
            raise ParameterError(
                f"there are {len(shards)} shards; pass 1 to {MAX_SHARDS}",
                what="shards",
                value=len(shards),
                minimum=1,
                maximum=MAX_SHARDS,
            )
        self.shards = list(shards)

    def directory(self) -> bytes:
        """Return what clients need of all shards."""
        return b"".join(shard.directory() for shard in self.shards)

    def answer(self, query: bytes, keys: bytes) -> bytes:
        """Ask all shards at once, and return their answers joined. Shards without vectors are left out.

        Raises:
            SearchError: no shard has a vector.
            KeywrightError: as for `Index.answer`.
        """

        def ask(shard: Shard) -> bytes:
            try:
                return shard.answer(query, keys)
            except SearchError as error:
                if error.code != "empty":
                    raise
                return b""

        with ThreadPoolExecutor(len(self.shards)) as threads:
            answer = b"".join(threads.map(ask, self.shards))
        if not answer:
            raise SearchError("the index has no vectors; add some first")
        return answer


class IndexProcess(OfOneProcess, Unpicklable, elsewhere="make one of the folder in the other process"):
    """A process that holds the index of a folder, and answers for it. Use it in a ``with`` statement, or
    close it. If the process ends early, for lack of memory for example, or does not answer in time, because
    it was stopped, calls that it has not answered raise `EvaluationError`, and the next call starts another
    one.

    Thread safety: any number of threads may use one at the same time.

    Args:
        folder: of `Index.save` or `EncryptedIndex.save`.
        threads: computing threads of the process; those of `keywright.set_threads` by default.
        limit: seconds that it may take for an answer.

    Raises:
        FormatError, FileNotFoundError: as for `Index.load`.
    """

    def __init__(self, folder: str | Path, threads: int | None = None, limit: float = LIMIT_S) -> None:
        self._folder, self._threads, self._limit, self._lock = Path(folder), threads, limit, Lock()
        self._ended, self._closed, self._process = False, False, self._start()

    def _start(self) -> ProcessPoolExecutor:
        """Return a new process with the index."""
        # A process that is spawned, not forked, has no copy of this one's memory.
        process = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            _result(process, self._limit, _load, self._folder, self._threads)
        except BaseException:
            process.shutdown()
            raise
        return process

    def directory(self) -> bytes:
        """Return `Index.directory`.

        Raises:
            EvaluationError: the process has ended.
        """
        return self._ask(_directory)

    def answer(self, query: bytes, keys: bytes) -> bytes:
        """Return `Index.answer`.

        Raises:
            EvaluationError: the process has ended.
        """
        return self._ask(_answer, query, keys)

    def _ask(self, task: Callable[..., bytes], *arguments: bytes) -> bytes:
        if self._copied:
            raise EvaluationError(
                "the process of the index belongs to the one that this was forked from; make an IndexProcess "
                "of the folder here"
            )
        with self._lock:  # the process does one task at a time, and the limit is that of one
            if self._ended and not self._closed:
                self._process.shutdown()
                self._process, self._ended = self._start(), False
            try:
                return _result(self._process, self._limit, task, *arguments)
            except EvaluationError:
                self._ended = True
                raise

    def close(self) -> None:
        """End the process; nothing in a forked process, whose parent's it is."""
        if not self._copied:
            with self._lock:
                self._closed = True
                with contextlib.suppress(EvaluationError, RuntimeError):
                    # This ends a stopped process; one that was closed before takes no task.
                    _result(self._process, self._limit, bool)
                self._process.shutdown()

    def __enter__(self) -> "IndexProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_index(folder: Path) -> Index | EncryptedIndex:
    """Load an index of either kind.

    Raises:
        FormatError, FileNotFoundError: as for `Index.load`.
    """
    return kind_of(folder).load(folder)


def kind_of(folder: Path) -> type[Index | EncryptedIndex]:
    """Return the kind of the index of a folder."""
    return Index if (folder / "vectors.npy").exists() else EncryptedIndex


def _result(
    process: ProcessPoolExecutor, limit: float, task: Callable[..., Value], *arguments: object
) -> Value:
    """Return the result of a task in a process; raises `EvaluationError` if that ends before the task, or is
    ended after some seconds."""
    try:
        future = process.submit(task, *arguments)
        if not wait([future], limit).done:
            for each in (process._processes or {}).values():
                each.kill()
        return future.result()
    except BrokenProcessPool as error:
        raise EvaluationError(
            "the process of the index has ended, as it does when memory is short, or was ended because it "
            f"gave no answer within {limit:g} s; ask again: the next call starts another one"
        ) from error


_INDEX: list[Index | EncryptedIndex] = []
"""The index of this process, if it is one of `IndexProcess`."""


def _load(folder: Path, threads: int | None) -> None:
    if threads is not None:
        set_threads(threads)
    _INDEX.append(load_index(folder))


def _directory() -> bytes:
    return _INDEX[0].directory()


def _answer(query: bytes, keys: bytes) -> bytes:
    return _INDEX[0].answer(query, keys)
