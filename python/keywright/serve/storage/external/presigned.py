"""Addresses of object storage that are signed for a body of one length: Signature Version 4 in the query.

The library that signs addresses signs only the host name, so that anyone who has such an address may write
any number of bytes there. This module signs the address again together with the header Content-Length; the
storage then refuses other lengths.
"""

import hashlib
import hmac
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

SIGNED, SIGNATURE, CREDENTIAL, DATE = (
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
    "X-Amz-Credential",
    "X-Amz-Date",
)
ALGORITHM = "AWS4-HMAC-SHA256"


def access_key(url: str) -> str:
    """Return the name of the key that signed an address."""
    return dict(parse_qsl(urlsplit(url).query)).get(CREDENTIAL, "").partition("/")[0]


def sign_headers(url: str, method: str, headers: dict[str, str], secret: str) -> str:
    """Sign an address anew.

    Args:
        url: an address that is signed in its query.
        method: of the request.
        headers: headers that the request must have besides Host: names in lower case, and values.
        secret: the secret access key whose name the address has.
    """
    parts = urlsplit(url)
    query = {name: value for name, value in parse_qsl(parts.query) if name != SIGNATURE}
    signed = {**headers, "host": parts.netloc}
    query[SIGNED] = ";".join(sorted(signed))
    canonical = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
    request = "\n".join(
        (
            method,
            parts.path,
            canonical,
            *(f"{name}:{value}" for name, value in sorted(signed.items())),
            "",
            query[SIGNED],
            "UNSIGNED-PAYLOAD",
        )
    )
    # The name of the key, and what it is narrowed to: day, region, service.
    scope = query[CREDENTIAL].split("/")[1:]
    text = "\n".join((ALGORITHM, query[DATE], "/".join(scope), hashlib.sha256(request.encode()).hexdigest()))
    key = b"AWS4" + secret.encode()
    for step in (*scope, text):
        key = hmac.digest(key, step.encode(), "sha256")
    return urlunsplit((parts.scheme, parts.netloc, parts.path, f"{canonical}&{SIGNATURE}={key.hex()}", ""))
