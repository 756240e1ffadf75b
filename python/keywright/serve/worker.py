"""A process that evaluates: it runs `main`, with orders on its standard input.

An order and each of its answers is a line of JSON. Ciphertexts and keys are files. With any order the keys of
clients are let go that are ``unwanted``. The process ends when its
input does, so that none outlives the service, and it may be killed at any time: what it makes is a file that
gets its name when it is whole.

| order | answers |
|---|---|
| ``check`` path, parameters | ``end``: digest of a key set that is whole and can be used |
| ``load`` model | ``end``: bytes of keys that it keeps at most |
| ``evaluate`` model, keys, messages, answer | ``step`` often; ``end``: seconds, where keys were, which went |
| ``forget`` | ``end`` |
| ``cancel`` | none: the evaluation that runs ends with ``refused`` |
"""

import base64
import hashlib
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from traceback import format_exception
from typing import Any, BinaryIO

from keywright._core import EvaluationKeys, Parameters
from keywright.errors import KeywrightError
from keywright.plan.memory.machine import resident_bytes

from . import framing
from .errors import (
    CancelledError,
    DiskError,
    InvalidObjectError,
    ModelFolderError,
    ServeError,
    UnknownKeysError,
)
from .key_cache import KeyCache
from .model import Model, ModelRunner

Order = Mapping[str, Any]


class Engine:
    """What a worker has in memory, and what it does."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._runners: dict[str, ModelRunner] = {}
        self._cache: KeyCache[EvaluationKeys] = KeyCache(0)
        self.cancelled: str | None = None
        self._resident = resident_bytes()
        self._evicted: list[str] = []

    def say(self, **answer: object) -> None:
        """Write an answer."""
        self._answers.write(json.dumps(answer).encode() + b"\n")
        self._answers.flush()

    def obey(self, order: Order) -> None:
        """Follow an order, whatever comes of it."""
        for name in order["unwanted"]:
            self._cache.forget(name)
        begun = time.process_time()

        def refuse(error: ServeError, **more: str) -> None:
            self.say(refused=error.reason()["error"], processor=time.process_time() - begun, **more)

        try:
            end = getattr(self, f"do_{order['do']}")(order)
        except ServeError as error:
            refuse(error)
        except OSError as error:
            refuse(DiskError(f"the disk failed in an evaluation: {error}"))
        except (KeywrightError, MemoryError) as error:
            refuse(ServeError(f"the evaluation failed: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the process goes on
            reason = ServeError("the evaluation failed for a reason that nobody foresaw; the server has it")
            refuse(reason, unforeseen="".join(format_exception(error)).rstrip())
        else:
            self.say(end={**end, "processor": time.process_time() - begun})

    def do_check(self, order: Order) -> dict[str, object]:
        """Read a whole key set, which checks every residue, checksum and security bound."""
        path = Path(order["path"])
        parameters = Parameters.from_bytes(base64.b64decode(order["parameters"]))
        try:
            EvaluationKeys.load(path, parameters)
        except KeywrightError as error:
            reason = str(error).replace(str(path), "the key set")
            raise InvalidObjectError(f"the keys cannot be used: {reason}") from error
        return {"digest": digest_of(path)}

    def do_load(self, order: Order) -> dict[str, object]:
        """Have a model in memory before anybody asks for it."""
        self._runner(order)
        return {"budget": self._cache.budget}

    def do_evaluate(self, order: Order) -> dict[str, object]:
        """Evaluate a model on the ciphertexts of a file, or on the sums of those of several."""
        runner = self._runner(order)
        model = runner.model
        inputs = model.read_inputs([Path(path).read_bytes() for path in order["messages"]])
        hit, self._evicted = order["keys"] in self._cache, []
        begun = time.perf_counter()
        keys = self._keys(order, model.parameters)
        done, start = 0, time.perf_counter()

        def step() -> None:
            nonlocal done
            done += 1
            self.say(step=done)
            if self.cancelled == order["job"]:
                raise CancelledError("nobody waits for this evaluation any more")

        answer = framing.join([model.write_output(result) for result in runner.run(keys, inputs, step)])
        seconds = time.perf_counter() - start
        # Another one may write it too, where the service that asked for it was killed and asked again.
        write_whole(Path(order["answer"]), answer, f".{socket.gethostname()}-{os.getpid()}")
        return {"seconds": seconds, "hit": hit, "evicted": self._evicted, "loading": start - begun}

    def do_forget(self, order: Order) -> dict[str, object]:
        """Nothing but what every order does: let go of unwanted keys."""
        return {"resident": self._cache.size}

    def _runner(self, order: Order) -> ModelRunner:
        name = order["model"]
        if name not in self._runners:
            model = Model.load(Path(order["folder"]))
            if model.manifest.hash != name:
                raise ModelFolderError(
                    f"{order['folder']} holds another model than when the server was started; start it again"
                )
            budget = order["budget"]
            planned = None if budget is None else model.plan_process(budget, self._resident)
            self._runners[name] = ModelRunner(model, planned)
            sets = 2 if planned is None else planned.key_sets
            self._cache.budget += sets * model.manifest.key_bytes
        return self._runners[name]

    def _keys(self, order: Order, parameters: Parameters) -> EvaluationKeys:
        """A client's keys, from memory or from their file, whose digest is compared."""
        name, path = order["keys"], Path(order["path"])
        keys = self._cache.get(name)
        if keys is None:
            start = time.perf_counter()
            try:
                size = path.stat().st_size
                self._evicted = self._cache.make_room(size)
                if digest_of(path) != order["digest"]:
                    raise UnknownKeysError("the stored keys are damaged; upload them again")
                keys = EvaluationKeys.load(path, parameters)
            except (KeywrightError, FileNotFoundError) as error:
                raise UnknownKeysError("the stored keys cannot be read; upload them again") from error
            self._cache.put(name, keys, size, time.perf_counter() - start)
        return keys


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_whole(path: Path, data: bytes, mark: str = "") -> None:
    """Write a file that is either there and whole, or not there.

    Args:
        path: the file.
        data: what is in it.
        mark: in the name that it has before it is whole: who writes, where several processes may.
    """
    temporary = path.with_suffix(f"{path.suffix}{mark}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        # On a disk that is full, half a file takes the place of something.
        temporary.unlink(missing_ok=True)
        raise


def main() -> None:
    """Obey until the input ends."""
    # What a library prints is no answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    engine, orders = Engine(answers), queue.Queue[Order]()

    def read() -> None:
        for line in sys.stdin.buffer:
            order = json.loads(line)
            if order["do"] == "cancel":
                engine.cancelled = order["job"]
            else:
                orders.put(order)
        # Nobody waits for what is being computed.
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        engine.obey(orders.get())
