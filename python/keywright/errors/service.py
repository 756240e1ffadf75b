"""What a service and its clients can raise: one class per reason, each with a code for programs.

A refusal travels as problem details (RFC 9457) with the HTTP status of its class. The member ``error`` is
``{"type": code, "message": sentence, "details": {...}}``. `refusal` turns such a reply back into the
exception, so a client raises what the server raised.
"""

from http import HTTPStatus
from typing import ClassVar

from .engine import KeywrightError

MAX_MESSAGE = 1000

PROBLEMS = "https://iana.org/assignments/http-problem-types#"
"""Base of the problem types of the resumable-upload draft."""


class ServeError(KeywrightError):
    """Base of a service's refusals and of failures between a client and a service.

    Attributes:
        code: the kind of error, in JSON.
        status: HTTP status of the reply.
        details: numbers and names of this case, in JSON.
    """

    code: ClassVar[str] = "failed"
    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR

    processor: float = 0.0
    """Processor seconds that a worker used before it refused; 0 for other errors."""

    def __init__(self, message: str, **details: str | float) -> None:
        super().__init__(message, **details)
        self.details = details

    @property
    def headers(self) -> dict[str, str]:
        """Return the header fields of the reply."""
        return {}

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


class StateFolderError(ServeError):
    """The state folder is served by another process, or holds the state of another model."""

    code = "state_folder"


class BadRequestError(ServeError, ValueError):
    """A request that cannot be parsed: an unknown path, malformed JSON, or no length."""

    code = "bad_request"
    status = HTTPStatus.BAD_REQUEST


class NoSuchPathError(BadRequestError):
    """A path that the service does not have."""

    code = "no_such_path"
    status = HTTPStatus.NOT_FOUND


class NoSuchMethodError(BadRequestError):
    """A method that a path does not have."""

    code = "no_such_method"
    status = HTTPStatus.METHOD_NOT_ALLOWED


class WrongHostError(BadRequestError):
    """A request for a host name that is not this server's, as a page of another site could send it.

    Attributes:
        found: the name.
    """

    code = "wrong_host"
    status = HTTPStatus.FORBIDDEN
    found: str = ""


class UnauthorizedError(ServeError):
    """A request without a valid API key of the server."""

    code = "unauthorized"
    status = HTTPStatus.UNAUTHORIZED

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that asks for a key."""
        return {"www-authenticate": "Bearer"}


class ForbiddenError(ServeError):
    """An authenticated tenant asked for the operator's page without being an admin."""

    code = "forbidden"
    status = HTTPStatus.FORBIDDEN


class IssuerUnreachableError(ServeError):
    """The token issuer cannot be reached, so tokens cannot be verified; ask again later."""

    code = "issuer_unreachable"
    status = HTTPStatus.SERVICE_UNAVAILABLE


class AccountsFileError(ServeError, ValueError):
    """A malformed file of accounts."""

    code = "accounts_file"


class IssuerError(ServeError, ValueError):
    """An invalid token issuer: an unprotected address, or an empty name."""

    code = "issuer"


class CertificateError(ServeError, ValueError):
    """Files of a certificate and its key that cannot be read, or that do not belong together."""

    code = "certificate"


class TooLargeError(ServeError, ValueError):
    """More bytes than the service accepts; nothing was read or allocated.

    Attributes:
        value: the bytes.
        maximum: the maximum.
    """

    code = "too_large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    value: int = 0
    maximum: int = 0


class QuotaBytesError(ServeError):
    """More bytes than a tenant may store.

    Attributes:
        value: bytes that the tenant would store.
        maximum: the tenant's quota.
        retry_after: seconds after which there may be room, 0 if waiting does not help.
    """

    code = "quota_bytes"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    value: int = 0
    maximum: int = 0
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that says when to retry."""
        seconds = self.details.get("retry_after", 0)
        return {"Retry-After": str(seconds)} if seconds else {}


class QuotaSecondsError(ServeError):
    """The tenant has used its processor seconds of the day.

    Attributes:
        used: seconds used.
        maximum: the tenant's quota.
        retry_after: seconds until the next day.
    """

    code = "quota_seconds"
    status = HTTPStatus.TOO_MANY_REQUESTS
    used: float = 0.0
    maximum: float = 0.0
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that says when to retry."""
        return {"Retry-After": str(self.details.get("retry_after", 0))}


