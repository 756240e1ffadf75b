"""Every third connection of a client drops, in whatever it does."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.serve import Server


def relay(connection: socket.socket, server: Server, most: float) -> None:
    """Pass on a request, and so many bytes of its answer."""
    with (
        contextlib.suppress(OSError),
        connection,
        socket.create_connection(server.server_address) as there,
    ):
        data = connection.recv(1 << 16)
        while b"\r\n\r\n" not in data and (more := connection.recv(1 << 16)):
            data += more
        there.sendall(data)
        length = re.search(rb"(?i)content-length: (\d+)", data)
        missing = (int(length[1]) if length else 0) - len(data.partition(b"\r\n\r\n")[2])
        while missing > 0 and (more := connection.recv(1 << 16)):
            there.sendall(more)
            missing -= len(more)
        while most > 0 and (more := there.recv(1 << 16)):
            connection.sendall(more[: int(min(most, 1 << 20))])
            most -= len(more)


@contextlib.contextmanager
def dropping(server: Server, left: int) -> Iterator[int]:
    """The port of a relay that ends every third connection after so many bytes of the answer."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    most = left if len(threads) % 3 == 2 else float("inf")
                    threads.append(threading.Thread(target=relay, args=(connection, server, most)))
                    threads[-1].start()

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            yield listener.getsockname()[1]
        finally:
            # Closing a socket wakes nobody who accepts from it.
            listener.shutdown(socket.SHUT_RDWR)
            listening.join()
            for thread in threads:
                thread.join()


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
