"""A network of three levels for both kinds of clients, in rings without security; a server in a thread.

Each model is compiled and its keys are planned once in a process: nobody changes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, cast

import keywright as kw
import numpy as np
import onnx
from keywright import compiler
from keywright.compiler.approximating import Source
from keywright.errors.service import WorkerEndedError
from keywright.model import Entry, Model
from keywright.serve import Server, Service, Workers
from keywright.serve.http.pages import Page
from keywright.serve.jobs.job import Job
from keywright.serve.workers.workers import Worker
from onnx import TensorProto, helper, numpy_helper
from tests.bootstraps import DEGREE_62

Q_BITS = [50, 40, 40, 45, 45, 50, *[50] * 7, 59, 60, 50, 50, 50]
ENTRY = DEGREE_62 | {"values": "real"}
INPUTS, HIDDEN, OUTPUTS = 16, 8, 4

WORKERS = Workers()
"""Workers for all services: processes take a second to start."""


def network(seed: int = 3) -> onnx.ModelProto:
    """Sixteen numbers, a dense layer, squares, a dense layer, four numbers."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(-1, 1, (INPUTS, HIDDEN)).astype(np.float32) / INPUTS
    second = rng.uniform(-1, 1, (HIDDEN, OUTPUTS)).astype(np.float32) / HIDDEN
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Mul", ["h", "h"], ["s"]),
        helper.make_node("MatMul", ["s", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(first, "a"), numpy_helper.from_array(second, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


@cache
def make_thin(name: str = "small", batch: int = 1, seed: int = 3, log_n: int = 10) -> Model:
    return compile_thin(network(seed), None, name, batch, log_n, ("a", "b", "c", "d"))


def compile_thin(
    source: Source,
    fit: compiler.Fit | None,
    name: str = "small",
    batch: int = 1,
    log_n: int = 10,
    labels: tuple[str, ...] = (),
) -> Model:
    """Compile for thin clients of a ring without security, whose bootstrap leaves three levels."""
    parameters = kw.Parameters.from_bits(log_n, Q_BITS, [50, 50, 50], 45, insecure=True)
    plan = kw.BootstrapperPlan(parameters, **ENTRY)
    program = compiler.compile_program(
        source,
        compiler.Target(
            slots=plan.slots,
            levels=plan.output_level,
            output_level=plan.input_level,
            packing="coefficients",
            batch=batch,
        ),
        fit,
    )
    return Model(name, program, parameters, (), Entry(plan, ENTRY), labels)


@cache
def make_full(batch: int = 1) -> Model:
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45], [50, 50], 45, insecure=True)
    program = compiler.compile_program(
        network(), compiler.Target(slots=parameters.max_slots, levels=3, batch=batch)
    )
    return Model("full", program, parameters)


PAGE: Page = {"/": ("text/html", b"<p>page</p>")}


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """A server in a thread."""
    with server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def listening(service: Service, port: int = 0, page: Page | None = PAGE) -> AbstractContextManager[Server]:
    """A server of a service, in a thread."""
    return running(Server(service, port=port, page=page))


class GatedWorkers(Workers):
    """The shared workers; each evaluation first waits until `go` is set.

    Attributes:
        go: lets evaluations begin.
        begun: set when the first one is at the gate.
        groups: number of requests of each evaluation.
        fail: called with that number after the gate; its exception ends the evaluation.
    """

    def __init__(self) -> None:
        self.__dict__.update(vars(WORKERS))
        self.go, self.begun, self.groups = threading.Event(), threading.Event(), list[int]()
        self.fail: Callable[[int], object] = lambda requests: None

    @contextmanager
    def one(self) -> Iterator[Worker]:
        with super().one() as worker:
            yield cast("Worker", _GatedWorker(self, worker))


class _GatedWorker:
    """A worker behind the gate; killed there, it ends as a killed process does."""

    def __init__(self, gate: GatedWorkers, worker: Worker) -> None:
        self._gate, self._worker, self._killed = gate, worker, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def kill(self) -> None:
        self._killed.set()

    def order(self, on_step: Any = None, meanwhile: Any = None, **order: Any) -> dict[str, Any]:
        if order["do"] == "evaluate":
            requests = len(order.get("bodies") or order["messages"])
            self._gate.groups.append(requests)
            self._gate.begun.set()
            while not self._gate.go.wait(0.01):
                if self._killed.is_set():
                    raise WorkerEndedError("it was killed")
            self._gate.fail(requests)
        return self._worker.order(on_step, meanwhile, **order)


def submit(service: Service, identifier: str, message: bytes) -> Job:
    """Let a service evaluate a message, as a request does that does not wait."""
    with service.evaluations.admit(identifier, len(message)) as expected:
        return service.evaluations.take(expected, message)
