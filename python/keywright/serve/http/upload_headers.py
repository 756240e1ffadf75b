"""Header fields of the IETF's resumable uploads: draft-ietf-httpbis-resumable-upload-12.

A key set is the upload resource: ``POST`` creates it, with its first bytes or none, ``HEAD`` returns the
offset, ``PATCH`` appends, ``DELETE`` ends it. The server sends no interim responses (104), because ASGI has
none. To be able to resume an upload that breaks within its first request, a client starts it without content.
"""

import base64
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response

from keywright.errors.service import (
    BadRequestError,
    UploadError,
)

COMPLETE, OFFSET, LENGTH, LIMIT = "Upload-Complete", "Upload-Offset", "Upload-Length", "Upload-Limit"
PARTIAL = "application/partial-upload"
MAX_DIGITS = 15
"""Maximum digits of an Integer (RFC 9651, section 3.3.1)."""


def boolean(headers: Mapping[str, str], name: str) -> bool | None:
    """Parse a Boolean of RFC 9651; None if it is missing.

    Raises:
        BadRequestError: it is malformed. Section 4.2 allows to ignore it instead, but then a request would
            mean something else than its client does.
    """
    text = headers.get(name)
    if text is None:
        return None
    if text.strip(" ") not in ("?0", "?1"):
        raise BadRequestError(f"{name} is {text[:40]!r}; it must be ?0 or ?1")
    return text.strip(" ") == "?1"


def integer(headers: Mapping[str, str], name: str) -> int | None:
    """Parse a non-negative Integer of RFC 9651; None if it is missing.

    Raises:
        BadRequestError: it is malformed, see `boolean`.
    """
    text = headers.get(name)
    if text is None:
        return None
    digits = text.strip(" ")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise BadRequestError(f"{name} is {text[:40]!r}; it must be a number of bytes")
    return int(digits)


def require_partial(headers: Mapping[str, str]) -> None:
    """Check that the content is a piece of an upload.

    Raises:
        BadRequestError: its type is another.
    """
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != PARTIAL:
        raise BadRequestError(f"Content-Type is {media_type[:80]!r}; it must be {PARTIAL}")


def require_length(headers: Mapping[str, str], offset: int, total: int, *, complete: bool) -> int:
    """Return the length of the content, after checking the announced length of the upload.

    Args:
        headers: headers of the request.
        offset: where the content begins.
        total: bytes of the keys.
        complete: whether this content is announced as the last.

    Raises:
        UploadError: another length is announced.
    """
    length = int(headers.get("content-length", "0"))
    for announced in (integer(headers, LENGTH), offset + length if complete else None):
        if announced is not None and announced != total:
            raise UploadError(
                f"an upload of {announced} bytes was announced; the keys have {total}",
                found=announced,
                expected=total,
                code="bad_request",
            )
    return length


def limit(most: int, seconds: int) -> str:
    """Return the Upload-Limit field: the maximum size, and how long an idle upload is kept."""
    return f"max-size={most}, max-age={seconds}"


def upload_answer(entry: Mapping[str, object], seconds: int, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return an answer about a key set, with the headers that a client needs to resume.

    Args:
        entry: result of `Service.keys`.
        seconds: how long unused keys are kept.
        status: `HTTPStatus.CREATED` for a new set.
    """
    total = int(str(entry["bytes"]))
    headers = {
        OFFSET: str(entry["received"]),
        COMPLETE: "?1" if entry["ready"] else "?0",
        LENGTH: str(total),
        LIMIT: limit(total, seconds),
    }
    if status == HTTPStatus.CREATED:
        headers["Location"] = f"/v1/keys/{entry['keys']}"
    if entry["ready"]:
        encoded = base64.b64encode(bytes.fromhex(str(entry["digest"]))).decode()
        headers["Repr-Digest"] = f"sha-256=:{encoded}:"
    return JSONResponse(dict(entry), status, headers)
