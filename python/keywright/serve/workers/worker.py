"""A process that evaluates: it runs `main`, with orders on its standard input.

An order and each of its answers is a line of JSON. Ciphertexts are files, or, for an order with ``sizes``,
bytes after its line; the answer's bytes then follow the line of the end, which has their ``size``. Keys are
shared memory, whose descriptors pass through a socket. Either the order comes with a descriptor, or the
worker reads the keys from their file and hands their memory to the service for later orders. A worker keeps
no keys between orders. The process ends when its input does and thus never outlives the service. It may be
killed at any time, because its files get their names only when they are complete. It shows every `ALIVE_S`
that it has an order and was not stopped.

| order | answers |
|---|---|
| ``check`` job, path, parameters | ``end``: digest of a complete, usable key set |
| ``load`` model | ``end``: planned bytes of an evaluation besides keys; 0 without a budget |
| ``evaluate`` model, keys, messages, answer | ``step`` now and then; ``loaded``, ``end``: seconds |
| any | ``alive`` |
| ``cancel`` job | none: the running evaluation, or check, ends with ``refused`` |
"""

import base64
import contextlib
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any, BinaryIO

from keywright._core import EvaluationKeys
from keywright._files import digest_of, replace
from keywright._reading.documents import OWN, read_json
from keywright.errors import KeywrightError, MismatchError
from keywright.errors.model import FolderError
from keywright.errors.service import (
    DiskError,
    EvaluationError,
    InvalidObjectError,
    ServeError,
    UnknownKeysError,
)
from keywright.model.served import framing
from keywright.plan.memory.machine import resident_bytes
from keywright.serve.served.interface import Served, ServedRunner
from keywright.serve.served.loading import key_parameters, load_served
from keywright.serve.storage.incoming_file import IncomingFile

PRIORITY = 5
"""By how much evaluations give way to requests: they get a quarter of a processor that both want."""

GROUP_TRIES, GROUP_WAIT_S = 20, 0.1
"""How often the priority of a session is written: Linux allows one such write in 100 ms, of all users."""

Order = Mapping[str, Any]
HandOver = Callable[[int, float], None]

ALIVE_S = 10.0

TELL_EVERY_S = 0.05
"""Seconds between reports of an evaluation's progress."""


