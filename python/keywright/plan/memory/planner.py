"""Plans keys and diagonals together for a process: the least time within a memory budget.

Every candidate set of keys leaves some bytes for diagonals. The ratio of time saved per extra byte decides
which transforms are stored encoded, as coefficients, or not at all. Upgrades are made from the best ratio
down. This is the optimum of the linear relaxation and at most one upgrade away from that of whole transforms.
Keys can be streamed from a file. The plan with the least total time is chosen. Within the default budget, as
many of its diagonals are left unencoded as add little to its time.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

from keywright._core import BootstrapperPlan, recycled_bytes, threads
from keywright._units import format_bytes
from keywright.errors import OutOfMemoryError
from keywright.errors.choices import require_integer
from keywright.plan.cost.model import CostModel
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.keys.hull import hull, savings
from keywright.plan.keys.time_prediction import predict_plan
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.workload.arithmetic import performed_bootstraps
from keywright.program.program import Program

from .ciphertexts import live_bytes
from .diagonals import (
    BOOTSTRAP,
    Place,
    Storage,
    StorageOption,
    TransformStorage,
    bootstrap_diagonals,
    network_diagonals,
)
from .key_stream import least_key_memory, stream_seconds
from .machine import default_budget
from .process import DiagonalStorage, Memory, ProcessPlan
from .scratch import Scratch

"""Seconds per sample of a way to store a transform."""

STREAMED = (0.0, 0.25, 0.5, 0.75)
"""Shares of the keys in memory, between the least with which streaming works and all."""

SLOWER = 1.02
"""Maximum time of a plan within the default budget, relative to the fastest one."""

HALVINGS = 8
"""Steps of the search for the smallest plan that is fast enough."""

ALLOWANCE = 16 << 20
"""Allowance for libraries loaded later, and for allocators."""

TABLE_LIMBS = 4
"""Size of a prime's transform tables, both directions, in polynomials modulo one prime."""

IDLE_PART = 8
"""Operations other than the largest leave gaps between buffers of about this part of their scratch."""


@dataclass(frozen=True)
class Process:
    """The process before keys and diagonals are made.

    Attributes:
        resident_bytes: of the process, including the program's values.
        samples: number of samples to evaluate; None for any number.
        makes_keys: whether the process makes its keys, or reads them.
        streams: whether keys may be streamed from a file.
        key_memory: maximum bytes of keys in memory; by default as the budget allows.
        key_sets: number of owners whose keys are in memory at a time.

    Raises:
        ParameterError: the memory of keys is not an integer.
    """

    resident_bytes: int
    samples: int | None = None
    makes_keys: bool = True
    streams: bool = True
    key_memory: int | None = None
    key_sets: int = 1

    def __post_init__(self) -> None:
        if self.key_memory is not None:
            require_integer("memory of keys in bytes", self.key_memory)