class QuotasFileError(ServeError, ValueError):
    """A malformed file of quotas."""

    code = "quotas_file"


class SecretRefusedError(ServeError, ValueError):
    """Bytes that look like a secret key were sent. They were deleted; treat the key as compromised."""

    code = "secret_refused"
    status = HTTPStatus.BAD_REQUEST


class InvalidObjectError(ServeError, ValueError):
    """Keys or ciphertexts that are damaged, of other parameters, or not those that the model takes."""

    code = "invalid_object"
    status = HTTPStatus.BAD_REQUEST


class OtherModelError(ServeError, ValueError):
    """Keys or a request for a model that this server does not serve.

    Attributes:
        found: hash of the requested model.
        expected: hash of the served model.
    """

    code = "other_model"
    status = HTTPStatus.CONFLICT
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
    status = HTTPStatus.GONE
    found: str = ""
    successor: str = ""
    configuration: str = ""


class UnknownKeysError(ServeError, LookupError):
    """No key set has this identifier: it never existed, was deleted, expired, or was evicted."""

    code = "unknown_keys"
    status = HTTPStatus.NOT_FOUND


class UnknownJobError(ServeError, LookupError):
    """No evaluation has this identifier: it never existed, or was evicted."""

    code = "unknown_job"
    status = HTTPStatus.NOT_FOUND


class WrongOffsetError(ServeError, ValueError):
    """A piece of an upload that does not begin where the last one ended.

    Attributes:
        found: offset of the piece.
        received: bytes that have arrived; the piece must begin there.
    """

    code = "wrong_offset"
    status = HTTPStatus.CONFLICT
    found: int = 0
    received: int = 0


class MismatchingOffsetError(WrongOffsetError):
    """A `WrongOffsetError` in the form of the resumable-upload draft."""

    @property
    def headers(self) -> dict[str, str]:
        """Return the header with the upload's offset."""
        return {"Upload-Offset": str(self.details["received"]), "Upload-Complete": "?0"}

    def to_json(self) -> dict[str, object]:
        """Return the problem that the draft defines."""
        return super().to_json() | {
            "type": f"{PROBLEMS}mismatching-upload-offset",
            "expected-offset": self.details["received"],
            "provided-offset": self.details["found"],
        }


class InconsistentLengthError(BadRequestError):
    """The announced length of an upload differs from the length of the model's keys; in the form of the
    resumable-upload draft.

    Attributes:
        found: announced bytes.
        expected: bytes of the keys.
    """

    found: int = 0
    expected: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that says that the upload is incomplete."""
        return {"Upload-Complete": "?0"}

    def to_json(self) -> dict[str, object]:
        """Return the problem that the draft defines."""
        return super().to_json() | {"type": f"{PROBLEMS}inconsistent-upload-length"}


class KeysIncompleteError(ServeError):
    """A request before all keys have arrived.

    Attributes:
        received: bytes that have arrived.
        expected: bytes of the whole set.
    """

    code = "keys_incomplete"
    status = HTTPStatus.CONFLICT
    received: int = 0
    expected: int = 0


class NoDirectUploadsError(ServeError):
    """Keys go through the server: it has no object storage that clients can write to."""

    code = "no_direct_uploads"
    status = HTTPStatus.NOT_FOUND


class StorageError(ServeError):
    """The object storage of a server does not take what a client writes there."""

    code = "storage"


class ForeignAddressError(StorageError):
    """A server asked a client to write to an address that is neither its own nor an allowed host's. Nothing
    was sent there.

    Attributes:
        found: host and port of the address.
    """

    code = "foreign_address"
    found: str = ""


class DemandError(ServeError, ValueError):
    """A server, or a model's folder, asks a client for more than the client's limits; nothing was made.

    Attributes:
        what: name of the limit: ``key_bytes``, ``key_count`` or ``message_bytes``.
        value: what is asked for.
        maximum: the limit.
    """

    code = "demand"
    what: str = ""
    value: int = 0
    maximum: int = 0


class NotDoneError(ServeError):
    """The evaluation has not finished, so there is no result yet."""

    code = "not_done"
    status = HTTPStatus.CONFLICT


class BusyError(ServeError):
    """The queue of requests, uploads or evaluations is full, or memory is in use; ask again later.

    Attributes:
        retry_after: seconds after which to retry, 0 if unknown.
    """

    code = "busy"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that says when to retry, if that is known."""
        seconds = self.details.get("retry_after", 0)
        return {"Retry-After": str(seconds)} if seconds else {}


