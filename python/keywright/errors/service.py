"""The exceptions of a service and its clients: each has a code, and a class that programs catch.

A refusal travels as problem details (RFC 9457) with the HTTP status of its code (`REFUSALS`). The member
``error`` is ``{"type": code, "message": sentence, "details": {...}}``. `replies.refusal` turns such a reply
back into the exception, so that a client raises the same exception as the server.
"""

from http import HTTPStatus

from .engine import KeywrightError

PROBLEMS = "https://iana.org/assignments/http-problem-types#"
"""Base of the problem types of the resumable-upload draft."""


class ServeError(KeywrightError):
    """Base of a service's refusals and of failures between a client and a service (``failed`` if it is
    unexpected; the operator's log has more).

    What to do: read the message; `code` is what the server sent.

    Attributes:
        code: the kind of error, in JSON.
        details: numbers and names of this case, in JSON.
    """

    code: str = "failed"

    processor: float = 0.0
    """Processor seconds that a worker used before it refused; 0 for other errors."""

    unforeseen: str = ""
    """The traceback of an unexpected exception, or the text of one for the operator; never sent."""

    def __init__(self, message: str, *, code: str | None = None, **details: str | float) -> None:
        super().__init__(message, code=code, **details)
        self.details = details

    @property
    def status(self) -> HTTPStatus:
        """Return the HTTP status of the reply."""
        entry = REFUSALS.get(self.code)
        return HTTPStatus.INTERNAL_SERVER_ERROR if entry is None else entry[0]

    @property
    def headers(self) -> dict[str, str]:
        """Return the header fields of the reply."""
        seconds = self.details.get("retry_after", 0)
        return {"Retry-After": str(seconds)} if seconds else {}

    def to_json(self) -> dict[str, object]:
        """Return the body of a reply: problem details with the member that clients read."""
        return {
            "type": f"urn:keywright:{self.code}",
            "title": self.code.replace("_", " "),
            "status": int(self.status),
            "detail": str(self),
            **self.reason(),
        }

    def reason(self) -> dict[str, object]:
        """Return code, sentence and details, the member ``error``."""
        return {"error": {"type": self.code, "message": str(self), "details": self.details}}


class ConfigurationError(ServeError, ValueError):
    """A service cannot start as configured; the code says why.

    * ``accounts_file``, ``quotas_file``: the file is malformed.
    * ``certificate``: the files cannot be read, or the certificate has another key.
    * ``issuer``: the address of the token issuer is unprotected, or a name is empty.
    * ``state_folder``: another process serves the state, or it is the state of something else.

    What to do: correct the file or option that the message names.
    """

    code = "accounts_file"


class BadRequestError(ServeError, ValueError):
    """A request that cannot be answered; the code says why.

    * ``bad_request``: the request is malformed, or has no length.
    * ``head_too_large``: its path, query and headers have too many bytes or lines.
    * ``no_such_path``, ``no_such_method``: the service has no such path, or the path no such method.
    * ``wrong_host``: the host name is not this server's, as in a request of another site's page.

    What to do: correct the request: `keywright.client` sends none of these.

    Attributes:
        found: the host name (``wrong_host``).
    """

    code = "bad_request"
    found: str = ""


class UnauthorizedError(ServeError):
    """A request that its sender is not allowed to make.

    * ``unauthorized``: it has no valid API key of the server.
    * ``forbidden``: it is for the operator's page, and its tenant is not an admin.

    What to do: send a key of this server, or ask its operator for one.
    """

    code = "unauthorized"

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that asks for a key."""
        return {"www-authenticate": "Bearer"} if self.code == "unauthorized" else {}


class UploadError(ServeError, ValueError):
    """An upload of keys that cannot continue, or is not complete.

    * ``bad_request``: the announced length differs from the length of the model's keys.
    * ``keys_incomplete``: a request came before the whole set.
    * ``wrong_offset``: bytes that do not begin where the upload continues.

    What to do: ask how much has arrived, and continue there, as clients of this package do.

    Attributes:
        found: offset of the bytes, or the announced length.
        received: bytes that have arrived.
        expected: bytes of the whole set.
    """

    code = "wrong_offset"
    found: int = 0
    received: int = 0
    expected: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that say that the upload is incomplete, and where it continues."""
        incomplete = {"Upload-Complete": "?0"}
        match self.code:
            case "wrong_offset":
                return {"Upload-Offset": str(self.received)} | incomplete
            case "bad_request":
                return incomplete
            case _:
                return super().headers

    def to_json(self) -> dict[str, object]:
        """Return the problem that the resumable-upload draft defines."""
        match self.code:
            case "wrong_offset":
                return super().to_json() | {
                    "type": f"{PROBLEMS}mismatching-upload-offset",
                    "expected-offset": self.received,
                    "provided-offset": self.found,
                }
            case "bad_request":
                return super().to_json() | {"type": f"{PROBLEMS}inconsistent-upload-length"}
            case _:
                return super().to_json()


