"""Requests to one server, which are repeated after a failure in transit."""

import contextlib
import http.client
import json
import random
import time
from collections.abc import Callable, Collection, Mapping
from contextvars import Context
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlsplit

from keywright._reading.documents import Limits, read_json
from keywright.errors.replies import count, identifier, printable, refusal
from keywright.errors.service import (
    BusyError,
    DiskError,
    InvalidReplyError,
    OtherModelError,
    ServeError,
    StorageError,
    UnreachableError,
)
from keywright.model.served.demands import require_address
from keywright.model.served.framing import MODEL

from .connection import CLOSE_S, SLOWEST, connected, current, within

LIMITS = Limits(1 << 20, 1 << 16)
"""Of answers in JSON: a list of 1,024 missing ranges, or of all models of a server."""
POLL_S = 0.05
WAIT_S = 1
"""How long the server waits for the end of an evaluation before it says how far that is."""

STALLED_S = 3600.0
"""How long an evaluation may go on without a step."""

RETRIES = 8
"""How often a request is retried."""

LONGEST_PAUSE_S = 5.0
"""The longest pause before a retry, where the server states none."""

PATIENCE_S = 120.0
"""How long a request is retried as the server asks with Retry-After."""

Progress = Callable[[int, int], object]
Answer = TypeVar("Answer")


class Steps:
    """How far a request's evaluations have come. One that a server lost is repeated: a step that was reached
    before excuses the wait for it, but not what had been waited when the server lost the evaluation.

    Attributes:
        idle: seconds without a step, between answers about evaluations.
    """

    def __init__(self) -> None:
        self._most, self._own, self._lost, self.idle = 0, 0, 0.0, 0.0

    def begin(self) -> None:
        """Note that an evaluation begins."""
        self._own, self._lost = 0, self.idle

    def reach(self, step: int) -> None:
        """Note how far the evaluation is."""
        if step > self._most:
            self._most, self._lost = step, 0.0
        if step > self._own:
            self._own, self.idle = step, self._lost


