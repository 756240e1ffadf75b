"""Header fields of the IETF's resumable uploads: draft-ietf-httpbis-resumable-upload-12.

A key set is the upload resource: ``POST`` makes it, with its first bytes or none, ``HEAD`` says how much has
come, ``PATCH`` appends, ``DELETE`` ends it. No interim responses (104) are sent: ASGI has none. Whoever wants
to resume an upload that broke within its first request begins it without content.
"""

import base64
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response

from .errors import BadRequestError, InconsistentLengthError

COMPLETE, OFFSET, LENGTH, LIMIT = "Upload-Complete", "Upload-Offset", "Upload-Length", "Upload-Limit"
PARTIAL = "application/partial-upload"
MAX_DIGITS = 15
"""Of an Integer (RFC 9651, section 3.3.1)."""


def boolean(headers: Mapping[str, str], name: str) -> bool | None:
    """A Boolean of RFC 9651; None where there is none, or something else, which is to be ignored."""
    return {"?1": True, "?0": False}.get(headers.get(name, "").strip(" "))


def integer(headers: Mapping[str, str], name: str) -> int | None:
    """An Integer of RFC 9651 that is not negative; None where there is none, or something else."""
    text = headers.get(name, "").strip(" ")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else None


def require_partial(headers: Mapping[str, str]) -> None:
    """Refuse content that is not a piece of an upload.

    Raises:
        BadRequestError: its type is another.
    """
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != PARTIAL:
        raise BadRequestError(f"Content-Type is {found[:80]!r}; a piece of an upload is {PARTIAL}")


def require_length(headers: Mapping[str, str], offset: int, total: int, *, complete: bool) -> int:
    """Bytes of the content, if what is said of the whole upload is right.

    Args:
        headers: of the request.
        offset: where the content begins.
        total: bytes of the keys that are uploaded.
        complete: whether it is said to be the rest.

    Raises:
        InconsistentLengthError: another length is announced.
    """
    length = int(headers.get("content-length", "0"))
    for found in (integer(headers, LENGTH), offset + length if complete else None):
        if found is not None and found != total:
            raise InconsistentLengthError(
                f"an upload of {found} bytes was announced; the keys have {total}",
                found=found,
                expected=total,
            )
    return length


def limit(most: int, seconds: int) -> str:
    """How long uploads are at most, and how long they are kept if nothing comes."""
    return f"max-size={most}, max-age={seconds}"


def upload_answer(entry: Mapping[str, object], seconds: int, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """An answer about a key set, with what a client needs to go on.

    Args:
        entry: of `Service.keys`.
        seconds: how long keys are kept that are not used.
        status: `HTTPStatus.CREATED` of a new one.
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