class _Candidate:
    """Keys of a plan, and what depends on them alone."""

    def __init__(
        self, execution: PlanExecution, network: Program, process: Process, model: CostModel
    ) -> None:
        self.execution, self.network, self.process, self.model = execution, network, process, model
        plan = execution.plan
        self.chain = plan.workload.chain
        self.seconds = predict_plan(plan, model).seconds
        masters = 0 if plan.masters is None else plan.masters.stored_bytes
        self.key_bytes = process.key_sets * (plan.stored_bytes + masters)
        result = sum(
            model.key_seconds(key.shape) for ring in plan.rings for key in ring.keys
        ) + plan.workload.ephemeral_key_seconds(model)
        self.making_seconds = result if process.makes_keys else 0.0
        self.plans = execution.bootstrapper_plans

    @cached_property
    def kept(self) -> list[TransformStorage]:
        """Return everything that has diagonals."""
        places = performed_bootstraps(self.network, self.plans)
        uses = [self.network.instructions[place].argument for place in places]
        bootstraps = [
            bootstrap_diagonals(plan, index, uses.count(index), self.chain, self.model)
            for index, plan in enumerate(self.plans)
            if index in uses
        ]
        return [*network_diagonals(self.network, self.execution, self.model), *bootstraps]

    @cached_property
    def _live(self) -> list[int]:
        """Return the bytes of live ciphertexts of each instruction."""
        return live_bytes(self.network, self.chain)

    @cached_property
    def _scratch(self) -> Callable[[int, Storage], int]:
        """Return a function for the scratch of an instruction, by its index and the storage of its
        diagonals."""
        network = self.network
        bootstraps, count = tuple(self.plans), threads()
        rings = {0, *network.rings.values()}
        scratch = {ring: Scratch(self.execution.in_ring(ring), bootstraps, count) for ring in rings}

        @cache
        def of(index: int, storage: Storage) -> int:
            step = network.instructions[index]
            return scratch[network.rings[step.result]].instruction(network, step, storage)

        return of

    def running(self, chosen: Mapping[Place, StorageOption]) -> tuple[int, int]:
        """Return ciphertexts and scratch where their sum is largest."""
        results = []
        for index, (step, live) in enumerate(zip(self.network.instructions, self._live, strict=True)):
            way = None
            if step.opcode == "linear_transform":
                way = chosen[step.argument, step.level + 1, self.network.rings[step.result]]
            elif step.opcode == "bootstrap":
                way = chosen[step.argument, BOOTSTRAP, 0]
            if way is None:
                results.append((live, self._scratch(index, "encoded")))
            else:
                results.append((live, way.used_bytes + self._scratch(index, way.storage)))
        live, scratch = max(results, key=sum, default=(0, 0))
        return live, scratch + self._making(chosen)

    def _making(self, chosen: Mapping[Place, StorageOption]) -> int:
        """Return the bytes from which bootstraps make diagonals at use. Idle buffers make no room for them:
        they add to the largest scratch."""
        results = [
            self.plans[index].making_bytes
            for (index, level, _), way in chosen.items()
            if level == BOOTSTRAP and way.storage == "streamed"
        ]
        return max(results, default=0)

    @cached_property
    def tables(self) -> int:
        """Return the bytes of the roots of unity of every prime of every ring, which are computed on first
        use."""
        chains = [ring.workload.chain for ring in self.execution.plan.rings]
        return sum(TABLE_LIMBS * (8 << chain.log_n) * (len(chain.q) + len(chain.p)) for chain in chains)

    def key_ways(self) -> list[tuple[int | None, int, float]]:
        """Return the options for bytes of keys in memory, None for all, with the seconds that streaming
        takes; empty if the maximum does not hold the largest key."""
        most, every = self.process.key_memory, self.key_bytes
        if most is None or every <= most:
            most = every
        if self.execution.plan.masters is not None:  # the engine evicts and derives them within the budget
            return [(None, every, 0.0)] if most == every else [self._streamed(most)]
        out: list[tuple[int | None, int, float]] = [(None, every, 0.0)] if most == every else []
        least = least_key_memory(self.execution.key_steps)
        if self.process.streams and least <= most:
            out += [self._streamed(least + int(share * (most - least))) for share in STREAMED]
            out += [] if most == every else [self._streamed(most)]
        return out

    def _streamed(self, memory: int) -> tuple[int, int, float]:
        steps = self.execution.key_steps
        return memory, memory, stream_seconds(steps, memory, self.model, self.chain.log_n)

    def smallest(self, fastest: ProcessPlan, keys: tuple[int | None, int, float]) -> ProcessPlan:
        """Return the plan with the fewest bytes that takes at most `SLOWER` times as long as the fastest one
        with the same keys."""
        result, low, high = fastest, 0, fastest.memory.total
        for _ in range(HALVINGS):
            middle = (low + high) // 2
            plan = self.plan(middle, keys)
            if self.whole_seconds(plan) > SLOWER * self.whole_seconds(fastest):
                low = middle
                continue
            high = middle
            if plan.memory.total < result.memory.total:
                result = plan
        return replace(result, budget=fastest.budget)

    def whole_seconds(self, plan: ProcessPlan) -> float:
        """Return the seconds of a plan per sample, with a share of the preparation."""
        samples = self.process.samples
        return plan.seconds + (0.0 if samples is None else plan.making_seconds / samples)

    def choose(self, left: float) -> dict[Place, StorageOption]:
        """Choose a way to store each transform within ``left`` bytes; the fewest bytes if these do not
        suffice."""
        chosen = {kept.place: kept.ways[0] for kept in self.kept}
        upgrades = []
        for kept in self.kept:
            costs = [(way.stored_bytes, self._value(kept, way)) for way in kept.ways]
            for position, (first, second) in enumerate(pairwise(hull(costs))):
                order = -savings(costs[first], costs[second]), position
                upgrades.append((order, kept.place, kept.ways[first], kept.ways[second]))
        for _, place, before, after in sorted(upgrades, key=lambda upgrade: upgrade[0]):
            extra = after.stored_bytes - before.stored_bytes
            if chosen[place] is before and extra <= left:
                chosen[place] = after
                left -= extra
        return chosen

    def _value(self, kept: TransformStorage, way: StorageOption) -> float:
        """Return the seconds per sample, including its share of the preparation."""
        share = 0.0 if self.process.samples is None else way.making_seconds / self.process.samples
        return kept.uses * way.seconds + share

    def plan(self, budget: int, keys: tuple[int | None, int, float]) -> ProcessPlan:
        """Return the plan with keys in memory in some way, whether or not it fits the budget."""
        key_memory, key_bytes, key_seconds = keys
        resident = self.process.resident_bytes + ALLOWANCE
        fixed = resident + self.tables + key_bytes
        chosen = {kept.place: kept.ways[0] for kept in self.kept}
        for _ in range(2):  # Stored diagonals are not made during a use, so there is more room.
            left = budget - fixed - sum(self.running(chosen))
            chosen = self.choose(left - self._idle(max(0, budget - resident)))
        ciphertexts, scratch = self.running(chosen)
        stored = {place: way.stored_bytes for place, way in chosen.items()}
        bootstraps = sum(size for (_, level, _), size in stored.items() if level == BOOTSTRAP)
        buffers = key_bytes + sum(stored.values()) + ciphertexts + scratch
        memory = Memory(
            resident,
            self.tables,
            key_bytes,
            sum(stored.values()) - bootstraps,
            bootstraps,
            ciphertexts,
            scratch,
            self._idle(self.tables + buffers),
        )
        seconds = (
            self.seconds + key_seconds + sum(kept.uses * chosen[kept.place].seconds for kept in self.kept)
        )
        making = self.making_seconds + sum(way.making_seconds for way in chosen.values())
        return ProcessPlan(
            self.execution,
            DiagonalStorage(
                {place: way.storage for place, way in chosen.items() if place[1] != BOOTSTRAP},
                tuple(
                    chosen[index, BOOTSTRAP, 0].storage if (index, BOOTSTRAP, 0) in chosen else "streamed"
                    for index in range(len(self.plans))
                ),
            ),
            key_memory,
            memory,
            budget,
            seconds,
            making,
            self.process.key_sets,
        )

    def _idle(self, buffers: int) -> int:
        """Return the idle memory beyond so many bytes of buffers: gaps between those in use, at most what the
        engine keeps. The stages of a bootstrap differ so much that they leave that."""
        if self.plans:
            return recycled_bytes(buffers)
        left = {
            (step.opcode, step.level): self._scratch(index, "encoded")
            for index, step in enumerate(self.network.instructions)
        }
        gaps = (sum(left.values()) - max(left.values(), default=0)) // IDLE_PART
        return min(recycled_bytes(buffers), gaps)