class LimitError(ServeError, ValueError):
    """More than the service, a tenant or a client accepts; nothing was read, allocated or made.

    * ``too_large``: more bytes than the service accepts.
    * ``quota_bytes``, ``quota_seconds``: the tenant's stored bytes, or its processor seconds of the day.
    * ``demand``: a server, or a model's folder, asks a client for more than the client's limits.

    What to do: send less, wait for ``retry_after`` seconds, or raise the limit that the message names.

    Attributes:
        what: name of the limit (``demand``): ``key_bytes``, ``key_count``, ``key_sets`` or ``message_bytes``.
        value: the bytes sent, the bytes that the tenant would store, or the requested value.
        used: seconds used (``quota_seconds``).
        maximum: the limit.
        retry_after: seconds until there may be room, or until the next day; 0 if waiting does not help.
    """

    code = "too_large"
    what: str = ""
    value: int = 0
    used: float = 0.0
    maximum: float = 0.0
    retry_after: int = 0


class EvaluationError(ServeError):
    """An evaluation that has no answer.

    * ``evaluation_failed``: the program could not be evaluated on these ciphertexts.
    * ``cancelled``: the client cancelled it.
    * ``not_done``: it has not finished.

    What to do: ask again later (``not_done``), or check that keys and ciphertexts belong to the model.
    """

    code = "evaluation_failed"


class SecretRefusedError(ServeError, ValueError):
    """Bytes that look like a secret key were sent (``secret_refused``). They were deleted.

    What to do: treat the key as compromised, and make new ones.
    """

    code = "secret_refused"


class InvalidObjectError(ServeError, ValueError):
    """Keys or ciphertexts that are damaged, or that belong to other parameters or another model
    (``invalid_object``).

    What to do: make keys and ciphertexts with the model of this server.
    """

    code = "invalid_object"


class OtherModelError(ServeError, ValueError):
    """Keys or a request for a model that this server does not serve (``other_model``).

    What to do: fetch the model from the server, if you trust it, or connect to the server of this model.

    Attributes:
        found: hash of the requested model.
        expected: hash of the served model.
    """

    code = "other_model"
    found: str = ""
    expected: str = ""


class RetiredError(ServeError):
    """A model or key configuration that was served earlier (``retired``).

    What to do: use the successor, as clients of this package do if it has the same inputs and outputs.

    Attributes:
        found: hash of the model, or identifier of the configuration.
        successor: hash of the served model of the same name, empty if there is none.
        configuration: of the successor's keys. If it is the same, the client can reuse its keys.
    """

    code = "retired"
    found: str = ""
    successor: str = ""
    configuration: str = ""


class UnknownKeysError(ServeError, LookupError):
    """No key set has this identifier: it never existed, was deleted, expired, or was evicted
    (``unknown_keys``).

    What to do: upload them again, as clients of this package do.
    """

    code = "unknown_keys"


class UnknownJobError(ServeError, LookupError):
    """No evaluation has this identifier: it never existed, or was evicted (``unknown_job``).

    What to do: send the request again, as clients of this package do.
    """

    code = "unknown_job"


class StorageError(ServeError):
    """A client cannot write to the object storage of a server; the code says why.

    * ``storage``: the storage refuses the client's data.
    * ``no_direct_uploads``: the server has no storage to which clients can write.
    * ``foreign_address``: the server asked a client to write to an address that is neither its own nor that
      of an allowed host; nothing was sent there.

    What to do: send the keys through the server, or allow the host.

    Attributes:
        found: host and port of the address (``foreign_address``).
    """

    code = "storage"
    found: str = ""


