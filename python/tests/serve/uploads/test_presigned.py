"""Addresses that are signed for one length, compared with obstore, botocore and Amazon's example."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import obstore
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from keywright.serve.storage.external.presigned import access_key, sign_headers
from keywright.serve.storage.external.s3 import S3Objects
from obstore.store import S3Store
from tests.serve.storage.storage_servers import ENVIRONMENT

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EXAMPLE = (
    "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    f"&X-Amz-Credential={KEY}%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z"
    "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
)


def query(url: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}


def test_amazons_example() -> None:
    """Of its page on query parameters of Signature Version 4."""
    url = sign_headers(EXAMPLE, "GET", {}, SECRET)
    assert query(url)["X-Amz-Signature"] == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    assert access_key(url) == KEY


@pytest.mark.parametrize("token", [None, "a/token+of=a session"])
@pytest.mark.parametrize("prefix", ["", "some/prefix"])
def test_obstore_signs_the_same_without_a_length(
    monkeypatch: pytest.MonkeyPatch, token: str | None, prefix: str
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    if token is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    store = S3Store("bucket", prefix=prefix or None, endpoint="http://127.0.0.1:9000")
    url = str(obstore.sign(store, "PUT", "direct/a b+é", timedelta(seconds=300)))
    assert query(sign_headers(url, "PUT", {}, ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])) == query(url)


@pytest.mark.parametrize("length", [1, 100, 8 << 20])
def test_botocore_signs_the_same_with_a_length(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    url = "http://127.0.0.1:9000/bucket/direct/name"
    request = AWSRequest("PUT", url, headers={"content-length": str(length)})
    moment = datetime(2026, 11, 28, 5, 0, 0, tzinfo=UTC)

    class Signer(S3SigV4QueryAuth):  # type: ignore[misc]
        def headers_to_sign(self, request: AWSRequest) -> object:
            headers = super().headers_to_sign(request)
            del headers["content-length"]
            headers["content-length"] = str(length)
            return headers

    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *rest: moment)
    Signer(Credentials(KEY, SECRET), "s3", "us-east-1", expires=300).add_auth(request)
    theirs = query(request.url)
    assert theirs["X-Amz-SignedHeaders"] == "content-length;host"
    again = sign_headers(request.url, "PUT", {"content-length": str(length)}, SECRET)
    assert query(again) == theirs
    assert query(sign_headers(request.url, "PUT", {"content-length": str(length + 1)}, SECRET)) != theirs


def test_a_foreign_key_signs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    objects = S3Objects("s3://bucket", tmp_path_factory.mktemp("copies"))
    url = objects.sign("direct/name", 300, 1000)
    assert url is not None
    assert query(url)["X-Amz-SignedHeaders"] == "content-length;host"
    objects._key = "another"
    assert objects.sign("direct/name", 300, 1000) is None
    objects._secret = None
    assert objects.sign("direct/name", 300, 1000) is None
    objects.close()
