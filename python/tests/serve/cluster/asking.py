"""Clients that ask without a pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from keywright.client import RemoteModel
from keywright.model import Model
from keywright.runtime import run_clear
from tests.serve.network import INPUTS


@dataclass(frozen=True)
class Clients:
    """Clients in threads, and the number of right answers that each has."""

    right: list[int]
    threads: list[Future[None]]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; raises the error of a client that has one."""
        while not condition():
            for thread in self.threads:
                if thread.done():
                    thread.result()
            time.sleep(0.05)

    def wait_for_answers(self) -> None:
        """Wait until each client has another answer."""
        before = list(self.right)
        self.wait_for(lambda: all(now > then for now, then in zip(self.right, before, strict=True)))


@contextmanager
def asking(url: str, model: Model, count: int) -> Iterator[Clients]:
    """Ask until the end; every answer must be right."""
    stop, right = threading.Event(), [0] * count

    def ask(client: int) -> None:
        with RemoteModel(url, insecure=True).session() as session:
            while not stop.is_set():
                sample = np.random.default_rng(1000 * client + right[client]).uniform(-1, 1, INPUTS)
                assert np.abs(session.infer(sample) - run_clear(model.program, sample)).max() < 1e-3
                right[client] += 1

    with ThreadPoolExecutor(count) as pool:
        threads = [pool.submit(ask, client) for client in range(count)]
        try:
            yield Clients(right, threads)
        finally:
            stop.set()
        for thread in threads:
            thread.result()
