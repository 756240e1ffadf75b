"""A shard of a search index in an actor of a Ray cluster."""

from functools import cached_property
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from keywright._copies import Unpicklable
from keywright._core import set_threads
from keywright._processes import OfOneProcess
from keywright.errors import WorkerEndedError
from keywright.search import EncryptedIndex, Index
from keywright.search.shards import LIMIT_S, load_index

RETRIES = 3
"""How often a query is sent again if its actor dies. Ray starts another one."""


class IndexActor(OfOneProcess, Unpicklable, elsewhere="make one of the folder in the other process"):
    """A shard of `keywright.search.Shards` on a machine of the cluster to which `ray.init` has connected. Use
    it in a ``with`` statement, or close it.

    Thread safety: any number of threads may use one at the same time.

    Args:
        folder: of `Index.save` or `EncryptedIndex.save`; all machines must see it.
        cpus: processors of the actor, and its computing threads.

    Raises:
        FormatError, FileNotFoundError: as for `Index.load`.
        WorkerEndedError: the actor died, for lack of memory for example, or gave no answer in 10 minutes, as
            where no machine has so many processors free.
    """

    def __init__(self, folder: str | Path, cpus: int = 1) -> None:
        self._folder = str(folder)
        actor = ray.remote(_Holder).options(num_cpus=cpus, max_restarts=-1, max_task_retries=RETRIES)
        self._actor = actor.remote(self._folder, cpus)
        try:
            self.directory()
        except BaseException:
            self.close()
            raise

    def directory(self) -> bytes:
        return self._ask("directory")

    def answer(self, query: bytes, keys: bytes) -> bytes:
        return self._ask("answer", query, keys)

    def _ask(self, method: str, *arguments: bytes) -> bytes:
        try:
            answer: bytes = ray.get(getattr(self._actor, method).remote(*arguments), timeout=LIMIT_S)
        except RayTaskError as error:
            raise error.cause from None
        except (GetTimeoutError, RayActorError) as error:
            raise WorkerEndedError(
                f"the actor of the index {self._folder} did not answer: {error}"
            ) from error
        return answer

    def close(self) -> None:
        """End the actor; nothing in a forked process."""
        if not self._copied:
            ray.kill(self._actor)

    def __enter__(self) -> "IndexActor":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Holder:
    """The actor. It loads its index with the first request, also after a restart."""

    def __init__(self, folder: str, threads: int) -> None:
        self._folder = Path(folder)
        set_threads(threads)

    @cached_property
    def _index(self) -> Index | EncryptedIndex:
        return load_index(self._folder)

    def directory(self) -> bytes:
        return self._index.directory()

    def answer(self, query: bytes, keys: bytes) -> bytes:
        return self._index.answer(query, keys)