class EvaluationFailedError(ServeError):
    """The program could not be evaluated on these ciphertexts."""

    code = "evaluation_failed"
    status = HTTPStatus.UNPROCESSABLE_ENTITY


class ServerMissingError(ServeError, ImportError):
    """A package that the server needs is not installed."""

    code = "server_missing"

    def __init__(self, package: str, extra: str = "serve") -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[{extra}]'")


class DiskError(ServeError):
    """The disk of the server is full, or fails. Accepted work is kept and runs when there is room."""

    code = "disk"
    status = HTTPStatus.INSUFFICIENT_STORAGE


class CancelledError(ServeError):
    """An evaluation that its client cancelled."""

    code = "cancelled"


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
    """No server answers, or the connection broke; uploaded bytes are kept."""

    code = "unreachable"


class InvalidReplyError(ServeError, ValueError):
    """A malformed or truncated answer of a server."""

    code = "invalid_reply"


class BrokenReplyError(InvalidReplyError, UnreachableError):
    """An answer that ends before its announced length, as where the connection broke."""


class WrongAnswerError(ServeError, ValueError):
    """A spot check found a wrong answer: see `keywright.client.SpotChecks`.

    Attributes:
        difference: error of an output.
        tolerance: allowed error.
    """

    code = "wrong_answer"
    difference: float = 0.0
    tolerance: float = 0.0


class StorageMissingError(ServeError, ImportError):
    """A package that the storage needs is not installed."""

    code = "storage_missing"

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[storage]'")


class WorkerEndedError(ServeError):
    """A worker ended, or was killed, during an order."""

    code = "worker_ended"


class NotBegunError(WorkerEndedError):
    """A worker ended before it began an order, which therefore counts as no attempt."""

    code = "not_begun"


REFUSALS: dict[str, type[ServeError]] = {
    kind.code: kind
    for kind in (
        BadRequestError,
        NoSuchPathError,
        NoSuchMethodError,
        WrongHostError,
        UnauthorizedError,
        ForbiddenError,
        IssuerUnreachableError,
        TooLargeError,
        QuotaBytesError,
        QuotaSecondsError,
        SecretRefusedError,
        InvalidObjectError,
        OtherModelError,
        RetiredError,
        UnknownKeysError,
        UnknownJobError,
        WrongOffsetError,
        KeysIncompleteError,
        NotDoneError,
        BusyError,
        NoDirectUploadsError,
        EvaluationFailedError,
        CancelledError,
        DiskError,
    )
}
"""Refusals of a server by code."""


def refusal(status: int, reply: object) -> ServeError:
    """Return the exception of an error reply; `InvalidReplyError` if the reply is malformed."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        kind, message, details = (error.get(name) for name in ("type", "message", "details"))
        if kind == ServeError.code and isinstance(message, str):
            return ServeError(message[:MAX_MESSAGE])
        if kind in REFUSALS and isinstance(message, str) and isinstance(details, dict):
            # Take only attributes that the class declares, with the types that it declares.
            known = {
                name: details[name]
                for name, default in vars(REFUSALS[kind]).items()
                if name in details
                and isinstance(default, str | int | float)
                and type(details[name]) is type(default)
            }
            known.pop("code", None)
            return REFUSALS[kind](message[:MAX_MESSAGE], **known)
    return InvalidReplyError(
        f"the server answered with status {status} and no reason; is it keywright serve?"
    )
