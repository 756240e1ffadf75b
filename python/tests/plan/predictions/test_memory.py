"""Memory of a process: free, live and stored bytes, each compared with a count by hand."""

from __future__ import annotations

import gc
import itertools
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keywright as kw
import numpy as np
import pytest
from keywright import plan as planning
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory import machine, planner
from keywright.plan.memory.ciphertexts import ciphertext_bytes, live_bytes
from keywright.plan.memory.diagonals import (
    StorageOption,
    TransformStorage,
    network_diagonals,
    storage_options,
)
from keywright.plan.memory.key_stream import least_key_memory, stream_seconds
from keywright.plan.memory.planner import Process, plan_process
from keywright.plan.search.network_planner import KeyFrontier
from keywright.runtime.encrypted.backend import EncryptedBackend
from keywright.runtime.executor import execute
from tests.plan.test_execution import digits, mnist

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = planning.CostModel()


@dataclass(frozen=True)
class Machine:
    """Files of a kernel."""

    folder: Path

    def say(self, meminfo: str, groups: str = "0::/a/b\n") -> None:
        (self.folder / "meminfo").write_text(meminfo)
        (self.folder / "cgroup").write_text(groups)

    def limit(self, group: str, limit: str, used: str) -> None:
        place = self.folder / "groups" / group
        place.mkdir(parents=True, exist_ok=True)
        (place / "memory.max").write_text(f"{limit}\n")
        (place / "memory.current").write_text(f"{used}\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "groups")
    return Machine(tmp_path)


def test_what_is_free_is_what_the_system_and_every_group_leave(kernel: Machine) -> None:
    kernel.say("MemTotal:  4000 kB\nMemAvailable:   3000 kB\n")
    assert machine.available_bytes() == 3000 * 1024
    kernel.limit("a/b", "max", "10")
    kernel.limit("a", str(2 << 20), str(1 << 20))
    assert machine.available_bytes() == 1 << 20
    kernel.limit("a/b", str(1 << 20), str(1 << 19))
    assert machine.available_bytes() == 1 << 19
    # Groups of other processes do not count, and a group over its limit leaves nothing.
    kernel.limit("c", "1", "0")
    assert machine.available_bytes() == 1 << 19
    kernel.limit("a", "5", "6")
    assert machine.available_bytes() == 0


def test_where_nobody_says_what_is_free_half_of_the_memory_is(kernel: Machine) -> None:
    assert machine.available_bytes() > 1 << 20
    kernel.say("MemTotal:  4000 kB\n")
    assert machine.available_bytes() > 1 << 20


def test_this_process_has_memory() -> None:
    before = machine.resident_bytes()
    held = np.ones(8 << 20)
    assert machine.resident_bytes() - before > held.nbytes // 2
    assert machine.peak_bytes() >= machine.resident_bytes()


class Counted:
    """A ciphertext that is counted while it is referenced."""

    alive: dict[int, int] = {}  # noqa: RUF012 (one count)

    def __init__(self, level: int, source: object = None) -> None:
        self.level, self.source = level, source
        Counted.alive[id(self)] = ciphertext_bytes(11, level)
        weakref.finalize(self, Counted.alive.pop, id(self))


class CountingBackend:
    """Makes empty ciphertexts, and records the maximum alive."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def _made(self, level: int, source: object = None) -> Counted:
        counted = Counted(level, source)
        self.seen.append(sum(Counted.alive.values()))
        return counted

    def level(self, ct: Counted) -> int:
        return ct.level

    def switch_ring(self, ct: Counted, ring: int) -> Counted:
        return self._made(ct.level)

    def drop_level(self, ct: Counted, level: int) -> Counted:
        return self._made(level, ct.source or ct)

    def linear_transform(self, cts: Sequence[Counted], transform: object) -> Counted:
        return self._made(cts[0].level - 1)

    def rotate(self, ct: Counted, step: int) -> Counted:
        return self._made(ct.level)

    def add(self, left: Counted, right: Counted) -> Counted:
        return self._made(left.level)

    def add_plain(self, ct: Counted, vector: object) -> Counted:
        return self._made(ct.level)

    def mul(self, left: Counted, right: Counted) -> Counted:
        return self._made(left.level - 1)

    def polynomial(self, ct: Counted, polynomial: Any) -> Counted:
        return self._made(ct.level - kw._core.polynomial_depth(polynomial.degree))


@pytest.mark.parametrize("side", [digits, mnist])
def test_ciphertexts_are_alive_as_long_as_the_executor_holds_them(side: Any) -> None:
    program, chain = side().program, side().execution("kds").plan.workload.chain
    chain = replace(chain, log_n=11)
    predicted = live_bytes(program, chain)
    gc.collect()
    Counted.alive.clear()
    backend: Any = CountingBackend()
    inputs: Any = [Counted(program.input.level) for _ in range(program.input.layout.ciphertexts)]
    execute(program, backend, inputs)
    alive = [
        live for step, live in zip(program.instructions, predicted, strict=True) if step.opcode != "input"
    ]
    assert alive == backend.seen


def test_ways_take_more_bytes_and_less_time() -> None:
    side = mnist()
    chain = side.execution("kds").plan.workload.chain
    primes = [*range(4), chain.max_level + 1]
    streamed, coefficients, encoded = storage_options([1024, 2048], primes, chain, MODEL)
    assert (streamed.stored_bytes, coefficients.stored_bytes) == (0, 8 * 3072)
    transforms = [
        kw.LinearTransform.from_rows(
            side.parameters,
            [0, 1],
            np.ones((2, 1024)) * [[1.0] + [2.0] * 1023],
            1024,
            3,
            1,
            [primes[-1]],
            storage=storage,
        ).bytes
        for storage in ("coefficients", "encoded")
    ]
    expected = storage_options([1024, 1024], primes, chain, MODEL)
    assert transforms == [expected[1].stored_bytes, expected[2].stored_bytes]
    assert encoded.stored_bytes == 5 * coefficients.stored_bytes
    assert streamed.seconds > coefficients.seconds > encoded.seconds == 0.0
    assert streamed.making_seconds < coefficients.making_seconds < encoded.making_seconds


def test_bytes_of_a_network_are_those_of_its_transforms() -> None:
    side = mnist()
    execution = side.execution("kds")
    kept = network_diagonals(side.program, execution, MODEL)
    backend = EncryptedBackend(kw.Evaluator(side.parameters), plan=execution)
    backend.prepare(side.program)
    # A diagonal may repeat sooner than its table says.
    assert 0.5 < backend.plaintext_bytes / sum(entry.ways[2].stored_bytes for entry in kept) <= 1.0


def test_upgrades_are_within_one_of_the_best() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        kept = []
        for index in range(5):
            small, large = sorted(rng.integers(1, 100, 2))
            slow, middle = sorted(rng.uniform(0, 10, 2))[::-1]
            three = (
                StorageOption("streamed", 0, 0, slow, 0),
                StorageOption("coefficients", int(small), 0, middle, 0),
            )
            kept.append(
                TransformStorage(
                    (index, 1, 0), 1, (*three, StorageOption("encoded", int(small + large), 0, 0.0, 0))
                )
            )
        candidate = object.__new__(planner._Candidate)
        candidate.__dict__ |= {"kept": kept, "process": Process(0)}
        budget = int(rng.integers(0, 400))
        chosen = candidate.choose(budget)
        assert sum(way.stored_bytes for way in chosen.values()) <= budget
        seconds = sum(way.seconds for way in chosen.values())
        every = itertools.product(*(entry.ways for entry in kept))
        best = min(
            sum(w.seconds for w in taken) for taken in every if sum(w.stored_bytes for w in taken) <= budget
        )
        largest = max(
            a.seconds - b.seconds for entry in kept for a, b in itertools.combinations(entry.ways, 2)
        )
        assert best <= seconds <= best + largest


@dataclass(frozen=True)
class Sized:
    """Stands for a key."""

    bytes: int
    name: int


def reads(uses: Sequence[int], room: int) -> int:
    """Return the fewest reads of keys of one size, when a program runs the second time, by trying
    everything."""
    states: dict[frozenset[int], int] = {frozenset(): 0}
    for index, use in enumerate([*uses, *uses]):
        following: dict[frozenset[int], int] = {}
        for held, count in states.items():
            more = count + (use not in held and index >= len(uses))
            for rest in itertools.chain.from_iterable(
                itertools.combinations(held - {use}, n) for n in range(min(room - 1, len(held - {use})) + 1)
            ):
                key = frozenset({use, *rest})
                following[key] = min(following.get(key, more), more)
        states = following
    return min(states.values())


def test_streamed_keys_are_read_as_seldom_as_can_be() -> None:
    rng = np.random.default_rng(6)
    size = 8 << 16
    specs: list[Any] = [Sized(size, name) for name in range(4)]
    load = MODEL.of_degree(16).load_limb
    for _ in range(30):
        uses = [int(use) for use in rng.integers(0, 4, 7)]
        steps = [[specs[use]] for use in uses]
        for room in (1, 2, 3):
            loads = round(stream_seconds(steps, room * size, MODEL, 16) / load)
            # Reads of the first run do not count, but may save reads of the second.
            assert reads(uses, room) <= loads <= reads(uses, room) + room
    assert least_key_memory([[specs[0]], []]) == size


def plans() -> tuple[list[PlanExecution], Any]:
    side = mnist()
    return KeyFrontier(side.program, side.parameters, model=MODEL).candidates, side


def test_a_budget_is_kept_and_more_of_it_is_no_slower() -> None:
    executions, side = plans()
    process = Process(100 << 20)
    with pytest.raises(kw.errors.OutOfMemoryError, check=lambda error: error.code == "budget") as caught:
        plan_process(executions, side.program, process, 101 << 20, MODEL)
    least = caught.value.needed
    assert sum(caught.value.parts.values()) == least
    assert "The minimum is" in str(caught.value)
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(kw.errors.OutOfMemoryError, check=lambda error: error.code == "budget"):
        plan_process(executions, side.program, process, least - (1 << 20), MODEL)
    before = float("inf")
    kinds = set()
    for budget in np.geomspace(least, 8 * least, 12):
        plan = plan_process(executions, side.program, process, int(budget) + 1, MODEL)
        assert plan.memory.total <= budget + 1
        assert plan.seconds <= before * (1 + 1e-9)
        before = plan.seconds
        kinds |= {*plan.diagonals.transforms.values(), plan.key_memory is None}
    assert kinds == {"encoded", "coefficients", "streamed", True, False}


def test_without_a_budget_a_plan_is_small_and_nearly_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "SLOWER", 1.5)  # the network has four transforms, and each is a whole step
    executions, side = plans()
    process = Process(100 << 20)
    fastest = plan_process(executions, side.program, process, machine.default_budget(), MODEL)
    small = plan_process(executions, side.program, process, None, MODEL)
    assert small.memory.total < fastest.memory.total
    assert fastest.seconds < small.seconds <= 1.5 * fastest.seconds
    assert small.execution is fastest.execution
    assert small.key_memory == fastest.key_memory
