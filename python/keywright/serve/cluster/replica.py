"""A replica: an actor of Ray Serve with a worker, which holds keys and evaluates one order at a time."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from keywright.errors import WorkerEndedError
from keywright.errors.service import EvaluationError, ServeError
from keywright.serve.workers.resident_keys import ResidentKeys
from keywright.serve.workers.workers import Worker

from .routing import Costs

Order = Mapping[str, Any]
Answer = dict[str, Any]

ENDED = "ended"
"""Member of the answer that says that the worker ended during the order."""


class Replica:
    """The class of the deployment.

    Args:
        models: description of each model for a worker.
        threads: threads of the engine.
        key_memory: bytes of key sets that it holds; see `ResidentKeys`.
    """

    def __init__(self, models: Sequence[Order], threads: int, key_memory: int | None = None) -> None:
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        self._keys = ResidentKeys(key_memory)
        self._models, self._worker, self._turn = models, Worker(self._keys), asyncio.Lock()
        self._costs = Costs()
        self._running, self._cancelled = "", set[str]()
        self._load()

    def record_replica_metadata(self) -> Answer:
        """Return the constants that the router needs: the key memory, the machine and the process."""
        return {"budget": self._keys.budget, "host": socket.gethostname(), "pid": os.getpid()}

    def record_routing_stats(self) -> Answer:
        """Return the resident keys and measured costs, for the router."""
        return {"resident": self._keys.sizes(), "costs": self._costs.to_json()}

    async def check_health(self) -> None:
        """Do nothing: an actor that answers is healthy, and its worker restarts by itself."""

    async def evaluate(self, order: Order) -> AsyncIterator[Answer]:
        """Run an ``evaluate`` order: yields an empty answer when it begins, then the answers of the
        worker."""
        loop, said = asyncio.get_running_loop(), asyncio.Queue[Answer]()
        job, ended = str(order["job"]), False

        def say(answer: Answer) -> None:
            loop.call_soon_threadsafe(said.put_nowait, answer)

        async with self._turn:
            if job in self._cancelled:
                self._cancelled.discard(job)
                yield _refused(
                    EvaluationError(
                        "the evaluation was cancelled, because its client is gone", code="cancelled"
                    )
                )
                return
            yield {}
            self._running = job
            working = asyncio.ensure_future(asyncio.to_thread(self._work, order, say))
            try:
                while True:
                    answer = await said.get()
                    ended = "step" not in answer
                    yield answer
                    if ended:
                        return
            finally:
                # The caller may have gone during the evaluation.
                if not ended:
                    self._worker.cancel(job)
                await asyncio.shield(working)
                self._running = ""

    async def cancel(self, job: str) -> None:
        """Cancel an evaluation that runs or waits."""
        if self._running == job:
            self._worker.cancel(job)
        elif self._turn.locked():
            self._cancelled.add(job)
        else:
            self._cancelled.clear()

    async def forget(self, keys: str) -> None:
        """Drop keys: now, or after the evaluation that uses them."""
        self._keys.forget(keys)

    def _load(self) -> None:
        for model in self._models:
            self._worker.order(do="load", **model)

    def _work(self, order: Order, say: Callable[[Answer], None]) -> None:
        """Run an order on the worker and report its end."""
        try:
            end = self._worker.order(lambda step: say({"step": step}), **{**order, "do": "evaluate"})
        except WorkerEndedError as error:
            say({ENDED: str(error)})
        except ServeError as error:
            say(_refused(error) | ({"unforeseen": error.unforeseen} if error.unforeseen else {}))
        except Exception as error:  # noqa: BLE001 - whatever it is, who asked gets an answer
            say(_refused(ServeError("the evaluation failed")) | {"unforeseen": repr(error)})
        else:
            if not end["hit"]:
                self._costs.loaded(int(order["bytes"]), end["loading"])
            self._costs.evaluated(str(order["model"]), end["seconds"])
            say({"end": end})


def _refused(error: ServeError) -> Answer:
    return {"refused": error.reason()["error"]}
