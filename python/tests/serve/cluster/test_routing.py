"""Routing of jobs to replicas."""

from __future__ import annotations

import pytest
from keywright.serve.cluster.routing import WEIGHT, Costs, Router, Task

SIZE = 1000
LOAD_S, EVALUATION_S = 0.5, 0.2


def task(keys: str) -> Task:
    return Task(keys, SIZE, "model")


@pytest.fixture
def router() -> Router:
    """Two replicas with room for two key sets each."""
    router = Router(Costs(load_s_per_byte=LOAD_S / SIZE, evaluation_s=EVALUATION_S))
    for name in ("a", "b"):
        router.add(name, 2 * SIZE)
    return router


def other(name: str) -> str:
    return {"a": "b", "b": "a"}[name]


def test_a_replica_that_has_the_keys_is_chosen_until_its_queue_costs_more_than_loading(
    router: Router,
) -> None:
    home = router.choose(task("k"), 0.0)
    router.send(home, "first", task("k"), 0.0)
    router.end(home, "first", 1.0)
    # 0, 0.2 and 0.4 seconds of queue are less than the 0.5 of loading, 0.6 are more.
    for number, expected in enumerate([home, home, home, other(home)]):
        assert router.choose(task("k"), 1.0) == expected
        router.send(expected, str(number), task("k"), 1.0)


def test_a_queue_gets_shorter_with_time_but_not_by_more_than_its_first_job(router: Router) -> None:
    for number in range(2):
        router.send("a", str(number), task("k"), 0.0)
    queue = router.replicas["a"].queue
    assert queue(0.0) == pytest.approx(LOAD_S + 2 * EVALUATION_S)
    assert queue(0.3) == pytest.approx(LOAD_S + 2 * EVALUATION_S - 0.3)
    assert queue(9.0) == pytest.approx(EVALUATION_S)
    router.end("a", "0", 9.0)
    assert queue(9.1) == pytest.approx(EVALUATION_S - 0.1)
    router.end("a", "1", 9.2)
    assert queue(9.2) == 0.0


def test_keys_that_nobody_has_go_where_there_is_room(router: Router) -> None:
    for number, keys in enumerate(("x", "y")):
        router.send("a", str(number), task(keys), 0.0)
        router.end("a", str(number), 1.0)
    assert all(router.choose(task(f"new{i}"), 1.0) == "b" for i in range(20))


def test_keys_that_nobody_has_are_spread_and_routers_agree() -> None:
    routers = [Router(), Router()]
    for name in "abcd":
        routers[0].add(name, 1 << 30)
    for name in "dcba":
        routers[1].add(name, 1 << 30)
    chosen = [[each.choose(task(f"k{i}"), 0.0) for i in range(400)] for each in routers]
    assert chosen[0] == chosen[1]
    # 100 each are expected, with a standard deviation of 8.7.
    assert all(60 < chosen[0].count(name) < 140 for name in "abcd")


def test_reports_of_a_replica_are_corrected_by_jobs_in_flight(router: Router) -> None:
    router.send("a", "1", task("old"), 0.0)
    router.end("a", "1", 0.1)
    router.send("a", "2", task("coming"), 0.1)
    router.believe("a", {"other": SIZE})
    has = router.replicas["a"].has
    assert (has("old"), has("coming"), has("other")) == (False, True, True)
    router.believe("nobody", {"other": SIZE})


def test_a_replica_that_goes_gives_back_its_jobs(router: Router) -> None:
    router.send("a", "1", task("k"), 0.0)
    router.send("a", "2", task("k"), 0.0)
    assert router.remove("a") == ["1", "2"]
    assert router.remove("a") == []
    router.end("a", "1", 0.0)
    assert router.choose(task("k"), 0.0) == "b"
    router.remove("b")
    with pytest.raises(LookupError, match="no replica"):
        router.choose(task("k"), 0.0)


def test_order_begins_with_the_choice(router: Router) -> None:
    router.send("a", "1", task("k"), 0.0)
    assert router.order(task("k"), 0.0) == ["b", "a"]
    router.end("a", "1", 0.0)
    assert router.order(task("k"), 0.0) == ["a", "b"]


def test_costs_follow_what_is_measured() -> None:
    costs = Costs(load_s_per_byte=1.0, evaluation_s=3.0)
    assert costs.evaluation("m") == 3.0
    costs.evaluated("m", 1.0)
    costs.evaluated("m", 2.0)
    assert costs.evaluation("m") == pytest.approx(1.0 + WEIGHT)
    assert costs.evaluation("other") == 3.0
    # The first measured value replaces the initial assumption.
    costs.loaded(10, 20.0)
    assert costs.load(10) == pytest.approx(20.0)
    costs.loaded(10, 30.0)
    assert costs.load(10) == pytest.approx(20.0 + WEIGHT * 10)
