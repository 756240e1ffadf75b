"""What a service and those who ask it can refuse: one class per reason, each with a code for programs.

A refusal travels with the HTTP status of its class as problem details (RFC 9457), whose member ``error`` is
``{"type": code, "message": sentence, "details": {...}}``; `refusal` makes the exception of such a reply, so a
client raises what the server raised.
"""

from http import HTTPStatus
from typing import ClassVar

from keywright.errors import KeywrightError

MAX_MESSAGE = 1000

PROBLEMS = "https://iana.org/assignments/http-problem-types#"
"""Where the problem types of the resumable-upload draft are."""


class ServeError(KeywrightError):
    """Base of what a service refuses and of what goes wrong between a client and a service.

    Attributes:
        code: the kind of error, in JSON.
        status: HTTP status of the reply.
        details: numbers and names of this case, in JSON.
    """

    code: ClassVar[str] = "failed"
    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR

    processor: float = 0.0
    """Processor seconds of a worker until it refused; of no other errors."""

    def __init__(self, message: str, **details: str | float) -> None:
        super().__init__(message, **details)
        self.details = details

    @property
    def headers(self) -> dict[str, str]:
        """Header fields of the reply."""
        return {}

    def to_json(self) -> dict[str, object]:
        """The body of a reply: problem details, and what clients read of them."""
        return {
            "type": f"urn:keywright:{self.code}",
            "title": self.code.replace("_", " "),
            "status": int(self.status),
            "detail": str(self),
            **self.reason(),
        }

    def reason(self) -> dict[str, object]:
        """Code, sentence and details, under ``error``."""
        return {"error": {"type": self.code, "message": str(self), "details": self.details}}


class StateFolderError(ServeError):
    """A folder of state that another process serves, or that holds the state of another model."""

    code = "state_folder"


class BadRequestError(ServeError, ValueError):
    """A request that is not understood: no such path, not the JSON that is expected, a length that is
    missing."""

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
    """A request under a name that is not this server's, as a page of another site would make it.

    Attributes:
        found: the name.
    """

    code = "wrong_host"
    status = HTTPStatus.FORBIDDEN
    found: str = ""


class UnauthorizedError(ServeError):
    """A request without an API key of the server, or with one that it does not know."""

    code = "unauthorized"
    status = HTTPStatus.UNAUTHORIZED

    @property
    def headers(self) -> dict[str, str]:
        """What is to be sent."""
        return {"www-authenticate": "Bearer"}


class ForbiddenError(ServeError):
    """A request of somebody who is known, for what is not theirs to see: the operator's page."""

    code = "forbidden"
    status = HTTPStatus.FORBIDDEN


class IssuerUnreachableError(ServeError):
    """The issuer whose tokens a server takes does not say with which keys it signs; ask again later."""

    code = "issuer_unreachable"
    status = HTTPStatus.SERVICE_UNAVAILABLE


class AccountsFileError(ServeError, ValueError):
    """A file of accounts that is none."""

    code = "accounts_file"


class IssuerError(ServeError, ValueError):
    """An issuer of tokens that cannot be one: an address that nothing protects, or an empty name."""

    code = "issuer"


class CertificateError(ServeError, ValueError):
    """Files of a certificate and its key that cannot be read, or that do not belong together."""

    code = "certificate"


class TooLargeError(ServeError, ValueError):
    """More bytes than the service takes; nothing was read or allocated.

    Attributes:
        value: how many.
        maximum: how many it takes.
    """

    code = "too_large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    value: int = 0
    maximum: int = 0


class QuotaBytesError(ServeError):
    """More bytes than are kept for a tenant.

    Attributes:
        value: how many there would be.
        maximum: how many there may be.
        retry_after: seconds after which there may be room, 0 if waiting is of no use.
    """

    code = "quota_bytes"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    value: int = 0
    maximum: int = 0
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """When to come back."""
        seconds = self.details.get("retry_after", 0)
        return {"Retry-After": str(seconds)} if seconds else {}


class QuotaSecondsError(ServeError):
    """An evaluation of a tenant that has used its processor seconds of the day.

    Attributes:
        used: how many were.
        maximum: how many may be.
        retry_after: seconds until the next day.
    """

    code = "quota_seconds"
    status = HTTPStatus.TOO_MANY_REQUESTS
    used: float = 0.0
    maximum: float = 0.0
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """When to come back."""
        return {"Retry-After": str(self.details.get("retry_after", 0))}


class QuotasFileError(ServeError, ValueError):
    """A file of quotas that is none."""

    code = "quotas_file"


class SecretRefusedError(ServeError, ValueError):
    """Bytes that look like a secret key were sent. They were deleted; the key must be regarded as known."""

    code = "secret_refused"
    status = HTTPStatus.BAD_REQUEST


class InvalidObjectError(ServeError, ValueError):
    """Keys or ciphertexts that are damaged, of other parameters, or not those that the model takes."""

    code = "invalid_object"
    status = HTTPStatus.BAD_REQUEST


class OtherModelError(ServeError, ValueError):
    """Keys or a question for another model than the one that is served.

    Attributes:
        found: hash of the model they are for.
        expected: hash of the served model.
    """

    code = "other_model"
    status = HTTPStatus.CONFLICT
    found: str = ""
    expected: str = ""