class Engine:
    """A worker's memory and its orders.

    Args:
        answers: stream for the answers.
        passing: socket that passes descriptors of keys, None without sealed shared memory.
    """

    def __init__(self, answers: BinaryIO, passing: socket.socket | None) -> None:
        self._answers, self._passing, self._responding = answers, passing, threading.Lock()
        self._runners: dict[str, tuple[Served, ServedRunner]] = {}
        self.cancelled: str | None = None
        self._resident, self._executes = resident_bytes(), False

    def respond(self, **answer: object) -> None:
        """Write an answer."""
        with self._responding:
            self._answers.write(json.dumps(answer).encode() + b"\n")
            self._answers.flush()

    def show_life(self) -> None:
        """Say now and then that the process runs, while it has an order; never returns."""
        while True:
            time.sleep(ALIVE_S)
            if self._executes:
                self.respond(alive=True)

    def execute(self, order: Order) -> None:
        """Run an order and report its outcome."""
        begun = time.process_time()
        answer, self._executes = b"", True
        try:
            end: dict[str, Any] = getattr(self, f"do_{order['do']}")(order)
        except ServeError as error:
            self._refuse(error, begun)
        except OSError as error:
            # Its text names a file, and so an evaluation or a key set.
            reason = error.strerror or type(error).__name__
            self._refuse(DiskError(f"the disk failed during an evaluation: {reason}"), begun)
        except (KeywrightError, MemoryError) as error:
            self._refuse(_failed(error, order), begun)
        except Exception as error:  # noqa: BLE001 - whatever it is, the process goes on
            other = ServeError("the evaluation failed for an unexpected reason; see the server's log")
            other.unforeseen = "".join(format_exception(error)).rstrip()
            self._refuse(other, begun)
        else:
            answer = end.pop("bytes", answer)
            end |= {"size": len(answer), "processor": time.process_time() - begun}
            with self._responding:
                self._answers.write(json.dumps({"end": end}).encode() + b"\n" + answer)
                self._answers.flush()
        finally:
            self._executes = False

    def _refuse(self, error: ServeError, begun: float) -> None:
        """Report an order that failed, which began after so much processor time."""
        more = {"unforeseen": error.unforeseen} if error.unforeseen else {}
        self.respond(refused=error.reason()["error"], processor=time.process_time() - begun, **more)

    def do_check(self, order: Order) -> dict[str, object]:
        """Read a complete key set, which checks every residue, checksum and security bound."""
        path, require = Path(order["path"]), partial(self.require, order)
        require()
        parameters = key_parameters(base64.b64decode(order["parameters"]))
        try:
            EvaluationKeys.load(path, parameters)
        except KeywrightError as error:
            reason = str(error).replace(str(path), "the key set")
            raise InvalidObjectError(f"the keys cannot be used: {reason}") from error
        return {"digest": digest_of(path, require)}

    def do_load(self, order: Order) -> dict[str, object]:
        """Load a model before requests need it."""
        return {"working": self._runner(order)[1].working_bytes}

    def do_evaluate(self, order: Order) -> dict[str, object]:
        """Evaluate a model on the ciphertexts of a file, or on the sums of ciphertexts of several files."""
        # Take it before anything can fail: otherwise the next order would take this descriptor for its own.
        descriptor = self._descriptor() if order["shared"] else None
        try:
            return self._evaluate(order, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _evaluate(self, order: Order, descriptor: int | None) -> dict[str, object]:
        model, runner = self._runner(order)
        bodies = order.get("bodies") or [Path(path).read_bytes() for path in order["messages"]]
        inputs = runner.read(bodies)
        loading = None
        if descriptor is not None:
            keys = EvaluationKeys.open_shared(descriptor, model.parameters)
        else:
            hand_over = None if self._passing is None else self._hand_over
            loading = KeyLoading(order, model, hand_over, partial(self.require, order))
            keys = loading.keys
        start = time.perf_counter()
        try:
            objects = runner.evaluate(inputs, keys, Steps(self, order).step)
        except KeywrightError as error:
            if isinstance(error, ServeError):
                raise
            if isinstance(error, MismatchError):
                # Of ciphertexts and keys of the client: the model's files have been read.
                raise EvaluationError(f"the model could not be evaluated: {error}") from error
            raise _failed(error, order, EvaluationError) from error
        finally:
            if loading is not None:
                loading.wait()
        seconds = time.perf_counter() - start
        answer = framing.join(objects)
        if "bodies" in order:
            return {"seconds": seconds, "bytes": answer}
        # Another one may write it too, where the service that asked for it was killed and asked again.
        replace(Path(order["answer"]), answer)
        return {"seconds": seconds}

    def require(self, order: Order) -> None:
        """Check that an evaluation, or a check, was not cancelled."""
        if self.cancelled == order["job"]:
            raise EvaluationError(
                "the evaluation was cancelled, because its client is gone", code="cancelled"
            )

    def _descriptor(self) -> int:
        """Receive the descriptor of the order's keys."""
        assert self._passing is not None
        _, descriptors, _, _ = socket.recv_fds(self._passing, 1, 1)
        return descriptors[0]

    def _hand_over(self, descriptor: int, seconds: float) -> None:
        """Hand the memory of keys to the service."""
        assert self._passing is not None
        socket.send_fds(self._passing, [b"k"], [descriptor])
        self.respond(loaded=seconds)

    def _runner(self, order: Order) -> tuple[Served, ServedRunner]:
        """Return a model or an index, and the same in memory."""
        name = order["model"]
        if name not in self._runners:
            model = load_served(Path(order["folder"]))
            if model.hash != name:
                raise FolderError(
                    f"{order['folder']} holds another model than when the server was started; restart the "
                    "server",
                    code="model_folder",
                )
            self._runners[name] = model, model.runner(order["budget"], self._resident)
        return self._runners[name]


def _failed(error: Exception, order: Order, kind: type[ServeError] = ServeError) -> ServeError:
    """Return what a client reads of an error, whose text may name folders of this machine: it is for the
    operator, who reads the log, and alone orders to load."""
    text = f"the model could not be evaluated: {error}"
    failed = kind(text if order["do"] == "load" else "it could not be computed; see the server's log")
    failed.unforeseen = text
    return failed


class Steps:
    """Steps of an evaluation, which end if it is cancelled and are reported now and then.

    Args:
        engine: reports them.
        order: the evaluation.
    """

    def __init__(self, engine: Engine, order: Order) -> None:
        self._engine, self._order = engine, order
        self._done, self._told = 0, time.perf_counter()

    def step(self) -> None:
        """Count a step."""
        self._done += 1
        now = time.perf_counter()
        if now - self._told >= TELL_EVERY_S:
            self._told = now
            self._engine.respond(step=self._done)
        self._engine.require(self._order)


class KeyLoading:
    """A client's keys. Evaluation uses the first keys while a thread reads the others. The memory of a
    complete set is handed over; results of a damaged set are discarded. Nothing is read for an evaluation
    that was cancelled.

    Args:
        order: path and digest.
        model: the model of the keys.
        hand_over: takes the descriptor and the seconds that loading took; None without sealed shared memory.
        require: called before each key and each megabyte; raises if the evaluation was cancelled.

    Attributes:
        keys: the keys; access waits for a key that has not been read.
    """

    def __init__(
        self,
        order: Order,
        model: Served,
        hand_over: HandOver | None,
        require: Callable[[], object] = lambda: None,
    ) -> None:
        self._path, self._digest, self._hand_over = Path(order["path"]), order["digest"], hand_over
        self._require = require
        self._start = time.perf_counter()
        self._incoming = IncomingFile.from_json(order["incoming"]) if "incoming" in order else None
        try:
            self.keys = self._open(model)
        except (KeywrightError, FileNotFoundError) as error:
            raise UnknownKeysError("the stored keys cannot be read; upload them again") from error
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._share, name="keywright-keys")
        self._thread.start()

    def _open(self, model: Served) -> EvaluationKeys:
        """Return the keys. Each is read, and checked, when its bytes are there."""
        steps, incoming = model.keys.steps, self._incoming
        if self._hand_over is None:
            if incoming is not None:
                incoming.wait(0, incoming.ends[-1])
            return EvaluationKeys.stream(self._path, model.parameters, model.keys.resident_bytes, steps)
        if incoming is not None:
            # The head of the set and of its first key.
            incoming.wait(0, model.keys.first_key)
        # The keys keep what they call: a method of this object, which has the keys, would keep both for ever.
        arrive = partial(_wait_for_bytes, self._require, incoming)
        return EvaluationKeys.load_shared(self._path, model.parameters, steps, arrive)

    def wait(self) -> None:
        """Wait until the keys are handed over.

        Raises:
            EvaluationError: the evaluation was cancelled.
            UnknownKeysError: they are damaged, or cannot be read.
        """
        self._thread.join()
        self._require()
        if self._error is not None:
            raise UnknownKeysError("the stored keys are damaged or cannot be read; upload them again")

    def _share(self) -> None:
        descriptor = None
        try:
            if self._hand_over is not None:
                descriptor = self.keys.share()
            seconds = time.perf_counter() - self._start
            if self._incoming is not None:
                self._incoming.wait(0, self._incoming.ends[-1])
            if digest_of(self._path, self._require) != self._digest:
                raise UnknownKeysError("the stored keys are damaged; upload them again")
            if self._hand_over is not None and descriptor is not None:
                self._hand_over(descriptor, seconds)
        except (KeywrightError, OSError) as error:
            self._error = error
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _wait_for_bytes(
    require: Callable[[], object], incoming: IncomingFile | None, begin: int, end: int
) -> None:
    """Wait for bytes of the keys' file."""
    require()
    if incoming is not None:
        incoming.wait(begin, end)


