"""The service as an ASGI application: maps paths to calls; ``openapi.json`` describes them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from string import digits

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route

from keywright._reading.documents import Limits, read_json
from keywright.errors.service import BadRequestError, BusyError, LimitError, ServeError, UnauthorizedError
from keywright.serve.jobs.job import Job
from keywright.serve.service import Service
from keywright.serve.tenants.accounts import NOBODY, Accounts
from keywright.serve.uploads.buffers import Share
from keywright.serve.uploads.part_writer import PartWriter

from .admin import CHALLENGE, admin_page, require_operator
from .connection_slots import ASKING, CHECKING, THREADS, Arguments, JobWaiters, Result, Threads
from .connections import CONNECTION
from .pages import Page, accepts_html, front_page
from .request_checks import (
    HOLDER,
    IN_MEMORY_BYTES,
    LOOPBACK,
    Ciphertexts,
    OnRequest,
    Problem,
    RequestChecks,
    address_of,
    answer,
    count_for,
    refused,
)
from .upload_headers import (
    COMPLETE,
    LIMIT,
    OFFSET,
    boolean,
    integer,
    limit,
    require_length,
    require_partial,
    upload_answer,
)

LIMITS = Limits(4096, 1024)
MAX_PART = 8 << 20
"""Maximum bytes of a part that is uploaded by ``PUT``."""

EXPIRE_EVERY_S = 1.0

MAX_WAIT_S = 30
"""Maximum wait for the end of an evaluation, in seconds."""

HOLD_S = 0.25
"""Seconds after which a held evaluation is written to the disk."""

QUICK_BYTES = 256 << 10
"""Maximum bytes of a message that is scanned on the event loop."""

SETTLE_S = 1.0
"""How long a request for an upload's state waits for the range that is being written. All bytes that arrived
before a connection broke must count."""


def application(
    service: Service,
    *,
    page: Page | None = None,
    names: frozenset[str] = frozenset(),
    on_request: OnRequest | None = None,
) -> RequestChecks:
    """Return the ASGI application of a service.

    Args:
        service: the service.
        page: the result of `load_page`.
        names: host names that requests may use, in addition to the loopback's.
        on_request: called with method, path, status, bytes received and sent, and seconds.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_expire, service)
            yield
            tasks.cancel_scope.cancel()

    # Starlette would call a function that is no coroutine in a thread of its own, which waits for no turn.
    async def refuse(request: Request, error: Exception) -> Response:
        known, headers = refused(error), error.headers if isinstance(error, HTTPException) else None
        if known.code == "no_such_method" and not any(
            route.matches(request.scope)[0] != Match.NONE for route in routes[:-1]
        ):
            # An unknown path may be a file of the page, which only supports GET.
            known, headers = (
                BadRequestError(str(refused(HTTPException(HTTPStatus.NOT_FOUND))), code="no_such_path"),
                None,
            )
        service.metrics.count("refusals_total", code=known.code)
        return Problem(known, headers)

    calls = Routes(service, page or {})
    routes = [Route(path, call.__get__(calls), methods=[method]) for path, method, call in ROUTES]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (ServeError, HTTPException, ClientDisconnect, OSError, Exception), refuse
        ),
    )
    return RequestChecks(app, names, on_request, service.tell, service.metrics)


async def _expire(service: Service) -> None:
    while True:
        try:
            await run_sync(service.expire)
        except OSError as error:
            service.tell(f"expired keys and answers could not be deleted: {error}")
        await anyio.sleep(EXPIRE_EVERY_S)


async def _piece(data: bytes, start: int, length: int) -> bytes:
    return data[start : start + length]


