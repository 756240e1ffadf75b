"""The simulated machines of the study of the service, compared with results computed by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from keywright.serve.cluster.routing import Task
from studies.service.load import sequence_of
from studies.service.resident import BYTES, hits, ideal
from studies.service.simulator import (
    Death,
    Job,
    KeyAware,
    Policy,
    Random,
    Simulation,
    Times,
    TwoChoices,
    requests,
)

SIZE = 100
TIMES = Times({"m": [1.0]}, [2.0], {"m": SIZE})


def job(number: int, at: float, keys: str) -> Job:
    return Job(number, at, Task(keys, SIZE, "m"))


class Fixed:
    """Assigns jobs as listed."""

    def __init__(self, *machines: int) -> None:
        self._machines = machines

    def choose(self, job: Job, queues: Mapping[int, int], now: float) -> int:
        return self._machines[job.number]

    def end(self, job: Job, machine: int, now: float) -> None:
        pass

    def report(self, machine: int, resident: Mapping[str, int] | None) -> None:
        pass


def test_one_machine_with_room_for_one_set_by_hand() -> None:
    jobs = [job(0, 0.0, "x"), job(1, 1.0, "x"), job(2, 1.5, "y"), job(3, 20.0, "y")]
    outcome = Simulation(1, SIZE, TIMES, Fixed(0, 0, 0, 0)).run(jobs)
    # Load and evaluate 0..3, evaluate 3..4, load and evaluate 4..7, evaluate 20..21.
    assert outcome.latency_s == pytest.approx({0: 3.0, 1: 3.0, 2: 5.5, 3: 1.0})
    assert (outcome.hits, outcome.misses, outcome.moved_bytes) == (2, 2, 2 * SIZE)
    assert (outcome.busy_s, outcome.end_s) == pytest.approx((8.0, 21.0))


def test_what_fills_the_machines_is_not_counted() -> None:
    jobs = [job(0, 0.0, "x"), job(1, 10.0, "x"), job(2, 20.0, "y")]
    outcome = Simulation(1, SIZE, TIMES, Fixed(0, 0, 0), counted_from=1).run(jobs)
    assert (outcome.hits, outcome.misses, outcome.moved_bytes) == (1, 1, SIZE)
    assert outcome.latency_s == pytest.approx({1: 1.0, 2: 3.0})
    assert outcome.ended == {0: 1, 1: 1, 2: 1}


def test_a_machine_that_dies_gives_its_jobs_to_others_by_hand() -> None:
    jobs = [job(0, 0.0, "x"), job(1, 0.0, "x")]
    # Alone: both wait until it is back at 5, without the keys.
    outcome = Simulation(1, SIZE, TIMES, Fixed(0, 0)).run(jobs, [Death(2.5, 0, 2.5)])
    assert outcome.latency_s == pytest.approx({0: 8.0, 1: 9.0})
    assert outcome.moved_bytes == 2 * SIZE


@pytest.mark.parametrize("policy", ["random", "two", "keys"])
def test_every_job_ends_once_while_machines_die(policy: str) -> None:
    models = {"m": SIZE, "n": 2 * SIZE}
    times = Times({"m": [0.1, 0.2], "n": [0.3]}, [0.05, 0.4], models)
    jobs = requests(2000, 20.0, tenants=50, models=models, seed=1)
    policies: dict[str, Policy] = {"random": Random(2), "two": TwoChoices(2), "keys": KeyAware(900, times)}
    deaths = [Death(3.0 * i, i % 8, 2.0) for i in range(30)] + [Death(95.0, i, 1.0) for i in range(8)]
    outcome = Simulation(8, 900, times, policies[policy], seed=3).run(jobs, deaths)
    assert outcome.ended == dict.fromkeys(range(2000), 1)
    assert outcome.hits + outcome.misses >= 2000
    assert min(outcome.latency_s.values()) > 0.0999


def test_routing_by_keys_hits_where_random_routing_does_not() -> None:
    models = {"m": SIZE}
    times = Times({"m": [0.1]}, [0.1], models)
    jobs = requests(6000, 40.0, tenants=80, models=models, seed=1)

    def outcome(policy: Policy) -> float:
        result = Simulation(8, 10 * SIZE, times, policy, counted_from=2000).run(jobs)
        return result.hits / (result.hits + result.misses)

    # The machines together have room for all sets, each alone for an eighth.
    assert outcome(KeyAware(10 * SIZE, times)) > 0.8
    assert outcome(Random(0)) < 0.6


def test_requests_follow_the_law() -> None:
    jobs = requests(20000, 5.0, tenants=3, models={"m": 1, "n": 1}, exponent=1.0, seed=0)
    of_first = sum(each.task.keys.startswith("0/") for each in jobs) / 20000
    assert of_first == pytest.approx(6 / 11, abs=0.02)
    assert sum(each.task.model == "n" for each in jobs) / 20000 == pytest.approx(0.5, abs=0.02)
    assert jobs[-1].at == pytest.approx(20000 / 5.0, rel=0.05)
    assert requests(5, 5.0, tenants=3, models={"m": 1}, seed=7) == requests(
        5, 5.0, tenants=3, models={"m": 1}, seed=7
    )


def test_no_rule_finds_more_keys_than_the_best_choice_of_sets() -> None:
    budget = 40 * BYTES[0]
    sequence = sequence_of(30, 1)[:5000]
    best = ideal(30, budget)
    assert 0.5 < best < 1.0
    for counts in (False, True):
        loads = hits(sequence, budget, 0.5, counts=counts)
        assert 0.5 < sum(loads[1000:]) / len(loads[1000:]) < best + 0.02
    assert hits(sequence, 90 * BYTES[0], 0.5, counts=True).count(False) == len(set(sequence))
    assert ideal(30, 90 * BYTES[0]) == pytest.approx(1.0)