def lower_priority() -> None:
    """Let the process that reads requests, and the one that checks key sets, go first."""
    with contextlib.suppress(OSError, AttributeError):  # refused, or Windows
        os.nice(PRIORITY)
    # Linux may share its processors among sessions first, and this process has one of its own.
    for _ in range(GROUP_TRIES):
        try:
            Path("/proc/self/autogroup").write_text(str(PRIORITY), encoding="ascii")
        except BlockingIOError:
            time.sleep(GROUP_WAIT_S)
        except OSError:
            return
        else:
            return


def main(passing: int | None, gives_way: bool) -> None:
    """Run orders until the input ends.

    Args:
        passing: the socket's descriptor, through which descriptors of keys pass; None without sealed shared
            memory.
        gives_way: see `lower_priority`.
    """
    if gives_way:
        lower_priority()
    # Output of a library must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sharing = None if passing is None else socket.socket(fileno=passing)
    engine, orders = Engine(answers, sharing), queue.Queue[Order]()
    threading.Thread(target=_read, args=(sys.stdin.buffer, engine, orders), daemon=True).start()
    threading.Thread(target=engine.show_life, daemon=True).start()
    while True:
        engine.execute(orders.get())


def _read(lines: BinaryIO, engine: Engine, orders: queue.Queue[Order]) -> None:
    """Take orders until there are no more, and end the process."""
    for line in lines:
        order = read_json(line, OWN)
        if "sizes" in order:
            order["bodies"] = [lines.read(size) for size in order["sizes"]]
        if order["do"] == "cancel":
            engine.cancelled = order["job"]
        else:
            orders.put(order)
    # Nobody waits for the running computation.
    os._exit(0)
