"""Answers that no honest server gives: what a client sends, and what it raises."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.client.remote import KEY_SETS
from keywright.errors import KeywrightError
from keywright.errors.service import DemandError
from tests.serve.hostile import IDENTIFIER, answer, encoded, hostile, refused
from tests.serve.network import INPUTS, make_thin

THIN = make_thin().manifest
ENTRY: dict[str, Any] = json.loads(THIN.encoded)


class Lists:
    """A server that takes keys and answers requests for evaluations by turns.

    Args:
        answers: bytes of its answers, again and again from the first.
        pinned: whether it has one manifest; by default each has another name.
    """

    def __init__(self, answers: list[bytes], *, pinned: bool = False) -> None:
        self._answers, self._pinned = itertools.cycle(answers), pinned
        self._names, self._received = itertools.count(), 0

    def __call__(self, method: str, path: str, length: int) -> bytes:
        if path == "/v1/models":
            return answer(200, encoded({"models": []}))
        if path.startswith("/v1/model"):
            named = ENTRY | {"name": f"model {next(self._names)}"}
            return answer(200, THIN.encoded if self._pinned else encoded(named))
        if "/direct" in path:
            return refused("no_direct_uploads")
        if "/jobs" in path:
            return next(self._answers)
        if (method, path) == ("POST", "/v1/keys"):
            self._received = 0
            return answer(200, encoded({"keys": IDENTIFIER}))
        self._received += length
        missing = [] if self._received >= THIN.keys.size else [[0, THIN.keys.size]]
        return answer(200, encoded({"keys": IDENTIFIER, "missing": missing, "ready": not missing}))


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_list_of_refusals_gets_more_key_sets_of_a_secret(seed: int, *, pinned: bool) -> None:
    kinds = [refused("unknown_keys"), refused("retired", 410), refused("unknown_job")]
    listed = kinds[:2] if seed == 0 else random.Random(seed).choices(kinds, k=7)
    with hostile(Lists(listed, pinned=pinned)) as seen:
        remote = RemoteModel(seen.url, pinned=THIN.hash if pinned else None, insecure=True)
        with remote.session() as session:
            secret = session._secret
            for _ in range(3):
                with pytest.raises(KeywrightError):
                    session.infer(np.zeros(INPUTS))
            assert session._secret is secret
            if seed == 0:
                with pytest.raises(DemandError, match="open a new session"):
                    session.upload_keys()
    firsts = [body for method, path, body in seen.requests if method == "PUT" and path.endswith("offset=0")]
    sets = {hashlib.sha256(body).digest() for body in firsts}
    assert 1 <= len(sets) <= KEY_SETS