class Routes:
    """One method for each route."""

    def __init__(self, service: Service, page: Page) -> None:
        self._service, self._page, self._waiters = service, page, JobWaiters()
        self._threads, self._checking, self._asking = Threads(THREADS), Threads(CHECKING), Threads(ASKING)

    async def _run(
        self, request: Request, call: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Run a call of a request in a thread."""
        return await self._threads.run(request.scope[HOLDER], call, *arguments)

    async def _tenant(self, request: Request) -> str:
        accounts = self._service.accounts
        authorization = request.headers.get("authorization")
        if accounts is None:
            return NOBODY
        tenant = accounts.known(authorization)
        if tenant is None:
            tenant = await self._authenticate(request, accounts, accounts.tenant)
        count_for(request.scope, tenant)
        return tenant

    async def _authenticate(
        self, request: Request, accounts: Accounts, call: Callable[[str | None], str]
    ) -> str:
        """Return the tenant of a request's credentials. Those that may wait for the issuer have threads of
        their own."""
        authorization = request.headers.get("authorization")
        threads = self._asking if accounts.asks(authorization) else self._threads
        return await threads.run(request.scope[HOLDER], call, authorization)

    async def health(self, request: Request) -> Response:
        """``GET /health``."""
        return answer(self._service.health())

    async def ready(self, request: Request) -> Response:
        """``GET /ready``."""
        return answer(self._service.readiness())

    async def metrics(self, request: Request) -> Response:
        """``GET /metrics``: for admins if there are accounts. A tenant that reads the totals could subtract
        its own bytes and learn the bytes of others."""
        if self._service.accounts is not None:
            accounts = self._service.accounts
            await self._authenticate(request, accounts, accounts.admin)
        return Response(self._service.measure(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def admin(self, request: Request) -> Response:
        """``GET /admin``: a browser asks its user for a key if the request is refused."""
        try:
            accounts = self._service.accounts
            if accounts is None:
                require_operator(request, self._service.operator_key, LOOPBACK)
            else:
                await self._authenticate(request, accounts, accounts.admin)
        except UnauthorizedError as error:
            self._service.metrics.count("refusals_total", code=error.code)
            return Problem(error, CHALLENGE)
        return admin_page(await self._run(request, self._service.overview))

    async def manifest(self, request: Request) -> Response:
        """``GET /v1/model``."""
        return _manifest(self._service.manifest())

    async def models(self, request: Request) -> Response:
        """``GET /v1/models``."""
        return answer(self._service.models())

    async def manifest_of(self, request: Request) -> Response:
        """``GET /v1/models/HASH``."""
        return _manifest(self._service.manifest(_name(request, "model")))

    async def configuration(self, request: Request) -> Response:
        """``GET /v1/configurations/ID``."""
        return answer(self._service.configuration(_name(request, "configuration")))

    async def create_keys(self, request: Request) -> Response:
        """``POST /v1/keys``; with ``Upload-Complete`` and ``?model=HASH`` the body starts an upload."""
        complete = boolean(request.headers, COMPLETE)
        if complete is not None:
            return await self._create_upload(request, complete)
        tenant, entry = await self._tenant(request), _parse(await _body(request, LIMITS.bytes))
        create, address = self._service.create_keys, address_of(request.scope)
        return answer(await self._run(request, create, entry, tenant, address), HTTPStatus.CREATED)

    async def key_sets(self, request: Request) -> Response:
        """``GET /v1/keys``."""
        return answer(self._service.key_sets(await self._tenant(request)))

    async def keys(self, request: Request) -> Response:
        """``GET /v1/keys/ID``."""
        name, tenant = _name(request, "keys"), await self._tenant(request)
        await self._settle(name, tenant)
        return upload_answer(self._service.keys(name, tenant), self._service.key_lifetime())

    async def _settle(self, name: str, tenant: str) -> None:
        """Wait briefly for the ranges that are being written."""
        deadline = anyio.current_time() + SETTLE_S
        while not self._service.is_settled(name, tenant) and anyio.current_time() < deadline:
            await anyio.sleep(SETTLE_S / 20)

    async def receive_part(self, request: Request) -> Response:
        """``PUT /v1/keys/ID/parts?offset=N``: a part at any offset; several may arrive at once."""
        offset, length = _offset(request), _announced(request, MAX_PART)
        name, tenant = _name(request, "keys"), await self._tenant(request)
        begin = partial(self._service.begin_part, name, offset, length, tenant, anywhere=True)
        return answer(await self._receive(request, begin))

    async def grant_part(self, request: Request) -> Response:
        """``POST /v1/keys/ID/direct?offset=N&length=N``: returns an address of the object storage."""
        _announced(request, 0)
        offset, length = _offset(request), _number(request, "length")
        name, tenant = _name(request, "keys"), await self._tenant(request)
        grant = await self._run(request, self._service.grant_part, name, offset, length, tenant)
        return answer(grant, HTTPStatus.CREATED)

    async def take_part(self, request: Request) -> Response:
        """``PUT /v1/keys/ID/direct?offset=N``: takes over a part that the client has written."""
        _announced(request, 0)
        offset = _offset(request)
        name, tenant = _name(request, "keys"), await self._tenant(request)
        writer = await self._run(request, self._service.take_part, name, offset, tenant)
        try:
            return answer(await self._end_part(request, writer))
        finally:
            writer.close()

    @asynccontextmanager
    async def _room(self, request: Request, size: int) -> AsyncIterator[Share]:
        """Reserve memory for a body that arrives within the context.

        Raises:
            BusyError: no memory is free, or another client needs it.
        """
        loop, holder = asyncio.get_running_loop(), request.scope[HOLDER]
        with anyio.CancelScope() as scope:
            with self._service.buffers.share(
                holder, size, lambda: loop.call_soon_threadsafe(scope.cancel)
            ) as share:
                yield share
        if scope.cancelled_caught:
            raise BusyError("too many requests arrive at a time; ask again soon", retry_after=1)

    async def _receive(self, request: Request, begin: Callable[[], PartWriter]) -> dict[str, object]:
        """Write a range while it arrives, buffered in chunks of the size that the storage prefers."""
        most = self._service.store.objects.buffer_bytes
        writer, buffer = await self._run(request, begin), bytearray()
        try:
            if (connection := request.scope.get(CONNECTION)) is not None:
                await anyio.sleep(connection.pause(writer.end - writer.at))
            async with self._room(request, min(most, writer.end - writer.at)):
                await self._write(request, writer, buffer, most)
            return await self._end_part(request, writer)
        finally:
            writer.close()

    async def _end_part(self, request: Request, writer: PartWriter) -> dict[str, object]:
        """End a range. Holders take turns with the check of a whole set."""
        threads = self._checking if writer.uploaded.whole else self._threads
        return await threads.run(request.scope[HOLDER], self._service.end_part, writer)

    async def _write(self, request: Request, writer: PartWriter, buffer: bytearray, most: int) -> None:
        try:
            async for data in request.stream():
                buffer += data
                if len(buffer) >= most:
                    await self._run(request, writer.append, bytes(buffer))
                    buffer.clear()
        finally:
            with anyio.CancelScope(shield=True):
                if buffer:
                    await self._run(request, writer.append, bytes(buffer))

    async def upload_limits(self, request: Request) -> Response:
        """``OPTIONS /v1/keys``: states that uploads are resumable, and their maximum length."""
        limits = limit(self._service.longest_keys(), self._service.key_lifetime())
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={LIMIT: limits})

    async def upload_state(self, request: Request) -> Response:
        """``HEAD /v1/keys/ID``: ends a request that is still appending, because its client has abandoned
        it."""
        name, tenant = _name(request, "keys"), await self._tenant(request)
        await self._run(request, self._service.interrupt, name, tenant)
        return upload_answer(self._service.keys(name, tenant), self._service.key_lifetime())

    async def append_keys(self, request: Request) -> Response:
        """``PATCH /v1/keys/ID``: the next bytes."""
        name, tenant = _name(request, "keys"), await self._tenant(request)
        # Reveal nothing else about an upload that does not exist.
        self._service.keys(name, tenant)
        require_partial(request.headers)
        offset = integer(request.headers, OFFSET)
        if offset is None:
            raise BadRequestError("Upload-Offset is missing; it says at which byte the content begins")
        await self._run(request, self._service.interrupt, name, tenant)
        return await self._append(request, self._service.keys(name, tenant), offset, tenant)

    async def _create_upload(self, request: Request, complete: bool) -> Response:
        """Start an upload with its first bytes, if there are any."""
        tenant = await self._tenant(request)
        model = request.query_params.get("model", self._service.model.hash)
        require_length(request.headers, 0, self._service.bytes_of_keys(model), complete=complete)
        create, address = self._service.create_keys, address_of(request.scope)
        entry = await self._run(request, create, {"model": model}, tenant, address)
        return await self._append(request, entry, 0, tenant, HTTPStatus.CREATED)

    async def _append(
        self,
        request: Request,
        entry: Mapping[str, object],
        offset: int,
        tenant: str,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:
        """Append the content of a request to an upload, with the answers of the draft."""
        complete = boolean(request.headers, COMPLETE) or False
        total = int(str(entry["bytes"]))
        length = require_length(request.headers, offset, total, complete=complete)
        name = str(entry["keys"])
        begin = partial(self._service.begin_part, name, offset, length, tenant)
        state = await self._receive(request, begin)
        return upload_answer(state, self._service.key_lifetime(), status)

    async def delete_keys(self, request: Request) -> Response:
        """``DELETE /v1/keys/ID``, or ``POST /v1/keys/ID/delete``, which a page sends when it closes."""
        _announced(request, 0)
        name, tenant = _name(request, "keys"), await self._tenant(request)
        return answer(await self._run(request, self._service.delete_keys, name, tenant))

    async def seen(self, request: Request) -> Response:
        """``GET /v1/keys/ID/seen``."""
        return answer(self._service.seen(_name(request, "keys"), await self._tenant(request)))

    async def submit(self, request: Request) -> Response:
        """``POST /v1/keys/ID/jobs?model=HASH&priority=N&first=N&samples=N&wait=SECONDS``."""
        name, tenant = _name(request, "keys"), await self._tenant(request)
        size = _announced(request, self._service.request_bytes())
        model, priority = request.query_params.get("model"), request.query_params.get("priority", "0")
        if len(priority) != 1 or priority not in digits:
            raise BadRequestError("?priority= must be one digit")
        places = _places(request)
        self._service.require_accepting()
        wait = _wait(request)
        evaluations = self._service.evaluations
        held = wait > 0 and evaluations.holds(size)
        with evaluations.admit(name, size, model, int(priority), tenant, places) as admitted:
            async with self._room(request, size) as share:
                message = await request.body()
                share.complete = True
                call = partial(evaluations.take, admitted, message, held=held)
                # Scanning a short message takes less time than starting a thread for it.
                job = call() if held and size <= QUICK_BYTES else await self._run(request, call)
        return await (self._hold(request, job, wait) if held else self._wait(request, job, wait))

    async def _hold(self, request: Request, job: Job, wait: int) -> Response:
        """Return the answer of a held job that ends soon. Otherwise write the job to the disk and
        wait for it."""
        evaluations = self._service.evaluations
        try:
            await self._end_of(request, job, HOLD_S)
            if job.state not in ("done", "failed"):
                await self._run(request, evaluations.keep, job)
            if not job.held:
                return await self._wait(request, job, wait)
            await self._end_of(request, job, MAX_WAIT_S)
            return self._held_answer(request, job, evaluations.release(job))
        finally:
            evaluations.abandon(job)

    async def _wait(self, request: Request, job: Job, wait: int) -> Response:
        """Return the answer of a job that ends within ``wait`` seconds, otherwise the state of the job. A
        request that does not wait always gets the state, even if the job has ended."""
        await self._end_of(request, job, wait)
        if not wait or job.state != "done":
            return answer(job.to_json(), HTTPStatus.ACCEPTED)
        return self._stored_answer(request, job)

    def _stored_answer(self, request: Request, job: Job) -> Response:
        """Return the answer of a job that is done, in pieces from the storage."""
        size, result = job.answer_bytes, self._service.evaluations.result
        read = partial(self._run, request, result, job.identifier, job.tenant)
        return Ciphertexts(job.model, size, read, self._room(request, min(size, IN_MEMORY_BYTES)))

    def _held_answer(self, request: Request, job: Job, data: bytes) -> Response:
        """Return an answer that is in memory alone."""
        return Ciphertexts(job.model, len(data), partial(_piece, data), self._room(request, len(data)))

    async def _end_of(self, request: Request, job: Job, seconds: float) -> None:
        """Wait for the end of a job, for at most ``seconds``.

        Raises:
            UnknownJobError: it was deleted meanwhile, as by the deletion of its keys.
        """
        if seconds > 0 and job.state in ("waiting", "running"):
            with (
                self._waiters.waiter(request.scope[HOLDER]) as waiter,
                self._service.evaluations.watched(job, waiter.tell),
                anyio.move_on_after(seconds),
            ):
                # The job may have ended before the wait began.
                if job.state in ("waiting", "running"):
                    await waiter.ended.wait()
        self._service.evaluations.job(job.identifier, job.tenant)

    async def job(self, request: Request) -> Response:
        """``GET /v1/jobs/JOB?wait=SECONDS``."""
        name, tenant = _name(request, "job"), await self._tenant(request)
        wait = _wait(request)
        job = self._service.evaluations.job(name, tenant)
        if wait:
            await self._end_of(request, job, wait)
        return answer(job.to_json())

    async def cancel(self, request: Request) -> Response:
        """``DELETE /v1/jobs/JOB``."""
        _announced(request, 0)
        name, tenant = _name(request, "job"), await self._tenant(request)
        return answer(await self._run(request, self._service.evaluations.cancel, name, tenant))

    async def result(self, request: Request) -> Response:
        """``GET /v1/jobs/JOB/result``."""
        name, tenant = _name(request, "job"), await self._tenant(request)
        job = self._service.evaluations.job(name, tenant)
        if job.state != "done":
            # This raises why there is no answer.
            await self._run(request, self._service.evaluations.result, name, tenant, 0, 0)
        return self._stored_answer(request, job)

    async def page(self, request: Request) -> Response:
        """Return a file of the page, from memory. Without a page, a browser gets a description."""
        path = _name(request, "path")
        if not self._page and not path and accepts_html(request):
            return front_page(self._service, request)
        file = self._page.get("/" + path)
        if file is None:
            raise BadRequestError(
                "there is no such page here; the service is under /v1/", code="no_such_path"
            )
        return Response(file[1], media_type=file[0])


ROUTES: tuple[tuple[str, str, Callable[[Routes, Request], Awaitable[Response]]], ...] = (
    ("/health", "GET", Routes.health),
    ("/ready", "GET", Routes.ready),
    ("/metrics", "GET", Routes.metrics),
    ("/admin", "GET", Routes.admin),
    ("/v1/model", "GET", Routes.manifest),
    ("/v1/models", "GET", Routes.models),
    ("/v1/models/{model}", "GET", Routes.manifest_of),
    ("/v1/configurations/{configuration}", "GET", Routes.configuration),
    ("/v1/keys", "POST", Routes.create_keys),
    ("/v1/keys", "GET", Routes.key_sets),
    ("/v1/keys", "OPTIONS", Routes.upload_limits),
    ("/v1/keys/{keys}", "HEAD", Routes.upload_state),
    ("/v1/keys/{keys}", "GET", Routes.keys),
    ("/v1/keys/{keys}", "PATCH", Routes.append_keys),
    ("/v1/keys/{keys}/parts", "PUT", Routes.receive_part),
    ("/v1/keys/{keys}/direct", "POST", Routes.grant_part),
    ("/v1/keys/{keys}/direct", "PUT", Routes.take_part),
    ("/v1/keys/{keys}", "DELETE", Routes.delete_keys),
    ("/v1/keys/{keys}/delete", "POST", Routes.delete_keys),
    ("/v1/keys/{keys}/seen", "GET", Routes.seen),
    ("/v1/keys/{keys}/jobs", "POST", Routes.submit),
    ("/v1/jobs/{job}", "GET", Routes.job),
    ("/v1/jobs/{job}", "DELETE", Routes.cancel),
    ("/v1/jobs/{job}/result", "GET", Routes.result),
    ("/{path:path}", "GET", Routes.page),
)
"""Path, method, and what answers, in the order in which they are tried; the last has all other paths."""


def _manifest(data: bytes) -> Response:
    """Return the manifest of a model, or the directory of an index."""
    kind = "application/json" if data.startswith(b"{") else "application/octet-stream"
    return Response(data, media_type=kind)


def _name(request: Request, what: str) -> str:
    return str(request.path_params[what])


def _wait(request: Request) -> int:
    """Return the seconds of ``?wait=``."""
    wait = request.query_params.get("wait", "0")
    if not (wait.isascii() and wait.isdigit() and len(wait) < 3 and int(wait) <= MAX_WAIT_S):
        raise BadRequestError(f"?wait= must be 0 to {MAX_WAIT_S} seconds, got {wait[:8]!r}")
    return int(wait)


def _places(request: Request) -> range | None:
    """Return the samples' places that ``?first=`` and ``?samples=`` select."""
    texts = [request.query_params.get(name) for name in ("first", "samples")]
    if texts == [None, None]:
        return None
    if not all(text is not None and text.isascii() and text.isdigit() and len(text) < 7 for text in texts):
        raise BadRequestError("?first= and ?samples= must be given together, as numbers")
    first, samples = (int(text or 0) for text in texts)
    return range(first, first + samples)


def _offset(request: Request) -> int:
    """Return the offset of a part."""
    return _number(request, "offset")


def _number(request: Request, name: str) -> int:
    """Return a number of bytes from the query."""
    number = request.query_params.get(name, "")
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise BadRequestError(f"?{name}= is missing or not a number of bytes: {number[:20]!r}")
    return int(number)


def _announced(request: Request, maximum: int) -> int:
    """Return the length of the body, if it is within the maximum."""
    length = int(request.headers.get("content-length", "0"))
    if length > maximum:
        raise LimitError(
            f"{length} bytes were announced; at most {maximum} are accepted here",
            value=length,
            maximum=maximum,
        )
    return length


async def _body(request: Request, maximum: int) -> bytes:
    """Return the whole body."""
    _announced(request, maximum)
    return await request.body()


def _parse(body: bytes) -> Mapping[str, object]:
    try:
        entry = read_json(body, LIMITS)
        # Half of a surrogate pair is valid JSON but not valid text: it could be neither sent nor logged.
        json.dumps(entry, ensure_ascii=False).encode()
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise BadRequestError("the body is not a JSON object")
    return entry