class Exchange:
    """Requests to one server.

    Thread safety: any number of threads may use one at the same time.

    Args:
        url: URL of the server.
        key: API key, for a server with accounts.
        direct: whether keys may be uploaded to its object storage, see `RemoteModel`.

    Attributes:
        slowest: bytes per second that the server must send or take on average, by default 16 kB, from a
            minute after the beginning of each message and answer; 0 for any number.
        stalled: seconds that the evaluation of a request may wait or go on without a step, by default an
            hour; the last wait for each that the server loses counts, too.

    Raises:
        UnreachableError: the URL is not one of HTTP.
    """

    slowest: float = SLOWEST
    stalled: float = STALLED_S

    def __init__(self, url: str, key: str | None, direct: bool | Collection[str]) -> None:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UnreachableError(
                f"{url!r} is not a server's address; it must begin with http:// or https://"
            )
        self._address = address
        self._host, self._port, self._base = address.hostname, address.port, address.path.rstrip("/")
        self._direct = direct
        self._allowed_hosts = () if isinstance(direct, bool) else tuple(direct)
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def request(
        self, method: str, path: str, body: bytes | None = None, *, limit: int = LIMITS.bytes
    ) -> bytes:
        """Send a request; at most ``limit`` bytes of the answer are read.

        Raises:
            UnreachableError: there is no answer.
            InvalidReplyError: the answer is longer than the limit, or shorter than announced.
            ServeError: a refusal of the server, as its class.
        """
        return self.exchange(method, path, body, limit=limit)[1]

    def exchange(
        self, method: str, path: str, body: bytes | None = None, *, limit: int = LIMITS.bytes, model: str = ""
    ) -> tuple[int, bytes]:
        """The status and the body of an answer; errors as in `request`.

        Args:
            model: hash of the one whose ciphertexts the answer has, if any.

        Raises:
            OtherModelError: the answer is from another model.
        """
        until = current()
        until.require()
        connection = connected(self._address.scheme, self._host, self._port, until, self.slowest)
        length, stack = None, contextlib.ExitStack()
        stack.callback(connection.close)
        try:
            connection.request(method, self._base + path, body, self._headers)
            response = stack.enter_context(connection.getresponse())
            length = response.length
            if length is None:
                # A header that breaks off lacks it, too.
                raise UnreachableError(
                    "the answer of the server has no length; is it keywright serve?", code="truncated"
                )
            if length > limit:
                raise InvalidReplyError(f"the server announces {length} bytes; at most {limit} are expected")
            data = response.read()
        except (http.client.HTTPException, OSError) as error:
            until.require()
            raise broken(error, length, f"{self._host}:{self._port}") from error
        finally:
            stack.close()
        if response.status >= 400:
            raise refusal(response.status, _json(data), response.getheader("Retry-After"))
        if response.status >= 300:
            raise InvalidReplyError(
                f"the server redirects the request (status {response.status}), which this client does not "
                "follow; name the address to which it leads"
            )
        stated = response.getheader(MODEL, "")
        if model and response.status == HTTPStatus.OK and stated != model:
            stated = printable(stated, 64)
            raise OtherModelError(
                f"the answer is from the model {stated or '(none stated)'}, but {model} was asked; ask "
                f"again, and let proxies pass the header {MODEL}",
                found=stated,
                expected=model,
            )
        return response.status, data

    def ask(self, method: str, path: str, entry: Mapping[str, object] | None = None) -> Mapping[str, object]:
        """Send a request whose body and answer are JSON objects; errors as for `request`."""
        body = None if entry is None else json.dumps(entry).encode()
        return object_of(self.request(method, path, body))

    def send(self, method: str, path: str, body: bytes) -> Mapping[str, object]:
        """Send a request whose body is bytes and whose answer is a JSON object; errors as for `request`."""
        return object_of(self.request(method, path, body))

    def write(self, url: str, body: bytes) -> None:
        """Write bytes under an address of the server's object storage, which gets no key of this client.

        Raises:
            StorageError: the address is neither the server's own nor an allowed host's; nothing is
                sent.
            StorageError: direct uploads are off, or the storage does not take the bytes; redirects count as
                that.
        """
        if not self._direct:
            raise StorageError("keys are sent only to the server")
        try:
            target = urlsplit(url)
        except ValueError as error:
            raise StorageError(f"the server gives no address to write to ({error})") from error
        require_address(target, self._address, self._allowed_hosts)
        until = current()
        until.require()
        connection = connected(target.scheme, target.hostname or "", target.port, until, self.slowest)
        try:
            connection.request("PUT", f"{target.path}?{target.query}", body)
            response = connection.getresponse()
            response.read(LIMITS.bytes)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise StorageError(
                f"the object storage does not answer ({printable(str(error), 200)})"
            ) from error
        finally:
            connection.close()
        if not 200 <= response.status < 300:
            raise StorageError(f"the object storage answers with status {response.status}")

    def begin_keys(self, model: str) -> str:
        """Begin the upload of a key set for a model, and return its identifier; errors as for `request`."""
        return identifier(persist(lambda: self.ask("POST", "/v1/keys", {"model": model})), "keys")

    def evaluate(
        self,
        path: str,
        message: bytes,
        limit: int,
        progress: Progress,
        steps: "Steps | None" = None,
        *,
        model: str,
    ) -> bytes:
        """Submit a message to a path of jobs, with a query, and return the server's answer.

        Args:
            steps: of the evaluations of this request that the server has lost, and of this one.
            model: hash of the one that is asked.

        Raises:
            OtherModelError: as for `exchange`.
            UnknownJobError: the server has lost the request.
            UnreachableError: of the code ``stalled`` if the evaluation makes no progress.
            ServeError: as for `request`.
        """
        waiting = f"{path}&wait={WAIT_S}"
        status, data = persist(lambda: self.exchange("POST", waiting, message, limit=limit, model=model))
        if status == HTTPStatus.OK:
            # It ended before the server had to say that it goes on.
            progress(1, 1)
            return data
        job = object_of(data)
        name = identifier(job, "job")
        try:
            self._follow(name, job, progress, Steps() if steps is None else steps)
            result = f"/v1/jobs/{name}/result"
            return persist(lambda: self.exchange("GET", result, limit=limit, model=model)[1])
        except BaseException as error:
            # Interrupted, or without time, nobody waits for it: it would go on, and the caller's next one
            # would wait for it.
            if not isinstance(error, ServeError) or error.code in ("deadline", "stalled"):
                Context().run(self._cancel, name)
            raise

    def _cancel(self, name: str) -> None:
        """Ask the server to end an evaluation, if it answers."""
        with contextlib.suppress(ServeError), within(CLOSE_S):
            self.request("DELETE", f"/v1/jobs/{name}")

    def _follow(self, name: str, job: Mapping[str, object], progress: Progress, steps: "Steps") -> None:
        """Wait for the end of an evaluation; errors as for `evaluate`."""
        begun = time.monotonic()
        steps.begin()
        while job.get("state") in ("waiting", "running"):
            current().require()
            before, begun = begun, time.monotonic()
            steps.idle += begun - before
            if steps.idle > self.stalled:
                raise UnreachableError(
                    f"the evaluation is {job['state']}, and made no step in {self.stalled:g} s; ask again, "
                    "or set the attribute stalled of the model or search to more",
                    code="stalled",
                )
            job = persist(lambda: self.ask("GET", f"/v1/jobs/{name}?wait={WAIT_S}"))
            total = count(job, "total")
            done = min(count(job, "done"), total)
            progress(done, total)
            steps.reach(done + (job.get("state") == "running"))
            if job.get("state") in ("waiting", "running") and time.monotonic() - begun < POLL_S:
                # Too many requests wait there.
                time.sleep(POLL_S)


