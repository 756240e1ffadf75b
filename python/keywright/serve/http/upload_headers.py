"""Header fields of the IETF's resumable uploads: draft-ietf-httpbis-resumable-upload-12.

A key set is the upload resource: ``POST`` creates it, with its first bytes or none, ``HEAD`` returns the
offset, ``PATCH`` appends, ``DELETE`` ends it. The server sends no interim responses (104), because ASGI has
none. To be able to resume an upload that breaks within its first request, a client starts it without content.
The fields are Items of RFC 9651.
"""

import base64
import re
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response

from keywright.errors.service import BadRequestError, UploadError

COMPLETE, OFFSET, LENGTH, LIMIT = "Upload-Complete", "Upload-Offset", "Upload-Length", "Upload-Limit"
PARTIAL = "application/partial-upload"

_BARE = "|".join(
    (
        r"-?[0-9]{1,12}\.[0-9]{1,3}|-?[0-9]{1,15}",  # Decimal, Integer
        r'"(?:[ !#-\[\]-~]|\\["\\])*"',  # String
        r"[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*",  # Token
        r":[A-Za-z0-9+/=]*:",  # Byte Sequence
        r"\?[01]",  # Boolean
        r"@-?[0-9]{1,15}",  # Date
        r'%"(?:[ !#$&-~]|%[0-9a-f]{2})*"',  # Display String
    )
)
ITEM = re.compile(rf" *(?P<bare>{_BARE})(?:; *[a-z*][a-z0-9_\-.*]*(?:=(?:{_BARE}))?)* *")
"""An Item with its parameters: sections 3.1.2 and 3.3 of RFC 9651."""


def _item(headers: Mapping[str, str], name: str, pattern: str, form: str) -> str | None:
    """Return the bare item of a field; None if the field is missing. Its parameters mean nothing here.

    Args:
        headers: headers of the request.
        name: of the field.
        pattern: of the bare item.
        form: the same for people.

    Raises:
        BadRequestError: it is malformed, or of another type. Section 4.2 of RFC 9651 allows to ignore it
            instead, but then a request would mean something else than its client does.
    """
    text = headers.get(name)
    if text is None:
        return None
    item = ITEM.fullmatch(text)
    if item is None or not re.fullmatch(pattern, item["bare"]):
        raise BadRequestError(f"{name} is {text[:40]!r}; it must be {form}")
    return item["bare"]


def boolean(headers: Mapping[str, str], name: str) -> bool | None:
    """Parse a Boolean; None if it is missing. Errors as for `_item`."""
    item = _item(headers, name, r"\?[01]", "?0 or ?1")
    return None if item is None else item == "?1"


def integer(headers: Mapping[str, str], name: str) -> int | None:
    """Parse a non-negative Integer; None if it is missing. Errors as for `_item`."""
    item = _item(headers, name, "-?0+|[0-9]+", "a number of bytes")
    return None if item is None else int(item)


def require_fields(headers: Mapping[str, str]) -> None:
    """Check the fields of an upload on any request, also where it has no use for them.

    Raises:
        BadRequestError: one is malformed.
    """
    boolean(headers, COMPLETE)
    for name in (OFFSET, LENGTH):
        integer(headers, name)


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
