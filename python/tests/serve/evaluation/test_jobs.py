"""Jobs on the disk, their order, and jobs whose workers end."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

import pytest
from keywright._files import replace
from keywright.errors import WorkerEndedError
from keywright.errors.service import BusyError, EvaluationError, ServeError, UnknownJobError, UnknownKeysError
from keywright.serve import Workers
from keywright.serve.evaluation.dispatch import ATTEMPTS, Dispatcher
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import EACH, FETCHED_S, Jobs
from keywright.serve.workers.key_cache import KeyCache
from keywright.serve.workers.workers import Worker
from tests.serve.storage.storage_servers import Place


@pytest.fixture
def jobs(place: Place) -> Jobs:
    return Jobs(place.open())


def add(jobs: Jobs, owner: str, priority: int = 0, holder: str = "") -> Job:
    """A job of a key set, by default of a holder of its own."""
    job = Job(secrets.token_hex(16), owner, "model", priority, 3, holder=holder or owner)
    return jobs.add(job, owner.encode())


def take(jobs: Jobs) -> Job:
    job = jobs.take()
    assert job is not None
    return job


def answer(jobs: Jobs, job: Job, data: bytes) -> None:
    """Answer as a worker and the service do."""
    replace(jobs.answer(job), data)
    assert jobs.answered(job) == data


def done(jobs: Jobs, job: Job, data: bytes = b"answer") -> None:
    answer(jobs, job, data)
    assert jobs.end(job, 1.5)


def test_clients_take_turns(jobs: Jobs) -> None:
    """A client with many requests delays only itself."""
    for _ in range(EACH):
        add(jobs, "a")
    with pytest.raises(BusyError, match=f"{EACH} evaluations"):
        add(jobs, "a")
    add(jobs, "b")
    add(jobs, "c")
    add(jobs, "b")
    assert [take(jobs).owner for _ in range(6)] == ["a", "b", "c", "a", "b", "a"]
    add(jobs, "d")
    # Its first turn comes before another one of a client that had turns.
    assert [take(jobs).owner for _ in range(3)] == ["d", "a", "a"]


def test_urgent_evaluations_overtake_those_of_their_client_alone(jobs: Jobs) -> None:
    add(jobs, "a")
    for priority in (0, 3, 9, 3):
        add(jobs, "b", priority)
    taken = [take(jobs) for _ in range(5)]
    assert [(job.owner, job.priority) for job in taken] == [("a", 0), ("b", 9), ("b", 3), ("b", 3), ("b", 0)]
    assert int(taken[2].identifier, 16) != int(taken[3].identifier, 16)


def test_accepted_jobs_survive_the_process(jobs: Jobs, place: Place) -> None:
    """In whatever state a job is when the process is killed."""
    ready, failed, computed, running = (add(jobs, "a") for _ in range(4))
    for job in (ready, failed, computed, running):
        assert take(jobs) is job
    done(jobs, ready)
    jobs.end(failed, 0.0, UnknownKeysError("gone"))
    # Its answer is complete, but its end was not recorded.
    answer(jobs, computed, b"computed")
    waiting = add(jobs, "b", 5)
    storage = place.open()
    storage.objects.put("jobs/left.answer.part", b"half")

    after = Jobs(storage)
    assert after.fetch(ready.identifier) == b"answer"
    assert after.get(ready.identifier).seconds == 1.5
    assert after.fetch(computed.identifier) == b"computed"
    with pytest.raises(UnknownKeysError, match="gone"):
        after.fetch(failed.identifier)
    restored = [take(after), take(after)]
    assert [job.identifier for job in restored] == [running.identifier, waiting.identifier]
    assert [(job.attempts, job.priority) for job in restored] == [(2, 0), (1, 5)]
    with after.message(waiting) as message:
        assert message.read_bytes() == b"b"
    assert "left.answer.part" not in place.held("jobs/")


def test_answers_are_kept_until_they_are_fetched_or_expire(jobs: Jobs, place: Place) -> None:
    fetched, forgotten, waiting = (add(jobs, "a") for _ in range(3))
    for job in (fetched, forgotten):
        with pytest.raises(EvaluationError, check=lambda error: error.code == "not_done"):
            jobs.fetch(job.identifier)
        done(jobs, take(jobs))
        # No input is kept.
        assert f"{job.identifier}.message" not in place.held("jobs/")
    assert jobs.fetch(fetched.identifier) == b"answer"
    jobs.expire(3600)
    # The connection may have broken.
    assert jobs.fetch(fetched.identifier) == b"answer"
    for job in (fetched, forgotten):
        job.touched -= FETCHED_S + 1
    jobs.expire(3600)
    with pytest.raises(UnknownJobError):
        jobs.fetch(fetched.identifier)
    assert jobs.fetch(forgotten.identifier) == b"answer"
    forgotten.fetched, forgotten.touched = False, time.monotonic() - 3601
    jobs.expire(3600)
    with pytest.raises(UnknownJobError):
        jobs.get(forgotten.identifier)
    assert place.held("jobs/") == {f"{waiting.identifier}.message"}


def test_only_the_jobs_of_one_client_are_dropped(jobs: Jobs, place: Place) -> None:
    before = [add(jobs, owner) for owner in "ab"]
    for _ in before:
        done(jobs, take(jobs))
    running = add(jobs, "a")
    assert take(jobs) is running
    waiting = [add(jobs, owner) for owner in "ab"]
    jobs.delete(jobs.of("a"))
    for job in (before[0], running, waiting[0]):
        with pytest.raises(UnknownJobError):
            jobs.fetch(job.identifier)
    assert jobs.fetch(before[1].identifier) == b"answer"
    assert take(jobs) is waiting[1]
    # The result of the running job is discarded.
    answer(jobs, running, b"late")
    assert not jobs.end(running)
    assert place.held("jobs/") == {
        f"{before[1].identifier}.answer",
        f"{waiting[1].identifier}.message",
    }


class Events:
    """A dispatcher whose workers follow a script."""

    def __init__(self, jobs: Jobs, work: Callable[[Worker, Job], float]) -> None:
        self.jobs, self.lines = jobs, list[str]()
        self.ended, self.run = list[Job](), work
        self.dispatcher = Dispatcher(jobs, Workers(1), self, self.lines.append)
        self.dispatcher.start()

    def end(self, job: Job) -> None:
        self.ended.append(job)

    def wait(self, job: Job) -> Job:
        for _ in range(2000):
            if job.state in ("done", "failed"):
                return job
            time.sleep(0.01)
        raise AssertionError(job.state)


def test_a_job_whose_worker_ended_is_done_again_a_few_times(jobs: Jobs) -> None:
    deaths = {"a": 2, "b": ATTEMPTS}

    def work(worker: Worker, job: Job) -> float:
        if deaths.get(job.owner, 0) > 0:
            deaths[job.owner] -= 1
            raise WorkerEndedError("the process that evaluated it has ended")
        answer(jobs, job, job.owner.encode())
        return 0.5

    events = Events(jobs, work)
    first, second, third = (add(jobs, owner) for owner in "abc")
    for job in (first, second, third):
        events.wait(job)
    assert jobs.fetch(first.identifier) == b"a"
    assert first.attempts == 3
    with pytest.raises(ServeError, match=f"{ATTEMPTS} times"):
        jobs.fetch(second.identifier)
    assert jobs.fetch(third.identifier) == b"c"
    events.dispatcher.close()
    assert len([line for line in events.lines if "attempt" in line]) == 2 + ATTEMPTS


def test_no_exception_ends_the_service(jobs: Jobs) -> None:
    unexpected = ServeError("an unexpected reason")
    unexpected.unforeseen = "Traceback: something nobody thought of"
    errors: list[Exception] = [
        unexpected,
        UnknownKeysError("gone"),
        ZeroDivisionError("of the service itself"),
    ]

    def work(worker: Worker, job: Job) -> float:
        if errors:
            raise errors.pop(0)
        answer(jobs, job, b"x")
        return 0.0

    events = Events(jobs, work)
    unforeseen = events.wait(add(jobs, "a"))
    with pytest.raises(ServeError, match="unexpected reason") as error:
        jobs.fetch(unforeseen.identifier)
    assert "thought of" not in str(error.value)
    with pytest.raises(UnknownKeysError, match="gone"):
        jobs.fetch(events.wait(add(jobs, "a")).identifier)
    with pytest.raises(ServeError, match="unexpected reason"):
        jobs.fetch(events.wait(add(jobs, "a")).identifier)
    assert jobs.fetch(events.wait(add(jobs, "a")).identifier) == b"x"
    events.dispatcher.close()
    assert any("thought of" in line for line in events.lines)
    assert any("of the service itself" in line for line in events.lines)


def test_evaluations_that_wait_stay_at_the_end(jobs: Jobs, place: Place) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(worker: Worker, job: Job) -> float:
        begun.set()
        go.wait()
        answer(jobs, job, b"x")
        return 0.0

    events = Events(jobs, slow)
    first = add(jobs, "a")
    begun.wait()
    rest = [add(jobs, "a") for _ in range(EACH)]
    threading.Timer(0.1, go.set).start()
    events.dispatcher.close()
    assert first.state == "done"
    assert {job.state for job in rest} == {"waiting"}
    after = Jobs(place.open())
    assert [take(after).identifier for _ in rest] == [job.identifier for job in rest]


def test_keys_that_are_slow_to_load_stay_longest() -> None:
    """Value 1 a byte, about, against 1/20: it outlasts twenty others, twice as many after another use."""
    for used, turn in ((False, 20), (True, 50)):
        cache: KeyCache[str] = KeyCache(100)
        for name, seconds in (("slow", 39.5), ("quick", 1.0)):
            assert cache.make_room(40) == []
            cache.put(name, name, 40, seconds)
        gone = []
        for number in range(60):
            gone += cache.make_room(40)
            cache.put(f"set {number}", "", 40, 2.0)
            if used and number == 10:
                # After ten of them: worth what the last one was that went, and 2 more.
                assert cache.get("slow") == "slow"
        assert gone[0] == "quick"
        assert gone.index("slow") == turn
        assert cache.size == 80
        cache.make_room(200)
        assert cache.size == 0
        cache.put("large", "large", 200, 1.0)
        assert cache.get("large") is None
        cache.forget("large")


def test_the_deletion_of_an_evaluation_tells_who_waits(jobs: Jobs) -> None:
    told: list[str] = []
    job, other = add(jobs, "owner"), add(jobs, "other")
    with jobs.watched(job, lambda: told.append("one")), jobs.watched(job, lambda: told.append("two")):
        jobs.delete([other])
        assert not told
        jobs.delete([job])
    assert told == ["one", "two"]
    assert not jobs._watchers


def test_a_deleted_evaluation_is_not_kept(jobs: Jobs) -> None:
    job = Job(secrets.token_hex(16), "owner", "model", 0, 3, holder="owner")
    job.held = True
    jobs.add(job, b"message")
    jobs.delete([job])
    jobs.keep(job)
    assert job.held
    assert not jobs._records.jobs()