class RetiredError(ServeError):
    """A model or a configuration of keys that was served and is not any more.

    Attributes:
        found: hash of the model, or identifier of the configuration.
        successor: hash of the model of the same name that is served, empty if there is none.
        configuration: of the successor's keys: where it is the same, the keys can be used on.
    """

    code = "retired"
    status = HTTPStatus.GONE
    found: str = ""
    successor: str = ""
    configuration: str = ""


class UnknownKeysError(ServeError, LookupError):
    """No key set of that identifier: it never was, was deleted, expired, or made room for others."""

    code = "unknown_keys"
    status = HTTPStatus.NOT_FOUND


class UnknownJobError(ServeError, LookupError):
    """No evaluation of that identifier: it never was, or made room for later ones."""

    code = "unknown_job"
    status = HTTPStatus.NOT_FOUND


class WrongOffsetError(ServeError, ValueError):
    """A piece of an upload that does not begin where the last one ended.

    Attributes:
        found: where it begins.
        received: how many bytes there are: where it must begin.
    """

    code = "wrong_offset"
    status = HTTPStatus.CONFLICT
    found: int = 0
    received: int = 0


class MismatchingOffsetError(WrongOffsetError):
    """A `WrongOffsetError` as clients of the resumable-upload draft read it."""

    @property
    def headers(self) -> dict[str, str]:
        """Where the upload is."""
        return {"Upload-Offset": str(self.details["received"]), "Upload-Complete": "?0"}

    def to_json(self) -> dict[str, object]:
        """The problem that the draft defines."""
        return super().to_json() | {
            "type": f"{PROBLEMS}mismatching-upload-offset",
            "expected-offset": self.details["received"],
            "provided-offset": self.details["found"],
        }


class InconsistentLengthError(BadRequestError):
    """An upload whose announced length is not that of the keys that the model takes, as clients of the
    resumable-upload draft read it.

    Attributes:
        found: bytes that were announced.
        expected: bytes of the keys.
    """

    found: int = 0
    expected: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """That nothing is complete."""
        return {"Upload-Complete": "?0"}

    def to_json(self) -> dict[str, object]:
        """The problem that the draft defines."""
        return super().to_json() | {"type": f"{PROBLEMS}inconsistent-upload-length"}


class KeysIncompleteError(ServeError):
    """A question before all keys were sent.

    Attributes:
        received: bytes there are.
        expected: bytes of the whole.
    """

    code = "keys_incomplete"
    status = HTTPStatus.CONFLICT
    received: int = 0
    expected: int = 0


class NotDoneError(ServeError):
    """The result of an evaluation that is not finished."""

    code = "not_done"
    status = HTTPStatus.CONFLICT


class BusyError(ServeError):
    """As many requests, uploads or evaluations wait as the service holds, or its memory is in use; ask again
    later.

    Attributes:
        retry_after: seconds after which it is worth while, 0 where nobody knows.
    """

    code = "busy"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """When to come back, where that is known."""
        seconds = self.details.get("retry_after", 0)
        return {"Retry-After": str(seconds)} if seconds else {}


class EvaluationFailedError(ServeError):
    """The program could not be evaluated on these ciphertexts."""

    code = "evaluation_failed"
    status = HTTPStatus.UNPROCESSABLE_ENTITY


class ServerMissingError(ServeError, ImportError):
    """What a server needs beside the package is not installed."""

    code = "server_missing"

    def __init__(self, package: str, extra: str = "serve") -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[{extra}]'")


class DiskError(ServeError):
    """The disk of the server is full, or fails. What was accepted is kept, and done when there is room."""

    code = "disk"
    status = HTTPStatus.INSUFFICIENT_STORAGE


class CancelledError(ServeError):
    """An evaluation that nobody waits for any more."""

    code = "cancelled"


class UnforeseenError(ServeError):
    """What was raised in an evaluation that nobody expected.

    Attributes:
        unforeseen: its traceback, for whoever runs the server.
    """

    def __init__(self, message: str, unforeseen: str) -> None:
        super().__init__(message)
        self.unforeseen = unforeseen


class ModelFolderError(ServeError, ValueError):
    """A folder that holds no compiled model that can be served."""

    code = "model_folder"


class ManifestError(ServeError, ValueError):
    """A manifest that is not understood, or whose hash is not that of its contents."""

    code = "manifest"


class UnreachableError(ServeError, OSError):
    """No server answers, or the connection broke; what was uploaded so far is kept."""

    code = "unreachable"


class InvalidReplyError(ServeError, ValueError):
    """A server that answers garbage, or less than it announced."""

    code = "invalid_reply"


class WrongAnswerError(ServeError, ValueError):
    """An answer that was checked and is wrong: see `keywright.serve.SpotChecks`.

    Attributes:
        difference: by how much an output is off.
        tolerance: what was allowed.
    """

    code = "wrong_answer"
    difference: float = 0.0
    tolerance: float = 0.0


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
        EvaluationFailedError,
        CancelledError,
        DiskError,
    )
}
"""What a server can say, by code."""


def refusal(status: int, reply: object) -> ServeError:
    """The exception of an error reply; `InvalidReplyError` if it is not one."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        kind, message, details = (error.get(name) for name in ("type", "message", "details"))
        if kind == ServeError.code and isinstance(message, str):
            return ServeError(message[:MAX_MESSAGE])
        if kind in REFUSALS and isinstance(message, str) and isinstance(details, dict):
            # Only the attributes that the class declares, and only of the types that it declares.
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
