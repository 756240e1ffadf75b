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
    """Base of a service's refusals and of failures between a client and a service.

    Attributes:
        code: the kind of error, in JSON.
        details: numbers and names of this case, in JSON.
    """

    code: str = "failed"

    processor: float = 0.0
    """Processor seconds that a worker used before it refused; 0 for other errors."""

    def __init__(self, message: str, *, code: str | None = None, **details: str | float) -> None:
        super().__init__(message, **details)
        self.code, self.details = code or type(self).code, details

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
    """

    code = "configuration"


class BadRequestError(ServeError, ValueError):
    """A request that cannot be answered; the code says why.

    * ``bad_request``: the request is malformed, or has no length.
    * ``no_such_path``, ``no_such_method``: the service has no such path, or the path no such method.
    * ``wrong_host``: the host name is not this server's, as in a request of another site's page.

    Attributes:
        found: the host name (``wrong_host``).
    """

    code = "bad_request"
    found: str = ""


class LengthError(ServeError, ValueError):
    """The announced length of an upload differs from the length of the model's keys.

    Attributes:
        found: announced bytes.
        expected: bytes of the keys.
    """

    code = "bad_request"

    found: int = 0
    expected: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that says that the upload is incomplete."""
        return {"Upload-Complete": "?0"}

    def to_json(self) -> dict[str, object]:
        """Return the problem that the resumable-upload draft defines."""
        return super().to_json() | {"type": f"{PROBLEMS}inconsistent-upload-length"}


class UnauthorizedError(ServeError):
    """A request without a valid API key of the server, or (``forbidden``) one for the operator's page by a
    tenant that is not an admin."""

    code = "unauthorized"

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that asks for a key."""
        return {"www-authenticate": "Bearer"} if self.code == "unauthorized" else {}


class TooLargeError(ServeError, ValueError):
    """More bytes than the service accepts; nothing was read or allocated.

    Attributes:
        value: the bytes.
        maximum: the maximum.
    """

    code = "too_large"
    value: int = 0
    maximum: int = 0


class QuotaError(ServeError):
    """A tenant's quota is exhausted: stored bytes (``quota_bytes``) or processor seconds of the day
    (``quota_seconds``).

    Attributes:
        value: bytes that the tenant would store.
        used: seconds used.
        maximum: the tenant's quota, in bytes or seconds.
        retry_after: seconds until there may be room, or until the next day; 0 if waiting does not help.
    """

    code = "quota_bytes"
    value: int = 0
    used: float = 0.0
    maximum: float = 0.0
    retry_after: int = 0


class SecretRefusedError(ServeError, ValueError):
    """Bytes that look like a secret key were sent. They were deleted; treat the key as compromised."""

    code = "secret_refused"


class InvalidObjectError(ServeError, ValueError):
    """Keys or ciphertexts that are damaged, of other parameters, or not those that the model takes."""

    code = "invalid_object"


class OtherModelError(ServeError, ValueError):
    """Keys or a request for a model that this server does not serve.

    Attributes:
        found: hash of the requested model.
        expected: hash of the served model.
    """

    code = "other_model"
    found: str = ""
    expected: str = ""


class RetiredError(ServeError):
    """A model or key configuration that was served earlier.

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
    """No key set has this identifier: it never existed, was deleted, expired, or was evicted."""

    code = "unknown_keys"


class UnknownJobError(ServeError, LookupError):
    """No evaluation has this identifier: it never existed, or was evicted."""

    code = "unknown_job"


class WrongOffsetError(ServeError, ValueError):
    """Bytes of an upload that do not begin where the upload continues.

    Attributes:
        found: their offset.
        received: bytes that have arrived.
    """

    code = "wrong_offset"
    found: int = 0
    received: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the header with the upload's offset."""
        return {"Upload-Offset": str(self.received), "Upload-Complete": "?0"}

    def to_json(self) -> dict[str, object]:
        """Return the problem that the resumable-upload draft defines."""
        return super().to_json() | {
            "type": f"{PROBLEMS}mismatching-upload-offset",
            "expected-offset": self.received,
            "provided-offset": self.found,
        }


class NotReadyError(ServeError):
    """A request that comes too early: keys are missing (``keys_incomplete``), or the evaluation has not
    finished (``not_done``).

    Attributes:
        received: bytes of the keys that have arrived.
        expected: bytes of the whole set.
    """

    code = "not_done"
    received: int = 0
    expected: int = 0


class StorageError(ServeError):
    """A client cannot write to the object storage of a server; the code says why.

    * ``storage``: the storage does not take what a client writes there.
    * ``no_direct_uploads``: the server has none that clients can write to. Keys go through the server.
    * ``foreign_address``: the server asked a client to write to an address that is neither its own nor an
      allowed host's. Nothing was sent there.

    Attributes:
        found: host and port of the address (``foreign_address``).
    """

    code = "storage"
    found: str = ""