class BusyError(ServeError):
    """A server that has no room now.

    * ``busy``: the queue of requests, uploads or evaluations is full, or memory is in use.
    * ``issuer_unreachable``: the issuer of tokens does not answer.

    What to do: ask again after ``retry_after`` seconds.

    Attributes:
        retry_after: seconds after which to retry, 0 if unknown.
    """

    code = "busy"
    retry_after: int = 0


class DiskError(ServeError):
    """The disk of the server is full, or fails (``disk``). Accepted work is kept and runs when there is room.

    What to do: make room on the disk of the server.
    """

    code = "disk"


class UnreachableError(ServeError, OSError):
    """No answer of a server; uploaded bytes are kept.

    * ``unreachable``: no server answers, or the connection broke.
    * ``truncated``: it broke within an answer.
    * ``deadline``: the call took longer than its ``deadline=``.
    * ``slow``: the server sends or takes too few bytes per second, see `RemoteModel.slowest`.
    * ``stalled``: an evaluation makes no step, see `RemoteModel.stalled`.

    What to do: check the address and the network, and call again.
    """

    code = "unreachable"


class InvalidReplyError(ServeError, ValueError):
    """A malformed or truncated answer of a server (``invalid_reply``).

    What to do: check that keywright serve of this version listens at the address.
    """

    code = "invalid_reply"


class WrongAnswerError(ServeError, ValueError):
    """A spot check found a wrong answer (``wrong_answer``): see `keywright.client.SpotChecks`.

    What to do: trust no answer of this server until its operator has found the cause.

    Attributes:
        difference: error of an output.
        tolerance: allowed error.
    """

    code = "wrong_answer"
    difference: float = 0.0
    tolerance: float = 0.0


class WorkerEndedError(ServeError):
    """A worker of a server ended, or was killed.

    * ``worker_ended``: during its task.
    * ``not_begun``: before it began the task, which therefore does not count as an attempt.

    What to do: look at the server's memory and log.
    """

    code = "worker_ended"


REFUSALS: dict[str, tuple[HTTPStatus, type[ServeError]]] = {
    "bad_request": (HTTPStatus.BAD_REQUEST, BadRequestError),
    "head_too_large": (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, BadRequestError),
    "no_such_path": (HTTPStatus.NOT_FOUND, BadRequestError),
    "no_such_method": (HTTPStatus.METHOD_NOT_ALLOWED, BadRequestError),
    "wrong_host": (HTTPStatus.FORBIDDEN, BadRequestError),
    "unauthorized": (HTTPStatus.UNAUTHORIZED, UnauthorizedError),
    "forbidden": (HTTPStatus.FORBIDDEN, UnauthorizedError),
    "issuer_unreachable": (HTTPStatus.SERVICE_UNAVAILABLE, BusyError),
    "too_large": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, LimitError),
    "quota_bytes": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, LimitError),
    "quota_seconds": (HTTPStatus.TOO_MANY_REQUESTS, LimitError),
    "secret_refused": (HTTPStatus.BAD_REQUEST, SecretRefusedError),
    "invalid_object": (HTTPStatus.BAD_REQUEST, InvalidObjectError),
    "other_model": (HTTPStatus.CONFLICT, OtherModelError),
    "retired": (HTTPStatus.GONE, RetiredError),
    "unknown_keys": (HTTPStatus.NOT_FOUND, UnknownKeysError),
    "unknown_job": (HTTPStatus.NOT_FOUND, UnknownJobError),
    "wrong_offset": (HTTPStatus.CONFLICT, UploadError),
    "keys_incomplete": (HTTPStatus.CONFLICT, UploadError),
    "not_done": (HTTPStatus.CONFLICT, EvaluationError),
    "busy": (HTTPStatus.SERVICE_UNAVAILABLE, BusyError),
    "no_direct_uploads": (HTTPStatus.NOT_FOUND, StorageError),
    "evaluation_failed": (HTTPStatus.UNPROCESSABLE_ENTITY, EvaluationError),
    "cancelled": (HTTPStatus.INTERNAL_SERVER_ERROR, EvaluationError),
    "disk": (HTTPStatus.INSUFFICIENT_STORAGE, DiskError),
}
"""Refusals of a server by code: the HTTP status and the class."""
