"""Everything that the clients of a service share is counted by holder.

Every bound of the service is in `SHARED`, with an attack by one holder with many key sets, or in `SINGLE`,
with what it bounds. A bound that is in neither fails a test.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keywright.serve
import keywright.serve.service as service_module
import numpy as np
import pytest
from keywright.errors.service import BusyError, LimitError, UnknownKeysError
from keywright.model import Model
from keywright.serve import Service
from keywright.serve.configurations import Configuration
from keywright.serve.http import connection_slots
from keywright.serve.http.app import application
from keywright.serve.http.connection_slots import ConnectionSlots, JobWaiters, Pace, Slot, Threads
from keywright.serve.jobs import queue as jobs_module
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import Jobs
from keywright.serve.served.model import ServedModel
from keywright.serve.service import ServiceLimits
from keywright.serve.storage import open_storage
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.holders import FairQueue, holder_of
from keywright.serve.tenants.quotas import Quota, Quotas
from keywright.serve.uploads import admission, eviction, uploaded
from keywright.serve.uploads.uploaded import STALLED_S, UploadedKeys
from keywright.serve.workers.resident_keys import ResidentKeys
from tests.serve.network import WORKERS

ROOT = Path(keywright.serve.__file__).parent
EVIL, HONEST = holder_of("", "192.0.2.1"), holder_of("", "198.51.100.1")
SETS = 15


class Clients:
    """A service, and its clients by name: tenants, or addresses.

    Args:
        model: that is served.
        folder: for all files.
        known: whether there are accounts.
        named: limits and quotas of the service.
    """

    def __init__(self, model: Model, folder: Path, *, known: bool = False, **named: Any) -> None:
        accounts, self._keys = folder / "accounts.json", dict[str, str]()
        if known:
            self._keys = {name: add(accounts, name) for name in ("evil", "honest")}
        self.known, self._model, self._folder, self._named = known, model, folder, named
        self._accounts = Accounts.load(accounts) if known else None
        self.service = self._open()

    def _open(self) -> Service:
        state = self._folder / "state"
        return Service(self._model, state, workers=WORKERS, accounts=self._accounts, **self._named)

    def restart(self) -> None:
        """End the service and begin another one of its state."""
        self.service.close()
        self.service = self._open()

    def tenant(self, name: str) -> str:
        return name if self.known else ""

    @staticmethod
    def address(name: str) -> str:
        return {"evil": "192.0.2.1", "honest": "198.51.100.1"}[name]

    def create(self, name: str) -> str:
        """An empty key set of a client."""
        request = {"model": self._model.manifest.hash}
        return str(self.service.create_keys(request, self.tenant(name), self.address(name))["keys"])

    def begin(self, name: str) -> str:
        """A key set with a byte."""
        identifier = self.create(name)
        with contextlib.closing(self.service.begin_part(identifier, 0, 1, self.tenant(name))) as writer:
            writer.append(self._model.manifest.keys.head[:1])
        return identifier

    def there(self, identifier: str, name: str) -> bool:
        """Whether a key set is there."""
        try:
            self.service.keys(identifier, self.tenant(name))
        except UnknownKeysError:
            return False
        return True

    async def ask(
        self, name: str, method: str, path: str, body: bytes | None, length: int | None = None
    ) -> tuple[int, Any]:
        """Return status and answer of a request; the body never ends if it is None."""
        query = path.partition("?")
        headers = [(b"host", b"localhost"), (b"content-length", str(length or len(body or b"")).encode())]
        if self.known:
            headers.append((b"authorization", f"Bearer {self._keys[name]}".encode()))
        scope = {
            "type": "http",
            "method": method,
            "path": query[0],
            "raw_path": query[0].encode(),
            "query_string": query[2].encode(),
            "headers": headers,
            "client": (self.address(name), 1),
            "scheme": "http",
            "server": ("localhost", 80),
            "http_version": "1.1",
            "root_path": "",
        }
        status, data = 0, b""

        async def receive() -> dict[str, Any]:
            if body is None:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, data
            status, data = message.get("status", status), data + message.get("body", b"")

        await self.app(scope, receive, send)
        return status, json.loads(data)

    @property
    def app(self) -> Any:
        """The application of the service."""
        if getattr(self, "_app", None) is None:
            self._app = application(self.service)
        return self._app


Attack = Callable[["Attacked"], object]


@dataclasses.dataclass
class Attacked:
    """What an attack needs."""

    model: Model
    folder: Path
    patch: pytest.MonkeyPatch

    @contextlib.contextmanager
    def clients(self, **named: Any) -> Iterator[Clients]:
        clients = Clients(self.model, self.folder, **named)
        try:
            yield clients
        finally:
            clients.service.close()

    @property
    def key_bytes(self) -> int:
        return self.model.manifest.keys.size


def _connections(attacked: Attacked) -> None:
    slots, lost = ConnectionSlots(), list[str]()
    for _ in range(20):
        slots.enter(Slot(lambda: lost.append("evil"), EVIL), 8)
    slots.enter(Slot(lambda: lost.append("honest"), HONEST), 8)
    assert set(lost) == {"evil"}


def _requests(attacked: Attacked) -> None:
    pace = Pace(clock=lambda: 1000.0)
    for _ in range(1000):
        pace.delay("192.0.2.1")
        pace.charge("192.0.2.1", connection_slots.OPENING)
        assert pace.delay("198.51.100.1") == 0 or pace._next["198.51.100.1"] > 1000
        pace.body("192.0.2.1", 1 << 20)
    assert pace.body("198.51.100.1", connection_slots.BODY_BYTES) == 0


def _reads(attacked: Attacked) -> None:
    pace = Pace(clock=lambda: 1000.0, times=connection_slots.READS)
    assert pace.delay("198.51.100.1") == 0
    delays = [pace.delay("192.0.2.1") for _ in range(100_000)]
    assert delays[-1] > 0
    assert pace.delay("198.51.100.1") == 0


def _openings(attacked: Attacked) -> None:
    attacked.patch.setattr(service_module, "OPENINGS", 8)
    attacked.patch.setattr(service_module, "OPENINGS_A_SECOND", 1)
    with attacked.clients() as clients:
        for _ in range(8):
            clients.create("evil")
        with pytest.raises(BusyError, check=lambda error: error.retry_after == 1):
            clients.create("evil")
        clients.create("honest")


def _empty_sets(attacked: Attacked) -> None:
    attacked.patch.setattr(eviction, "MAX_EMPTY", 8)
    with attacked.clients() as clients:
        mine = clients.create("honest")
        for _ in range(SETS):
            clients.create("evil")
        assert clients.there(mine, "honest")


def _places(attacked: Attacked) -> None:
    """Also after a restart, which forgot the holders."""
    for restarts in (False, True):
        attacked.folder = attacked.folder / str(restarts)
        attacked.folder.mkdir()
        with attacked.clients(limits=ServiceLimits(capacity=4)) as clients:
            mine, theirs = clients.begin("honest"), [clients.begin("evil") for _ in range(3)]
            if restarts:
                clients.restart()
            with pytest.raises(BusyError):
                clients.begin("evil")
            assert clients.there(mine, "honest")
            clients.begin("honest")
            assert [clients.there(each, "evil") for each in theirs] == [False, True, True]


def _pauses(attacked: Attacked) -> None:
    """The attack: an upload that paused for a minute lost its place to an address with all the others."""
    with attacked.clients(limits=ServiceLimits(capacity=4)) as clients:
        mine, theirs = clients.begin("honest"), [clients.begin("evil") for _ in range(3)]
        clients.service.store.get(mine).moved -= 2 * STALLED_S
        with pytest.raises(BusyError):
            clients.begin("evil")
        # Its own upload that pauses gives way, and to others as well.
        for name in ("evil", "honest"):
            paused = theirs.pop()
            clients.service.store.get(paused).moved -= 2 * STALLED_S
            clients.begin(name)
            assert not clients.there(paused, "evil")
        assert clients.there(mine, "honest")


def _bytes(attacked: Attacked) -> None:
    size = attacked.key_bytes
    with attacked.clients(quotas=Quotas(Quota(bytes=4 * size))) as clients:
        theirs = [clients.begin("evil") for _ in range(4)]
        with pytest.raises(LimitError):
            clients.begin("evil")
        mine = [clients.begin("honest") for _ in range(2)]
        with pytest.raises(LimitError):
            clients.begin("honest")
        assert [clients.there(each, "evil") for each in theirs] == [False, False, True, True]
        assert all(clients.there(each, "honest") for each in mine)


def _bytes_of_jobs(attacked: Attacked) -> None:
    with attacked.clients(quotas=Quotas(Quota(bytes=1000))) as clients, contextlib.ExitStack() as stack:
        jobs, admitted = clients.service.jobs, clients.service.store.admission
        for number in range(5):
            admitted.require_bytes((), "", 100, EVIL)
            stack.enter_context(jobs.reserve(str(number), "", EVIL, 100))
        with pytest.raises(LimitError):
            admitted.require_bytes((), "", 100, EVIL)
        admitted.require_bytes((), "", 100, HONEST)


def _seconds(attacked: Attacked) -> None:
    with attacked.clients(quotas=Quotas(Quota(seconds=10.0))) as clients:
        for restarts in (False, True):
            if restarts:
                clients.restart()
            else:
                clients.service._usage.use("", 5.0, EVIL)
            with pytest.raises(LimitError):
                clients.service._usage.require_seconds("", EVIL)
            clients.service._usage.require_seconds("", HONEST)
        clients.service._usage.use("", 5.0, HONEST)
        with pytest.raises(LimitError):
            clients.service._usage.require_seconds("", holder_of("", "203.0.113.1"))


def _bodies(attacked: Attacked) -> None:
    """The attack: 12 bodies of one address kept others out."""
    for known in (False, True):
        attacked.folder = attacked.folder / str(known)
        attacked.folder.mkdir()
        with attacked.clients(known=known) as clients:
            clients.service.buffers.most = 8 << 16
            head = attacked.model.manifest.keys.head[:100]
            status, said = asyncio.run(_part_among_bodies(clients, head))
            assert (status, said["received"]) == (200, len(head))


async def _part_among_bodies(clients: Clients, part: bytes) -> tuple[int, Any]:
    """The answer to a part while bodies of another client that never end take all memory."""
    path, mine = "/v1/keys/{}/parts?offset=0", clients.create("honest")
    theirs = [path.format(clients.create("evil")) for _ in range(SETS)]
    tasks = [asyncio.ensure_future(clients.ask("evil", "PUT", each, None, 1 << 16)) for each in theirs]
    while clients.service.buffers.used < 8 << 16:
        await asyncio.sleep(0.01)
    said = await clients.ask("honest", "PUT", path.format(mine), part)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return said


def _queue(attacked: Attacked) -> None:
    attacked.patch.setattr(jobs_module, "WAITING", 16)
    jobs = Jobs(open_storage(attacked.folder), jobs_module.WAITING)
    for number in range(8):
        jobs.add(_job(f"evil {number}", EVIL), b"")
    with pytest.raises(BusyError, match="8 evaluations"), jobs.reserve("evil 8", "", EVIL, 1):
        pass
    for number in range(4):
        jobs.add(_job(f"other {number}", "other"), b"")
    with pytest.raises(BusyError, match="4 evaluations"):
        jobs.add(_job("other 4", "other"), b"")
    # A holder that has none may always wait.
    for number in range(20):
        jobs.add(_job("set", f"holder {number}"), b"")
    with pytest.raises(BusyError, match="1 evaluations"):
        jobs.add(_job("set", "holder 19"), b"")


def _job(owner: str, holder: str) -> Job:
    return Job(secrets.token_hex(16), owner, "model", 0, 1, holder=holder)


def _turns(attacked: Attacked) -> None:
    """The attack: 15 key sets of one address had 15 turns. Also after a restart."""
    storage = open_storage(attacked.folder)
    before = Jobs(storage)
    for number in range(SETS + 1):
        before.add(Job(f"{number:032x}", f"evil {number % SETS}", "model", 0, 1, holder=EVIL), b"evil")
    for number in (16, 17):
        before.add(Job(f"{number:032x}", "honest", "model", 0, 1, holder=HONEST), b"honest")
    jobs = Jobs(storage)
    taken = [jobs.take() for _ in range(len(jobs))]
    owners = [job.owner for job in taken if job is not None]
    assert [n for n, owner in enumerate(owners) if owner == "honest"] == [1, 3]
    # The key sets of a holder take turns as well.
    assert [owner for owner in owners if owner != "honest"] == [f"evil {n % SETS}" for n in range(16)]
    # A client that asks anew after each answer waits for what runs alone, not for the next one.
    for number in range(20, 28):
        jobs.add(Job(f"{number:032x}", "evil", "model", 0, 1, holder=EVIL), b"evil")
    for number in range(30, 33):
        assert (running := jobs.take()) is not None
        assert running.owner == "evil"
        jobs.add(Job(f"{number:032x}", "honest", "model", 0, 1, holder=HONEST), b"honest")
        assert (following := jobs.take()) is not None
        assert following.owner == "honest"


def _workers(attacked: Attacked) -> None:
    """The attack: evaluations of one address ran on all workers, and another one waited for their ends."""
    jobs = Jobs(open_storage(attacked.folder), workers=3)
    for number in range(SETS):
        jobs.add(_job(f"evil {number}", EVIL), b"")
    # An address that is alone uses all workers.
    first = [jobs.take() for _ in range(3)]
    jobs.add(_job("honest", HONEST), b"")
    for job in first:
        assert job is not None
        assert jobs.answered(job, b"answer")
        assert jobs.end(job)
    taken = [jobs.take() for _ in range(3)]
    assert [job.holder for job in taken if job is not None] == [HONEST, EVIL, EVIL]
    assert taken[0] is not None
    assert jobs.answered(taken[0], b"answer")
    assert jobs.end(taken[0])
    waits = threading.Thread(target=lambda: taken.append(jobs.take()), daemon=True)
    waits.start()
    waits.join(0.05)
    assert waits.is_alive()
    jobs.add(_job("honest", HONEST), b"")
    waits.join(20)
    assert (last := taken[-1]) is not None
    assert last.holder == HONEST
    # After a while without others, it has all workers again.
    jobs._seen[HONEST] -= 2 * jobs_module.OTHERS_S
    assert (last := jobs.take()) is not None
    assert last.holder == EVIL


def _only_worker(attacked: Attacked) -> None:
    """The attack: evaluations of one address followed each other on the only worker, so that each request of
    another one waited for the end of one."""
    now = 1000.0
    attacked.patch.setattr(jobs_module, "time", SimpleNamespace(monotonic=lambda: now))
    jobs = Jobs(open_storage(attacked.folder))

    def serve(holder: str, seconds: float) -> None:
        nonlocal now
        jobs.add(_job(holder, holder), b"")
        job = jobs.take()
        assert job is not None
        now += seconds
        jobs.charge(job, seconds)
        assert jobs.answered(job, b"answer")
        assert jobs.end(job)

    for _ in range(5):
        serve(EVIL, 0.4)
    assert jobs._busy() == set()  # An address that is alone has all of the time.
    for _ in range(30):
        serve(HONEST, 0.05)
        now += 0.1
    assert jobs._busy() == set()
    for _ in range(3):
        serve(EVIL, 0.4)
    assert jobs._busy() == {EVIL}
    rests = jobs._rests[EVIL] - now
    assert 1.0 < rests <= jobs_module.REST_S
    serve(HONEST, 0.05)
    now += rests
    assert jobs._busy() == set()
    serve(EVIL, 60.0)
    jobs.add(_job("honest", HONEST), b"")
    assert jobs._rests[EVIL] == now + jobs_module.REST_S
    assert jobs._busy() == {EVIL}


def _answers(attacked: Attacked) -> None:
    """Answers that nobody fetched were kept for an hour, in any number."""
    attacked.patch.setattr(jobs_module, "MAX_ENDED", 4)
    jobs = Jobs(open_storage(attacked.folder))
    for owner, holder in [("honest", HONEST), *((f"evil {n}", EVIL) for n in range(6))]:
        job = Job(owner, owner, "model", 0, 1, holder=holder)
        jobs.add(job, b"message")
        assert jobs.take() is job
        assert jobs.answered(job, b"answer") == b"answer"
        assert jobs.end(job)
    assert {job.owner for job in jobs.all()} == {"honest", "evil 3", "evil 4", "evil 5"}


def _waiters(attacked: Attacked) -> None:
    attacked.patch.setattr(connection_slots, "MAX_WAITING", 4)

    async def wait() -> None:
        waiters = JobWaiters()
        with contextlib.ExitStack() as stack:
            theirs = [stack.enter_context(waiters.waiter(EVIL)) for _ in range(8)]
            mine = stack.enter_context(waiters.waiter(HONEST))
            await asyncio.sleep(0)
            assert not mine.ended.is_set()
            assert sum(each.ended.is_set() for each in theirs) == 5

    asyncio.run(wait())


def _threads(attacked: Attacked) -> None:
    """The attack: 40 calls that wait for a check took all threads."""
    ran = list[str]()

    async def call() -> None:
        # More threads begin in any order.
        threads, go = Threads(1), threading.Event()

        def blocked(name: str) -> None:
            ran.append(name)
            go.wait(20)

        tasks = [asyncio.ensure_future(threads.run(EVIL, blocked, "evil")) for _ in range(SETS)]
        await asyncio.sleep(0.05)
        gone = asyncio.ensure_future(threads.run(EVIL, blocked, "gone"))
        honest = [asyncio.ensure_future(threads.run(HONEST, blocked, "honest")) for _ in range(2)]
        await asyncio.sleep(0.05)
        gone.cancel()
        go.set()
        await asyncio.gather(*tasks, *honest)
        assert threads._free == 1

    asyncio.run(call())
    assert ran[0] == "evil"
    assert ran[1:5].count("honest") == 2
    assert len(ran) == SETS + 2


def _key_memory(attacked: Attacked) -> None:
    """One address with many sets evicted the set of another one again and again."""
    keys, hits = ResidentKeys(100, lambda: 1000), list[bool]()

    def use(name: str, holder: str) -> None:
        with keys.lend(name, 20, holder) as loan:
            if not loan.hit:
                read, written = _pipe()
                written()
                loan.keep(read, 1.0)
            if holder == HONEST:
                hits.append(loan.hit)

    for _ in range(3):
        use("mine", HONEST)
        for number in range(SETS):
            use(f"evil {number}", EVIL)
    keys.close()
    assert hits == [False, True, True]


def _pipe() -> tuple[int, Callable[[], None]]:
    """A descriptor, and how to close the other end."""
    import os

    read, write = os.pipe()
    return read, lambda: os.close(write)


SHARED: dict[str, Attack] = {
    "http.connections.MAX_CONNECTIONS": _connections,
    "http.connection_slots.REQUESTS_A_SECOND": _requests,
    "http.connection_slots.BURST": _requests,
    "http.connection_slots.OPENING": _requests,
    "http.connection_slots.READS": _reads,
    "http.connection_slots.BODY_BYTES": _requests,
    "http.connection_slots.MAX_WAITING": _waiters,
    "http.connection_slots.THREADS": _threads,
    "http.connection_slots.CHECKING": _threads,
    "http.connection_slots.ASKING": _threads,
    "service.OPENINGS_A_SECOND": _openings,
    "service.OPENINGS": _openings,
    "service.ServiceLimits.capacity": _places,
    "uploads.uploaded.STALLED_S": _pauses,
    "tenants.quotas.Quota.bytes": _bytes,
    "tenants.quotas.Quota.bytes of evaluations": _bytes_of_jobs,
    "tenants.quotas.Quota.seconds": _seconds,
    "uploads.eviction.MAX_EMPTY": _empty_sets,
    "uploads.buffers.BUFFER_BYTES": _bodies,
    "uploads.buffers.LEAST_BODIES": _bodies,
    "jobs.queue.WAITING": _queue,
    "jobs.queue.MAX_ENDED": _answers,
    "workers.Workers.count": _turns,
    "workers.Workers.count at a time": _workers,
    "workers.Workers.count of one": _only_worker,
    "workers.Workers.key_memory": _key_memory,
}
"""Bounds of what all clients share, each with an attack by one holder with many key sets."""


@pytest.mark.parametrize("attack", dict.fromkeys(SHARED.values()), ids=lambda each: each.__name__[1:])
def test_one_holder_with_many_key_sets_stops_no_other(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    attack(Attacked(thin, tmp_path, monkeypatch))


class Places:
    """Places of a service without accounts, which addresses ask for on a clock of its own.

    Args:
        model: whose keys are asked for.
        patch: sets the clock.
        capacity: number of places.
    """

    def __init__(self, model: Model, patch: pytest.MonkeyPatch, capacity: int) -> None:
        self.now, self._configuration = 0.0, Configuration.of(ServedModel(model))
        for module in (eviction, uploaded):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self._admission = admission.Admission(capacity=capacity, expiry=400.0)
        self.interval, self.sets = 400.0 * admission.TURN / capacity, dict[str, UploadedKeys]()
        self.delays = set[int]()

    def ask(self, holder: str) -> bool:
        """Whether an address has a place now; it uses the set that it has."""
        if holder not in self.sets and not self.begin(holder):
            return False
        self.sets[holder].used = self.now
        return True

    def begin(self, holder: str, *, stalls: bool = False) -> bool:
        """Whether an address gets a place for a new set, which may be one that stalls."""
        asked = UploadedKeys(holder, "model", self._configuration, 0.0, "", holder)
        asked.since = asked.used = asked.moved = self.now
        asked.parts, asked.ready = {0: 1}, not stalls
        if stalls:
            asked.moved -= 2 * STALLED_S
        try:
            victims = self._admission.with_bytes(asked, list(self.sets.values()))
        except BusyError as refused:
            self.delays.add(refused.retry_after)
            return False
        for victim in victims:
            self.leave(victim.holder)
        self.sets[holder] = asked
        return True

    def leave(self, holder: str) -> None:
        """Delete the set of an address, if it has one."""
        if (left := self.sets.pop(holder, None)) is not None:
            self._admission.leave(left)

    def leave_and_return(self, holder: str) -> None:
        """Delete the set of an address, and ask for a place again at once."""
        self.leave(holder)
        self.ask(holder)


@pytest.mark.parametrize("most", [4, 5, 12])
@pytest.mark.parametrize("evil_pause", [1.0, 7.0, 0.95 * eviction.AWAY_S])
def test_addresses_that_hold_all_places_keep_no_new_one_out(
    thin: Model, monkeypatch: pytest.MonkeyPatch, most: int, evil_pause: float
) -> None:
    """The attack: 16 addresses held all 16 places for as long as they used them."""
    capacity = 4
    places, random = Places(thin, monkeypatch, capacity), np.random.default_rng(most)
    evil, begun, honest = [f"evil {number}" for number in range(most)], 200.0, list[bool]()
    turn = places.interval + max(0.0, evil_pause - 1.0)
    while places.now < begun + (most + 4 * capacity) * (turn + 1.0):
        places.now += 1.0
        for number in np.flatnonzero(random.uniform(size=most) < 1.0 / evil_pause):
            places.ask(evil[number])
        if places.now >= begun and places.now % 5 == 0:
            honest.append(places.ask("honest"))
        assert len(places.sets) <= capacity
    assert places.delays <= set(range(1, 21))
    waited = 5.0 * honest.index(True)
    assert waited <= (max(0, most - capacity) + 1) * (places.interval + eviction.AWAY_S)
    kept = honest[honest.index(True) :]
    lasted = 5.0 * (kept.index(False) if False in kept else len(kept))
    assert lasted >= (capacity - 1) * places.interval - 5.0


@pytest.mark.parametrize("most", [4, 6])
@pytest.mark.parametrize("pause", [1.0, 3.0, 20.0])
def test_addresses_that_leave_and_return_win_no_time(
    thin: Model, monkeypatch: pytest.MonkeyPatch, most: int, pause: float
) -> None:
    """The attack: deleted and opened again, a set was the youngest, and its place went to it and not to the
    address that waited."""
    capacity = 4
    places, held = Places(thin, monkeypatch, capacity), {f"evil {number}": 0 for number in range(most)}
    held["honest"] = 0
    while places.now < 4000.0:
        places.now += 1.0
        for name in [*held][:-1]:
            if places.now % pause == 0:
                places.leave(name)
            places.ask(name)
        if places.now % 5 == 0:
            places.ask("honest")
        for name in places.sets:
            held[name] += 1
    assert held["honest"] > 0.8 * capacity / (most + 1) * 4000.0


@pytest.mark.parametrize("seed", range(12))
def test_no_moves_of_others_win_a_place_or_time(
    thin: Model, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The attacks: 16 addresses whose sets stalled, and were replaced by their own, kept an honest one out
    for ever; some that had had their places for a turn left, and came back as the youngest."""
    capacity, random = 4, np.random.default_rng(seed)
    most = int(random.integers(3, 8))
    places, evil = Places(thin, monkeypatch, capacity), [f"evil {number}" for number in range(most)]
    moves: list[Callable[[str], object]] = [
        places.ask,
        places.leave,
        places.leave_and_return,
        lambda name: places.begin(name, stalls=True),
        lambda name: name in places.sets and places.begin(name, stalls=True),
    ]
    likely = random.dirichlet(np.ones(len(moves)))
    begun = float(random.integers(0, 300))
    waiting = (max(0, most - capacity) + 1) * (places.interval + eviction.AWAY_S)
    honest = list[bool]()
    while places.now < begun + 4000.0:
        places.now += 1.0
        if places.now >= begun and places.now % 5 == 0:
            honest.append(places.ask("honest"))
        for name in random.permutation(evil):
            if random.uniform() < 0.3:
                moves[random.choice(len(moves), p=likely)](str(name))
        assert len(places.sets) <= capacity
    assert 5.0 * honest.index(True) <= waiting
    assert sum(honest) > 0.8 * min(1.0, capacity / (most + 1)) * len(honest)


