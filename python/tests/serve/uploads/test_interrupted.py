"""Ctrl-C in the requests of an upload: it ends at once, nothing that is left counts, and the next works."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest
from keywright.serve import Server, Service
from tests.serve.uploads.relay import answer, relaying

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


def holding(server: Server, what: str, held: threading.Event) -> contextlib.AbstractContextManager[int]:
    """The port of a relay that passes on requests and answers, but for one that it holds."""
    begin, share = HELD[what]

    def pass_on(number: int, request: bytes, client: socket.socket, there: socket.socket) -> None:
        if not re.match(begin, request):
            there.sendall(request)
            answer(client, there)
            return
        there.sendall(request[: int(share * len(request))])
        if share == 1:
            there.recv(1)
        held.set()
        client.recv(1)

    return relaying(server, pass_on)


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
