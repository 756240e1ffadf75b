"""A tenant of the service that repeats no request and compares every answer.

`RemoteModel` recovers by itself, which would hide what a server loses.
"""

from __future__ import annotations

import hashlib
import http.client
import json
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import keywright as kw
import numpy as np
from keywright.model import Manifest
from keywright.model.served import framing
from numpy.typing import NDArray

PIECE = 1 << 20
TIMEOUT_S = 60.0

Vector = NDArray[np.float64]


class RefusedError(Exception):
    """The server refused a request.

    Attributes:
        status: HTTP status.
        code: of the refusal.
    """

    def __init__(self, status: int, body: bytes) -> None:
        try:
            reason = json.loads(body)["error"]
            self.code, sentence = str(reason["type"]), str(reason["message"])
        except (ValueError, LookupError, TypeError):
            self.code, sentence = "", body[:200].decode("latin-1")
        super().__init__(f"{status} {self.code}: {sentence}")
        self.status = status


class Connection:
    """A connection that stays open, and is opened when needed."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of an answer; errors as of `exchange`."""
        return self.exchange(method, path, body)[1]

    def exchange(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """The status and the body of an answer.

        Raises:
            RefusedError: its status is not 2xx.
            OSError, http.client.HTTPException: there is no answer.
        """
        try:
            self._connection.request(method, path, body, {"Content-Type": "application/octet-stream"})
            response = self._connection.getresponse()
            data = response.read()
        except BaseException:
            self._connection.close()
            raise
        if not 200 <= response.status < 300:
            raise RefusedError(response.status, data)
        return response.status, data

    def ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """The same, parsed as JSON."""
        entry: dict[str, Any] = json.loads(self.request(method, path, body))
        return entry

    def close(self) -> None:
        """Close it."""
        self._connection.close()


@dataclass
class Question:
    """A message of a tenant, with the expected answer."""

    message: bytes
    expected: Vector


class Tenant:
    """A secret, from a seed; its keys as a file, and questions.

    Args:
        number: of the tenant.
        manifest: of a model.
    """

    def __init__(self, number: int, manifest: Manifest) -> None:
        self.number, self.manifest = number, manifest
        self._parameters = manifest.parameters
        seed = hashlib.sha256(f"keywright load {number}".encode()).digest()
        self._secret = kw.SecretKey.generate(self._parameters, seed)
        self._decryptor = kw.Decryptor(self._secret)
        self._random = np.random.default_rng(number)

    def save_keys(self, path: Path) -> None:
        """Write the keys that the manifest asks for."""
        specs = kw.keys.read_set_head(self.manifest.keys.head, self._parameters)
        kw.KeyGenerator(self._secret).save_evaluation_keys(path, specs)

    def question(self, layer: Vector) -> Question:
        """A random encrypted sample, with the layer's answer to it."""
        entry, manifest = self.manifest.input, self.manifest
        sample = self._random.uniform(-1, 1, entry.places.shape)
        rows = entry.places.pack(sample[np.newaxis]) / manifest.input.scale
        objects = [
            self._decryptor.encrypt(
                row, entry.places.size, manifest.input.level, magnitude=manifest.input_magnitude
            ).to_bytes()
            for row in rows
        ]
        return Question(framing.join(objects), sample.ravel() @ layer)

    def error(self, question: Question, answer: bytes) -> float:
        """The largest difference between an answer and what was expected."""
        places = self.manifest.output.places
        objects = framing.split(answer, places.ciphertexts)
        rows = [self._decryptor.decrypt(kw.Ciphertext.from_bytes(data, self._parameters)) for data in objects]
        values = places.unpack(np.asarray(rows), 1) * self.manifest.output.scale
        return float(np.abs(values.ravel() - question.expected).max())


def upload(connection: Connection, manifest: Manifest, keys: bytes) -> str:
    """Send a key set to a server. Returns its identifier there."""
    opening = connection.ask("POST", "/v1/keys", json.dumps({"model": manifest.hash}).encode())
    identifier = str(opening["keys"])
    for start in range(0, len(keys), PIECE):
        connection.request("PUT", f"/v1/keys/{identifier}/parts?offset={start}", keys[start : start + PIECE])
    return identifier


def evaluate(connection: Connection, keys: str, question: Question, model: str) -> bytes:
    """Send a question, and return the answer."""
    path = f"/v1/keys/{keys}/jobs?model={model}&wait=30"
    status, data = connection.exchange("POST", path, question.message)
    if status == HTTPStatus.OK:
        return data
    job = json.loads(data)
    while job["state"] in ("waiting", "running"):
        job = connection.ask("GET", f"/v1/jobs/{job['job']}?wait=30")
    return connection.request("GET", f"/v1/jobs/{job['job']}/result")
