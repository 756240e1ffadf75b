"""The processes that evaluate, as the service sees them."""

import base64
import contextlib
import json
import math
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from keywright._copies import Unpicklable
from keywright._core import BfvParameters, Parameters
from keywright._processes import OfOneProcess
from keywright._reading.documents import OWN, read_json
from keywright._units import format_bytes
from keywright.errors import WorkerEndedError
from keywright.errors.replies import refusal
from keywright.errors.service import BusyError, DiskError, EvaluationError, ServeError

from .resident_keys import Loan, ResidentKeys

SHARES = sys.platform == "linux"
"""Whether there is memory that processes share and nobody can change. Elsewhere a worker reads keys for every
evaluation."""

SILENCE_S = 120.0
"""How long a process with an order may say nothing: it was stopped then, or hangs, and is killed."""

OnStep = Callable[[int], object]
Meanwhile = Callable[[], object]
"""Called while a worker evaluates; what it raises is raised in place of the answer."""


def end_of(answer: Mapping[str, Any], on_step: OnStep | None = None) -> dict[str, Any] | None:
    """Interpret a worker's answer: returns the end of an order, or None if it continues.

    Raises:
        ServeError: a refusal, as its class.
    """
    if "refused" in answer:
        error = refusal(0, {"error": answer["refused"]})
        if "unforeseen" in answer:
            error.unforeseen = str(answer["unforeseen"])
        error.processor = float(answer.get("processor", 0.0))
        raise error
    if "step" in answer and on_step is not None:
        on_step(int(answer["step"]))
    end: dict[str, Any] | None = answer.get("end")
    return end


