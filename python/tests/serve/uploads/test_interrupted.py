"""Ctrl-C in the requests of an upload: it ends at once, nothing that is left counts, and the next works."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from keywright.serve import Server, Service

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

CLIENT = """
import sys
from keywright.client import RemoteModel

remote = RemoteModel(sys.argv[1], insecure=True)
direct, remote._port = remote._port, int(sys.argv[2])
with remote.session() as session:
    try:
        session.upload_keys()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    remote._port = direct
    session.upload_keys()
    print("complete", flush=True)
    sys.stdin.readline()
"""

HELD = {
    "the opening": (rb"POST /v1/keys ", 1.0),
    "the question what is missing": (rb"GET /v1/keys/", 0.0),
    "a part": (rb"PUT /v1/keys/", 0.5),
}
"""Requests whose answers never arrive, and which share of them reaches the server."""


def relay(connection: socket.socket, server: Server, what: str, held: threading.Event) -> None:
    """Pass on a request and its answer, unless the request is held."""
    begin, share = HELD[what]
    with contextlib.suppress(OSError), connection, socket.create_connection(server.server_address) as there:
        data = connection.recv(1 << 16)
        length = re.search(rb"(?i)content-length: (\d+)", data)
        while len(data.partition(b"\r\n\r\n")[2]) < (int(length[1]) if length else 0):
            data += connection.recv(1 << 16)
        if re.match(begin, data):
            there.sendall(data[: int(share * len(data))])
            if share == 1:
                there.recv(1)
            held.set()
            connection.recv(1)
            return
        there.sendall(data)
        while more := there.recv(1 << 16):
            connection.sendall(more)


@contextlib.contextmanager
def holding(server: Server, what: str, held: threading.Event) -> Iterator[int]:
    """The port of a relay that holds a request."""
    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            with contextlib.suppress(OSError):
                while True:
                    arguments = (listener.accept()[0], server, what, held)
                    threads.append(threading.Thread(target=relay, args=arguments))
                    threads[-1].start()

        listening = threading.Thread(target=listen)
        listening.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for thread in (listening, *threads):
                thread.join()


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("what", HELD)
def test_an_interrupted_upload_ends_and_the_next_one_works(
    server: Server, service: Service, what: str
) -> None:
    held, pipe = threading.Event(), subprocess.PIPE
    with holding(server, what, held) as port:
        command = [sys.executable, "-c", CLIENT, server.url, str(port)]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as client:
            assert client.stdout is not None
            held.wait()
            client.send_signal(signal.SIGINT)
            assert client.stdout.readline() == "interrupted\n"
            assert client.stdout.readline() == "complete\n"
            assert [uploaded.ready for uploaded in service.store.all() if uploaded.placed] == [True]
            client.communicate("\n")
    assert client.returncode == 0
    assert not any(uploaded.placed for uploaded in service.store.all())