def broken(error: Exception, length: int | None, address: str) -> ServeError:
    """Return what broke a request to an address, of whose answer ``length`` bytes were announced."""
    match error:
        case ServeError():
            return error
        case http.client.IncompleteRead():
            return UnreachableError(
                f"the answer ends after {len(error.partial)} bytes of {length}; ask again", code="truncated"
            )
        case http.client.RemoteDisconnected():
            return UnreachableError(f"{address} ended the connection ({error})")
        case http.client.HTTPException():
            return InvalidReplyError(f"the answer is not HTTP ({error!r:.200}); is it keywright serve?")
        case _:
            return UnreachableError(f"{address} does not answer ({error})")


def persist(request: Callable[[], Answer]) -> Answer:
    """Retry a request that failed in transit, or that the server had no room for, when it says so."""
    failures, patience, until = 0, time.monotonic() + PATIENCE_S, current()
    while True:
        try:
            answer = request()
            until.refusal = None
            return answer
        except (UnreachableError, BusyError, DiskError) as error:
            if error.code == "deadline":
                raise
            until.refusal = error
            stated = error.retry_after if isinstance(error, BusyError) else 0
            if failures >= RETRIES if stated <= 0 else time.monotonic() + stated > patience:
                raise
            until.require()
            pause = min(POLL_S * 2**failures, LONGEST_PAUSE_S)
            failures += stated <= 0
        # Clients that were refused together do not come back together.
        time.sleep(min(max(pause, stated) * random.uniform(1.0, 1.25), until.left))


def _json(data: bytes) -> object:
    """Parse bytes as JSON; returns None if that fails."""
    try:
        return read_json(data, LIMITS)
    except ValueError:
        return None


def object_of(data: bytes) -> Mapping[str, object]:
    """Parse the answer of a server that is a JSON object.

    Raises:
        InvalidReplyError: it is something else.
    """
    entry = _json(data)
    if not isinstance(entry, dict):
        raise InvalidReplyError("the answer of the server is not a JSON object; is it keywright serve?")
    return entry