class Worker:
    """A process of `worker`, started on first use and again after it has ended.

    Args:
        keys: the key sets of the machine.
        gives_way: whether requests and checks go before what the process computes, as with
            `worker.lower_priority`.

    Attributes:
        keys: the key sets of the machine.
        evaluated: hashes of the models that the process has evaluated.
    """

    def __init__(self, keys: ResidentKeys, *, gives_way: bool = True) -> None:
        self.keys, self._gives_way = keys, gives_way
        self._process: subprocess.Popen[bytes] | None = None
        self._passing: socket.socket | None = None
        self._writing = threading.Lock()
        self._cancelled, self._heard = "", math.inf
        """The last evaluation to be cancelled, and when a process with an order last said something."""
        self.evaluated: set[str] = set()

    @property
    def pid(self) -> int | None:
        """The process identifier, None if there is no process."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def order(
        self, on_step: OnStep | None = None, meanwhile: Meanwhile | None = None, **order: object
    ) -> dict[str, Any]:
        """Send an order and wait for its end, one at a time. An order to ``evaluate`` waits for its keys
        (`ResidentKeys.lend`). If it has ``bodies``, they go to the process as bytes, and the ``answer`` at
        the end is bytes as well.

        Raises:
            WorkerEndedError: the process ended.
            LimitError: the keys can never fit.
            ServeError: a refusal, as its class.
        """
        if order["do"] != "evaluate":
            return self._order(on_step, meanwhile, None, order)
        size = order.pop("bytes")
        assert isinstance(size, int)
        with self.keys.lend(str(order["keys"]), size, str(order.pop("holder", ""))) as loan:
            if order["job"] == self._cancelled:
                raise EvaluationError(
                    "the evaluation was cancelled, because its client is gone", code="cancelled"
                )
            end = self._order(on_step, meanwhile, loan, order)
            self.evaluated.add(str(order["model"]))
            return end | {"hit": loan.hit, "evicted": loan.evicted, "loading": loan.loaded}

    def _order(
        self,
        on_step: OnStep | None,
        meanwhile: Meanwhile | None,
        loan: Loan | None,
        order: dict[str, Any],
    ) -> dict[str, Any]:
        process, passing = self.start()
        bodies: Sequence[bytes] = order.pop("bodies", ())
        if bodies:
            order["sizes"] = [len(body) for body in bodies]
        failed: OSError | None = None
        try:
            self._heard = time.monotonic()
            if loan is not None:
                order["shared"] = loan.descriptor is not None
                if loan.descriptor is not None:
                    socket.send_fds(passing, [b"k"], [loan.descriptor])
            self._write(order, bodies)
            if meanwhile is not None:
                self._heard = math.inf
                try:
                    meanwhile()
                except OSError as error:
                    failed = error
                self._heard = time.monotonic()
            assert process.stdout is not None
            for line in process.stdout:
                self._heard, answer = time.monotonic(), read_json(line, OWN)
                if loan is not None and "loaded" in answer:
                    _, descriptors, _, _ = socket.recv_fds(passing, 1, 1)
                    loan.keep(descriptors[0], answer["loaded"])
                end = end_of(answer, on_step)
                if end is None:
                    continue
                if bodies:
                    answer = process.stdout.read(end["size"])
                    if len(answer) != end["size"]:
                        break
                    end["answer"] = answer
                if failed is not None:
                    raise DiskError(f"the disk failed in an evaluation: {failed.strerror}")
                return end
        except (OSError, ValueError, IndexError) as error:
            if isinstance(error, ServeError):
                raise
        finally:
            self._heard = math.inf
        self._reap()
        raise WorkerEndedError("the process that evaluated it has ended")

    def start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """Return the process, started if necessary, and the socket that passes descriptors."""
        process, passing = self._process, self._passing
        if process is not None and passing is not None and process.poll() is None:
            return process, passing
        self._reap()
        own, others = socket.socketpair()
        with others:
            # Nothing passes where there is no memory to share, and Windows hands no descriptors on.
            passed = [others.fileno()] if SHARES else []
            descriptor = passed[0] if passed else None
            code = (
                "from keywright.serve.workers.worker import main; "
                f"main({descriptor}, gives_way={self._gives_way})"
            )
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=passed,
                start_new_session=True,
            )
        self._passing = own
        return self._process, own

    def cancel(self, job: str) -> None:
        """Cancel an evaluation if it runs."""
        self._cancelled = job
        with contextlib.suppress(OSError):
            self._write({"do": "cancel", "job": job})

    def kill(self) -> None:
        """Kill the process; a caller that waits for it gets an error."""
        process = self._process
        if process is not None:
            process.kill()

    def kill_silent(self, awake: float) -> None:
        """Kill the process if it has an order and says nothing while this one, since a time of the monotonic
        clock, is awake; it is started again."""
        if time.monotonic() - max(self._heard, awake) > SILENCE_S:
            self.kill()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def _write(self, order: object, bodies: Sequence[bytes] = ()) -> None:
        with self._writing:
            process = self._process
            if process is not None and process.stdin is not None:
                process.stdin.write(json.dumps(order).encode() + b"\n")
                for body in bodies:
                    process.stdin.write(body)
                process.stdin.flush()

    def _reap(self) -> None:
        process, self._process = self._process, None
        passing, self._passing = self._passing, None
        self.evaluated = set()
        if passing is not None:
            passing.close()
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


class Workers(OfOneProcess, Unpicklable, elsewhere="make them in the process that serves"):
    """Processes for evaluations, and one that checks key sets meanwhile.

    Thread safety: any number of threads may use one at the same time, until `close`.

    Args:
        count: number of evaluating processes; each uses all threads of the engine.
        key_memory: bytes of key sets in memory, shared by all processes; see `ResidentKeys`.

    Attributes:
        keys: the key sets in memory.
        inline: whether messages and answers may be bytes of an order instead of files.
    """

    inline = True

    def __init__(self, count: int = 1, key_memory: int | None = None) -> None:
        self.keys = ResidentKeys(key_memory)
        self.all = [Worker(self.keys) for _ in range(count)]
        self.count = count
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in self.all:
            self._idle.put(worker)
        self._checker = Worker(self.keys, gives_way=False)
        self._checking, self._checked = threading.Lock(), ""
        self._awake = self._last_look = -math.inf
        """Since when this process has looked at the others often, and when it last did."""
        self._working: dict[str, int] = {}

    @contextmanager
    def one(self) -> Iterator[Worker]:
        """Borrow an idle worker; waits for one."""
        worker = self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put(worker)

    def prepare(self, models: Sequence[Mapping[str, Any]]) -> None:
        """Load models into all workers before requests need them.

        Args:
            models: the result of `JobExecution.description` for each model.

        Raises:
            ServeError: a model cannot be used.
        """
        with ExitStack() as stack:
            for worker in [stack.enter_context(self.one()) for _ in range(self.count)]:
                for model in models:
                    self._working[model["model"]] = worker.order(do="load", **model)["working"]

    def require_memory(self, keys: str, size: int, model: str, patience: Callable[[], int]) -> None:
        """Check that the machine has memory for an evaluation.

        Args:
            keys: name of the key set.
            size: its bytes in memory.
            model: hash of the model.
            patience: returns the seconds after which memory may be free.

        Raises:
            LimitError: the keys can never fit.
            BusyError: the planned memory is not free, even if all other keys were evicted.
        """
        self.keys.require(size)
        # A worker keeps the memory that it has used once for evaluations of a model.
        begun = all(model in worker.evaluated for worker in self.all)
        needed = size + (0 if begun else self._working.get(model, 0))
        room = self.keys.reachable
        if needed > room:
            seconds = patience()
            raise BusyError(
                f"an evaluation needs {format_bytes(needed)} of memory, but {format_bytes(room)} are free; "
                f"ask again in {seconds} s",
                retry_after=seconds,
            )

    def require_any_memory(self) -> None:
        """Check that there is memory for an evaluation of some model.

        Raises:
            BusyError: the planned memory of the smallest model is not free, even without all resident keys.
        """
        least = min(self._working.values(), default=0)
        room = self.keys.reachable
        if least > room:
            raise BusyError(
                f"an evaluation needs {format_bytes(least)} of memory, but {format_bytes(room)} are free"
            )

    def forget(self, keys: str) -> None:
        """Evict keys: now, or after the evaluation that uses them. If they are being checked, that ends."""
        self.keys.forget(keys)
        if keys == self._checked:
            self._checker.cancel(keys)

    def machines(self) -> list[tuple[str, int]]:
        """Return name and processors of the machines that evaluate, besides the service's own."""
        return []

    def rest(self) -> None:
        """End idle processes; they restart when they are needed."""
        idle = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for worker in idle:
            worker.close()
            self._idle.put(worker)
        if self._checking.acquire(blocking=False):
            self._checker.close()
            self._checking.release()

    def kill_silent(self) -> None:
        """Kill the processes that were stopped, or hang; called often. If it was not, as when a container is
        paused, this process was stopped with them."""
        now = time.monotonic()
        if now - self._last_look > SILENCE_S / 4:
            self._awake = now
        self._last_look = now
        for worker in (*self.all, self._checker):
            worker.kill_silent(self._awake)

    def check(self, keys: str, path: Path, parameters: Parameters | BfvParameters) -> str:
        """Check a key set and return its SHA-256.

        Args:
            keys: name of the set.
            path: its file.
            parameters: of its keys.

        Raises:
            InvalidObjectError: it cannot be used.
            EvaluationError: it was deleted meanwhile (`forget`).
        """
        encoded = base64.b64encode(parameters.to_bytes()).decode()
        with self._checking:
            self._checked = keys
            try:
                end = self._checker.order(do="check", job=keys, path=str(path), parameters=encoded)
            finally:
                self._checked = ""
        return str(end["digest"])

    def close(self) -> None:
        """End all processes; in a forked process nothing, because they are its parent's."""
        if self._copied:
            return
        for worker in (*self.all, self._checker):
            worker.close()
        self.keys.close()
