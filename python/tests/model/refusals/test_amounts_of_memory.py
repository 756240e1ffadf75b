"""Amounts of memory are numbers of bytes: a text such as "8GB" is refused by its parameter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import compiler, plan, serve
from keywright.client import RemoteModel
from keywright.errors import ParameterError
from keywright.model import Demands, Executable, Model, ModelServer
from keywright.plan.cost.calibration import stored_model
from tests.interfaces.test_choices import ROOMS, annotated
from tests.model.test_edges import linear

AMOUNTS = {"budget", "key_bytes", "key_memory", "max_bytes", "max_plaintext_bytes", "memory"}
OTHERS = {"Preparation", "Sizes", "PlanExecution", "Served", "ServedIndex"}
"""Results, what the engine refuses, and what a service calls with its limits."""

SAMPLES, TARGET = np.zeros((1, 3)), compiler.Target(slots=64, levels=2)
GRAPH = linear(np.eye(3))

CALLS: dict[tuple[str, str], Callable[[Model, Path, Any], object]] = {
    ("Model.with_server_within", "budget"): lambda model, _, size: model.with_server_within(size),
    ("Model.plan_batches", "budget"): lambda model, _, size: model.plan_batches(1, size),
    ("Model.plan_batches", "key_memory"): lambda model, _, size: model.plan_batches(1, key_memory=size),
    ("Model.predict", "memory"): lambda model, _, size: model.predict(SAMPLES, memory=size),
    ("Model.predict", "key_memory"): lambda model, _, size: model.predict(SAMPLES, key_memory=size),
    ("Model.client", "key_bytes"): lambda model, _, size: model.client(key_bytes=size),
    ("Model.server", "memory"): lambda model, _, size: model.server(memory=size),
    ("Model.server", "key_memory"): lambda model, _, size: model.server(key_memory=size),
    ("ModelServer.__init__", "memory"): lambda model, _, size: ModelServer(
        model, model.execution, memory=size
    ),
    ("ModelServer.__init__", "key_memory"): lambda model, _, size: ModelServer(
        model, model.execution, key_memory=size
    ),
    ("Executable.plan_process", "budget"): lambda model, _, size: Executable.plan_process(model, 1, size),
    ("Executable.plan_process", "key_memory"): lambda model, _, size: Executable.plan_process(
        model, 1, key_memory=size
    ),
    ("Executable.plan_service", "budget"): lambda model, _, size: Executable.plan_service(model, size, 0),
    ("Executable.plan_memory", "budget"): lambda model, _, size: Executable.plan_memory(
        model, plan.Process(0), size
    ),
    ("load_client", "key_bytes"): lambda _, folder, size: kw.load_client(folder, key_bytes=size),
    ("load_server", "memory"): lambda _, folder, size: kw.load_server(folder, memory=size),
    ("load_server", "key_memory"): lambda _, folder, size: kw.load_server(folder, key_memory=size),
    ("RemoteModel.__init__", "key_bytes"): lambda *given: RemoteModel(
        "http://127.0.0.1:1", key_bytes=given[2]
    ),
    ("approximate", "max_plaintext_bytes"): lambda *given: compiler.approximate(GRAPH, None, given[2]),
    ("compile_program", "max_plaintext_bytes"): lambda *given: compiler.compile_program(
        GRAPH, TARGET, max_plaintext_bytes=given[2]
    ),
    ("load", "max_bytes"): lambda _, folder, size: compiler.load(folder / "program.kwp", size),
    ("Demands.__init__", "key_bytes"): lambda *given: Demands(key_bytes=given[2]),
    ("Process.__init__", "key_memory"): lambda *given: plan.Process(0, key_memory=given[2]),
    ("plan_process", "budget"): lambda model, _, size: plan.plan_process(
        [model.execution], model.program, plan.Process(0), size, stored_model()
    ),
    ("ServiceLimits.__init__", "budget"): lambda *given: serve.ServiceLimits(budget=given[2]),
    ("Workers.__init__", "key_memory"): lambda *given: serve.Workers(key_memory=given[2]),
}
"""Calls with an amount for each of these parameters."""


def amounts() -> set[tuple[str, str]]:
    """Return every public parameter that is an amount of memory, by function and parameter."""
    out: set[tuple[str, str]] = set()
    for place, hints in annotated(ROOMS, OTHERS):
        out |= {(place, each) for each in AMOUNTS & hints.keys() if hints[each] in (int, int | None)}
    return out


def test_every_amount_is_called() -> None:
    pytest.importorskip("flwr", reason="keywright.federated needs Flower")
    assert amounts() == CALLS.keys()


@pytest.fixture(scope="module")
def model() -> Model:
    return kw.compile(GRAPH, np.eye(3))


@pytest.fixture(scope="module")
def folder(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("amounts") / "model"
    model.save(place)
    return place


@pytest.mark.parametrize("place", CALLS, ids=".".join)
def test_a_text_is_refused(place: tuple[str, str], model: Model, folder: Path) -> None:
    with pytest.raises(ParameterError, match="is '8GB'; use an integer"):
        CALLS[place](model, folder, "8GB")