def bootstrap_bytes(plan: BootstrapperPlan, resident_bytes: int) -> int:
    """Return the minimum of a process that runs a bootstrap alone, with keys and diagonals streamed.

    Args:
        plan: the bootstrap.
        resident_bytes: of the process before.
    """
    chain = chain_of(plan.parameters)
    tables = TABLE_LIMBS * (8 << chain.log_n) * (len(chain.q) + len(chain.p))
    key = max(spec.bytes for spec in plan.required_keys)
    scratch = max(plan.scratch_bytes("streamed").values()) + plan.making_bytes
    buffers = tables + key + scratch
    return resident_bytes + ALLOWANCE + buffers + recycled_bytes(buffers)


def plan_process(
    executions: Sequence[PlanExecution],
    network: Program,
    process: Process,
    budget: int | None,
    model: CostModel,
) -> ProcessPlan:
    """Return the fastest plan whose peak fits a budget, or one with fewer bytes that is nearly as fast.

    Args:
        executions: candidate key plans for the same network.
        network: the network.
        process: the process before.
        budget: maximum bytes of the process, all of which may be used; None for 80 % of the free
            memory, of which as many are left as take at most `SLOWER` times as long.
        model: predicts times.

    Raises:
        OutOfMemoryError: none fits the budget; the message states the minimum.
        ParameterError: the budget is not an integer.
    """
    most = (
        default_budget() if budget is None else min(require_integer("memory in bytes", budget), sys.maxsize)
    )
    results = [
        (candidate.plan(most, keys), candidate, keys)
        for candidate in (_Candidate(execution, network, process, model) for execution in executions)
        for keys in candidate.key_ways()
    ]
    if not results:
        least = min(least_key_memory(execution.key_steps) for execution in executions)
        asked = format_bytes(process.key_memory or 0)
        text = (
            f"{asked} for keys is too little; allow at least {format_bytes(least)}, the size of the "
            "largest one"
        )
        raise OutOfMemoryError(
            text, needed=least, budget=process.key_memory or 0, parts={"keys": least}, code="keys"
        )
    fitting = [each for each in results if each[0].memory.total <= most]
    if not fitting:
        raise _refusal([plan for plan, _, _ in results], most)
    plan, candidate, keys = min(
        fitting, key=lambda each: (each[1].whole_seconds(each[0]), each[0].memory.total)
    )
    return plan if budget is not None else candidate.smallest(plan, keys)


def _refusal(results: Sequence[ProcessPlan], budget: int) -> OutOfMemoryError:
    """Return the error for a budget that no plan fits: the minimum, and how to reach it."""
    least = min(results, key=lambda plan: plan.memory.total)
    needed, memory = least.memory.total, least.memory
    text = (
        f"a process of at most {format_bytes(budget)} cannot run this network. The minimum is "
        f"{memory.describe()}; with {least.explain()}"
    )
    if least.key_memory is not None:
        whole = min((plan.memory.total for plan in results if plan.key_memory is None), default=None)
        text += "" if whole is None else f". With all keys in memory it is {format_bytes(whole)}"
    text += "; allow more memory, or name a preset of a smaller ring or fewer levels"
    return OutOfMemoryError(text, needed=needed, budget=budget, parts=memory.parts())
