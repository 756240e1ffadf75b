"""A relay between a client and a server, which a test lets fail."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator

from keywright.serve import Server

Pass = Callable[[int, bytes, socket.socket, socket.socket], None]
"""Takes the number of a connection, its request, the client and the server."""


def _request(client: socket.socket) -> bytes:
    """A whole request; less if the client ends before."""
    data = b""
    while b"\r\n\r\n" not in data and (more := client.recv(1 << 16)):
        data += more
    length = re.search(rb"(?i)content-length: (\d+)", data)
    missing = (int(length[1]) if length else 0) - len(data.partition(b"\r\n\r\n")[2])
    while missing > 0 and (more := client.recv(1 << 16)):
        data += more
        missing -= len(more)
    return data


@contextlib.contextmanager
def relaying(server: Server, pass_on: Pass) -> Iterator[int]:
    """The port of a relay to a server."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def relay(number: int, client: socket.socket) -> None:
            with (
                contextlib.suppress(OSError),
                client,
                socket.create_connection(server.server_address) as there,
            ):
                pass_on(number, _request(client), client, there)

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    arguments = len(threads), listener.accept()[0]
                    threads.append(threading.Thread(target=relay, args=arguments))
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


def answer(client: socket.socket, there: socket.socket, most: float = float("inf")) -> None:
    """Pass on so many bytes of an answer."""
    while most > 0 and (more := there.recv(1 << 16)):
        client.sendall(more[: int(min(most, 1 << 20))])
        most -= len(more)
