"""Attacks of one holder with many key sets, one for each bound of what the clients of a service share."""

from __future__ import annotations

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

import keywright.serve.service as service_module
import pytest
from keywright.errors.service import BusyError, LimitError, UnknownKeysError
from keywright.model import Model
from keywright.serve import Service
from keywright.serve.http import connection_slots
from keywright.serve.http.app import application
from keywright.serve.http.connection_slots import ConnectionSlots, JobWaiters, Pace, Slot, Threads
from keywright.serve.jobs import queue as jobs_module
from keywright.serve.jobs.job import Job
from keywright.serve.jobs.queue import Jobs
from keywright.serve.service import ServiceLimits
from keywright.serve.storage import open_storage
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.holders import holder_of
from keywright.serve.tenants.quotas import Quota, Quotas
from keywright.serve.uploads import eviction
from keywright.serve.uploads.uploaded import STALLED_S
from keywright.serve.workers.resident_keys import ResidentKeys
from tests.serve.network import WORKERS

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
    slots, lost = ConnectionSlots(8), list[str]()
    for _ in range(20):
        slots.enter(Slot(lambda: lost.append("evil"), EVIL))
    slots.enter(Slot(lambda: lost.append("honest"), HONEST))
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
    waits.join()
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
            go.wait()

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
    "uploads.buffers.MAX_CONNECTIONS": _connections,
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
