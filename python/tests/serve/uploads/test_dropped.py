"""Every third connection of a client drops, in whatever it does."""

from __future__ import annotations

import contextlib
import socket
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.serve import Server
from tests.serve.uploads.relay import answer, relaying


def dropping(server: Server, left: int) -> contextlib.AbstractContextManager[int]:
    """The port of a relay that ends every third connection after so many bytes of the answer."""

    def pass_on(number: int, request: bytes, client: socket.socket, there: socket.socket) -> None:
        there.sendall(request)
        answer(client, there, left if number % 3 == 2 else float("inf"))

    return relaying(server, pass_on)


@pytest.mark.parametrize("left", [0, 20, 400], ids=["no answer", "half a head", "half a body"])
def test_connections_that_drop_are_tried_again(
    server: Server, sample: np.ndarray[Any, np.dtype[np.float64]], left: int
) -> None:
    """Four of six kills during an evaluation were reported as answers that are not HTTP."""
    model = RemoteModel(server.url, insecure=True)
    with dropping(server, left) as port:
        model._port = port
        with model.session() as session:
            session.upload_keys()
            for _ in range(3):
                assert np.isfinite(session.infer(sample)).all()
