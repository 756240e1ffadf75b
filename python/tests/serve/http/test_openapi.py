"""The checked-in description of the service matches the server."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from keywright.errors.service import REFUSALS, ServeError, UnknownKeysError
from keywright.model import Model
from keywright.serve import Server, Service
from keywright.serve.http.app import ROUTES
from keywright.serve.jobs.job import Job
from tests.serve.http.test_http import ask

DOCUMENT: dict[str, Any] = json.loads((files("keywright") / "serve" / "http" / "openapi.json").read_text())
CODES = ("unknown_keys", "unknown_job", "bad_request", "too_large", "other_model")
METHODS = ("options", "head", "get", "post", "put", "patch", "delete")
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the operations by method and path."""
    return {
        (method.upper(), path): entry[method]
        for path, entry in DOCUMENT["paths"].items()
        for method in METHODS
        if method in entry
    }


def require(value: Any, schema: dict[str, Any], where: str) -> None:
    """Check a value against a schema, with the parts of JSON Schema that the document uses."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        assert value in schema["enum"], where
        return
    assert isinstance(value, TYPES[schema["type"]]), where
    assert schema["type"] == "boolean" or not isinstance(value, bool), where
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema["required"]) <= set(value) <= set(schema["properties"]), where
        for name, part in value.items():
            require(part, schema["properties"][name], f"{where}.{name}")
    if isinstance(value, list):
        for part in value:
            require(part, schema["items"], where)


def checked(server: Server, method: str, path: str, name: str, body: bytes | None = None) -> Any:
    """Return an answer after checking it against the document."""
    status, reply, headers = ask(server, method, path, body)
    operation = operations()[method, name]
    assert str(status) in operation["responses"], (method, path, status, reply)
    response = operation["responses"][str(status)]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    kind = headers["content-type"]
    assert kind in response["content"], (method, path, kind)
    schema = response["content"][kind]["schema"]
    if kind in ("application/json", "application/problem+json"):
        require(reply, schema, f"{method} {name}")
    if status >= 400:
        assert (reply["status"], reply["detail"]) == (status, reply["error"]["message"])
        assert reply["type"] == "urn:keywright:" + reply["error"]["type"]
    return reply


def test_every_route_is_described_and_no_other() -> None:
    served = {(method, path) for path, method, _ in ROUTES[:-1]}  # the last has the files of a page
    assert served == set(operations())


def test_every_refusal_is_described() -> None:
    codes = DOCUMENT["components"]["schemas"]["Error"]["properties"]["type"]["enum"]
    assert sorted(codes) == sorted([ServeError.code, *REFUSALS])
    named = {int(status) for entry in operations().values() for status in entry["responses"]}
    assert {int(status) for status, _ in REFUSALS.values()} <= named


def test_answers_have_the_form_that_is_described(server: Server, thin: Model, key_file: Path) -> None:
    request = json.dumps({"model": thin.manifest.hash}).encode()
    assert checked(server, "GET", "/health", "/health") == {"alive": True}
    assert checked(server, "GET", "/ready", "/ready") == {"ready": True}
    checked(server, "GET", "/metrics", "/metrics")
    checked(server, "GET", "/v1/model", "/v1/model")
    (entry,) = checked(server, "GET", "/v1/models", "/v1/models")["models"]
    assert entry["model"] == thin.manifest.hash
    checked(server, "GET", f"/v1/models/{entry['model']}", "/v1/models/{model}")
    name = "/v1/configurations/{configuration}"
    described = checked(server, "GET", f"/v1/configurations/{entry['configuration']}", name)
    assert described["models"] == [thin.manifest.hash]
    opening = checked(server, "POST", "/v1/keys", "/v1/keys", request)
    one, own = "/v1/keys/{keys}", f"/v1/keys/{opening['keys']}"
    checked(server, "GET", own, one)
    checked(server, "PUT", f"{own}/parts?offset=0", f"{one}/parts", key_file.read_bytes()[:100])
    checked(server, "GET", f"{own}/seen", f"{one}/seen")
    assert checked(server, "DELETE", own, one) == {"deleted": True}
    other = checked(server, "POST", "/v1/keys", "/v1/keys", request)["keys"]
    assert checked(server, "POST", f"/v1/keys/{other}/delete", f"{one}/delete", b"") == {"deleted": True}


@pytest.mark.parametrize("body", [b"", b"{}", b"\0" * 8, b"9" * 5000])
def test_refusals_have_the_form_that_is_described(server: Server, body: bytes) -> None:
    for method, name in operations():
        path = re.sub(r"\{(\w+)\}", lambda part: "0" * (64 if part[1][0] in "mc" else 32), name)
        # An answer to HEAD has no body.
        if method != "HEAD" and ("{" in name or method == "POST"):
            reply = checked(server, method, path + "?offset=0", name, None if method == "GET" else body)
            assert reply["error"]["type"] in CODES


def test_jobs_have_the_form_that_is_described(service: Service) -> None:
    schema = DOCUMENT["components"]["schemas"]
    job = Job("0" * 32, "1" * 32, service.model.hash, 0, 3)
    require(job.to_json(), schema["Job"], "Job")
    job.error, job.state = UnknownKeysError("gone"), "failed"
    require(job.to_json(), schema["Job"], "Job")