class DemandError(ServeError, ValueError):
    """A server, or a model's folder, asks a client for more than the client's limits; nothing was made.

    Attributes:
        what: name of the limit: ``key_bytes``, ``key_count``, ``key_sets`` or ``message_bytes``.
        value: the requested value.
        maximum: the limit.
    """

    code = "demand"
    what: str = ""
    value: int = 0
    maximum: int = 0


class BusyError(ServeError):
    """The queue of requests, uploads or evaluations is full, memory is in use, or the issuer of tokens does
    not answer (``issuer_unreachable``); ask again later.

    Attributes:
        retry_after: seconds after which to retry, 0 if unknown.
    """

    code = "busy"
    retry_after: int = 0


class EvaluationFailedError(ServeError):
    """The program could not be evaluated on these ciphertexts, or the client cancelled it (``cancelled``)."""

    code = "evaluation_failed"


class DiskError(ServeError):
    """The disk of the server is full, or fails. Accepted work is kept and runs when there is room."""

    code = "disk"


class UnforeseenError(ServeError):
    """An unexpected exception during an evaluation.

    Attributes:
        unforeseen: its traceback, for the operator.
    """

    def __init__(self, message: str, unforeseen: str) -> None:
        super().__init__(message)
        self.unforeseen = unforeseen


class ModelFolderError(ServeError, ValueError):
    """A folder without a compiled model that can be served."""

    code = "model_folder"


class ManifestError(ServeError, ValueError):
    """A malformed manifest, or one whose hash differs from its contents."""

    code = "manifest"


class UnreachableError(ServeError, OSError):
    """No server answers, or the connection broke, ``truncated`` within an answer; uploaded bytes are kept."""

    code = "unreachable"


class InvalidReplyError(ServeError, ValueError):
    """A malformed or truncated answer of a server."""

    code = "invalid_reply"


class WrongAnswerError(ServeError, ValueError):
    """A spot check found a wrong answer: see `keywright.client.SpotChecks`.

    Attributes:
        difference: error of an output.
        tolerance: allowed error.
    """

    code = "wrong_answer"
    difference: float = 0.0
    tolerance: float = 0.0


class WorkerEndedError(ServeError):
    """A worker ended, or was killed, during an order; ``not_begun`` if it had not begun it, which therefore
    counts as no attempt."""

    code = "worker_ended"


REFUSALS: dict[str, tuple[HTTPStatus, type[ServeError]]] = {
    "bad_request": (HTTPStatus.BAD_REQUEST, BadRequestError),
    "no_such_path": (HTTPStatus.NOT_FOUND, BadRequestError),
    "no_such_method": (HTTPStatus.METHOD_NOT_ALLOWED, BadRequestError),
    "wrong_host": (HTTPStatus.FORBIDDEN, BadRequestError),
    "unauthorized": (HTTPStatus.UNAUTHORIZED, UnauthorizedError),
    "forbidden": (HTTPStatus.FORBIDDEN, UnauthorizedError),
    "issuer_unreachable": (HTTPStatus.SERVICE_UNAVAILABLE, BusyError),
    "too_large": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TooLargeError),
    "quota_bytes": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, QuotaError),
    "quota_seconds": (HTTPStatus.TOO_MANY_REQUESTS, QuotaError),
    "secret_refused": (HTTPStatus.BAD_REQUEST, SecretRefusedError),
    "invalid_object": (HTTPStatus.BAD_REQUEST, InvalidObjectError),
    "other_model": (HTTPStatus.CONFLICT, OtherModelError),
    "retired": (HTTPStatus.GONE, RetiredError),
    "unknown_keys": (HTTPStatus.NOT_FOUND, UnknownKeysError),
    "unknown_job": (HTTPStatus.NOT_FOUND, UnknownJobError),
    "wrong_offset": (HTTPStatus.CONFLICT, WrongOffsetError),
    "keys_incomplete": (HTTPStatus.CONFLICT, NotReadyError),
    "not_done": (HTTPStatus.CONFLICT, NotReadyError),
    "busy": (HTTPStatus.SERVICE_UNAVAILABLE, BusyError),
    "no_direct_uploads": (HTTPStatus.NOT_FOUND, StorageError),
    "evaluation_failed": (HTTPStatus.UNPROCESSABLE_ENTITY, EvaluationFailedError),
    "cancelled": (HTTPStatus.INTERNAL_SERVER_ERROR, EvaluationFailedError),
    "disk": (HTTPStatus.INSUFFICIENT_STORAGE, DiskError),
}
"""Refusals of a server by code: the HTTP status and the class."""