def test_a_set_that_nobody_uses_gives_way_at_once(thin: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places(thin, monkeypatch, 4)
    for number in range(4):
        assert places.ask(f"first {number}")
    for _ in range(100):
        places.now += 1.0
        for number in range(1, 4):
            places.ask(f"first {number}")
    assert places.ask("second")
    assert "first 0" not in places.sets
    # Sets of the same holder never do, such as those of a tenant.
    full = [UploadedKeys(f"{n}", "model", places._configuration, 0.0, "a", "tenant a") for n in range(5)]
    for each in full:
        each.parts, each.ready, each.used = {0: 1}, True, -1e6
    with pytest.raises(BusyError) as refused:
        places._admission.with_bytes(full[4], full[:4])
    assert refused.value.retry_after == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_holder_waits_for_its_share_and_one_item_of_each_other(seed: int) -> None:
    """The bound of docs/reference/service.md, whatever the lengths of the others' items."""
    random = np.random.default_rng(seed)
    lengths = {f"other {n}": float(10 ** random.uniform(-1, 2)) for n in range(random.integers(1, 5))}
    queue, now, asked, bound, left, checked = FairQueue[float](), 0.0, 0.0, 0.0, 0, 0
    for number in range(1500):
        for name, longest in lengths.items():
            while queue.count(name) < 3:
                queue.put(float(random.uniform(0.2, 1.0)) * longest, name)
        holder, started = queue.following(), now
        assert holder is not None
        seconds = queue.take()
        if not left and number % 100 == 50 and holder != "honest":
            # In the middle of the item that is served now, after a pause.
            items = [float(each) for each in random.uniform(0.05, 2.0, random.integers(1, 12))]
            asked, left, total = started, len(items), sum(items)
            bound = total + sum(total - items[-1] + longest for longest in lengths.values())
            for each in items:
                queue.put(each, "honest")
        now += seconds
        queue.charge(holder, seconds)
        if holder == "honest" and not (left := left - 1):
            assert now - asked <= bound + 1e-9
            checked += 1
    assert checked >= 5


SINGLE: dict[str, str] = {
    "uploads.eviction.UPLOAD_BYTES_A_SECOND": "the turn of one key set",
    "cluster.index_actor.RETRIES": "questions to a shard of the operator's own",
    "cluster.deployment.QUEUE": "messages on the way to one replica, whose jobs come from the queue",
    "evaluation.dispatch.ATTEMPTS": "starts of one evaluation",
    "evaluation.durations.KEPT": "times that are remembered for all",
    "evaluation.evaluations.HELD_BYTES": "one message",
    "uploads.uploaded.LISTED": "objects of one key set",
    "exchanged.SAMPLE_BYTES": "one object",
    "jobs.queue.EACH": "evaluations of one key set",
    "jobs.job.MAX_PRIORITY": "one evaluation",
    "http.admin.HASH_DIGITS": "a page of the operator",
    "http.app.MAX_PART": "one part",
    "http.app.QUICK_BYTES": "one message",
    "http.connection_slots.REFUSED_AT_ONCE": "connections above the pace of their address",
    "http.connections.MAX_HEAD": "one request",
    "http.connections.MAX_LINES": "one request",
    "http.connections.MAX_LISTS": "one request",
    "http.connections.MAX_REQUEST_LINE": "one request",
    "http.connections.REFUSED_BYTES": "one connection",
    "http.connections.SLOWEST": "one connection",
    "http.connections.TLS_HEAD": "one record",
    "http.connections.TLS_HIGH": "one connection",
    "http.connections.TLS_LOW": "one connection",
    "http.connections.TLS_READ": "one read",
    "http.connections.TLS_RECORDS": "records of an address, which has a pace of reads",
    "http.pages.MAX_PAGE_BYTES": "files of the operator",
    "http.request_checks.LINGER_BYTES": "one connection",
    "http.request_checks.MAX_NAMES": "one request",
    "http.request_checks.PIECE_BYTES": "one answer",
    "http.server.BACKLOG": "connections of the system, until the pace of their address is known",
    "served.index.EXPANDED_AT_ONCE": "one query, whose keys' memory is planned",
    "served.index.HEADER_BYTES": "one query",
    "storage.external.copies.FETCHES": "objects of one key set",
    "storage.external.postgresql.LOCK": "no bound: a name",
    "storage.external.s3.COPIES_BYTES": "copies of objects, which are fetched again",
    "storage.external.s3.PART_BYTES": "one object",
    "tenants.audit.MAX_BYTES": "lines of evaluations and key sets, whose rate is bounded",
    "tenants.audit.MAX_FILES": "lines of evaluations and key sets, whose rate is bounded",
    "tenants.holders.MANY": "holders that are remembered until their burst is whole again",
    "tenants.holders.NETWORK_BITS": "one holder",
    "tenants.oidc.MAX_KEYS": "keys of an issuer",
    "tenants.oidc.MAX_TOKEN": "one token",
    "tenants.oidc.MIN_RSA_BITS": "keys of an issuer",
    "uploads.direct.PART_BYTES": "one part",
    "uploads.secret_scanner.CHUNK_BYTES": "one key set",
    "uploads.upload_store.SMALL": "one object",
    "uploads.uploaded.DIGITS": "one name",
    "uploads.uploaded.LEAST_PART": "one key set",
    "uploads.uploaded.MAX_RUNS": "one key set",
    "uploads.uploaded.MOVED_BYTES": "one key set",
    "workers.resident_keys.DESCRIPTORS": "descriptors of all bounded connections and workers",
    "workers.resident_keys.WINDOWS_DESCRIPTORS": "descriptors of all bounded connections and workers",
}
"""Bounds of one request, one key set or one holder, and constants that clients cannot use up."""


def bounds() -> set[str]:
    """The whole numbers that modules of the service name, except times in seconds."""
    names = set[str]()
    for file in ROOT.rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for statement in ast.parse(file.read_text()).body:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                pairs = zip(_each(target), _each(statement.value), strict=False)
                names |= {
                    f"{module}.{name.id}"
                    for name, value in pairs
                    if isinstance(name, ast.Name) and _whole(value)
                }
    return {name for name in names if not name.endswith(("_S", "SECONDS"))}


def _each(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _whole(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _whole(node.left) and _whole(node.right)
    return isinstance(node, ast.Constant) and type(node.value) is int


def test_every_bound_is_counted_by_holder_or_of_one() -> None:
    unknown = bounds() - SHARED.keys() - SINGLE.keys()
    assert not unknown, "these need an attack in SHARED, or what they bound in SINGLE"
    assert SINGLE.keys() <= bounds()
