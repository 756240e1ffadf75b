"""A forked child ends nothing of its parent's: no keys on a server, no files, no processes."""

from __future__ import annotations

import ast
import atexit
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright._files import new_file, new_folder, replacing
from keywright._processes import temporary_folder, unforked_lock
from keywright.client import RemoteModel
from keywright.serve import Server, Service, Workers, serve
from keywright.serve.workers.workers import Worker
from tests.processes import in_child
from tests.serve.network import INPUTS, WORKERS, make_full
from tests.sources import files, named_nodes

GUARDED = {
    "_processes.removing": "atexit",
    "client.key_owner.KeyOwner.__init__": "finalize",
    "client.key_owner.KeyOwner.__exit__": "closes",
    "client.key_owner.KeyOwner.close": "compares the process that sent the keys",
    "search.shards.IndexProcess.close": "_copied",
    "search.shards.IndexProcess.__exit__": "closes",
    "serve.cluster.index_actor.IndexActor.close": "_copied",
    "serve.cluster.index_actor.IndexActor.__exit__": "closes",
    "serve.cluster.ray_workers.RayWorkers.close": "_copied",
    "serve.service.Service.close": "_copied",
    "serve.workers.workers.Workers.close": "_copied",
}
"""Ends that other processes see, and how they know the process that may cause them."""

INSIDE = {
    "_processes.unforked_lock": "a lock of this process",
    "client.connection._Head.close": "a stream",
    "client.connection._Stream.close": "a stream",
    "serve.evaluation.dispatch.Dispatcher.close": "of a service, which is guarded",
    "serve.http.connections.EncryptedTransport.close": "a connection of this process's event loop",
    "serve.http.server.Server.__exit__": "a copy of the socket; the original stays open",
    "serve.jobs.queue.Jobs.close": "of a service, which is guarded",
    "serve.storage.external.copies.Copies.close": "of a service, which is guarded",
    "serve.storage.external.postgresql.PostgresqlRecords.close": "of a service, which is guarded",
    "serve.storage.external.s3.S3Objects.close": "of a service, which is guarded",
    "serve.storage.folder.FolderObjects.close": "nothing",
    "serve.storage.objects.Objects.close": "a protocol",
    "serve.storage.opening.Storage.close": "of a service, which is guarded",
    "serve.storage.records.Records.close": "a protocol",
    "serve.storage.sqlite.SqliteRecords.close": "of a service, which is guarded",
    "serve.storage.state_folder.StateFolder.__init__": "a copy of a descriptor, whose lock stays",
    "serve.storage.state_folder.StateFolder.close": "a copy of a descriptor, whose lock stays",
    "serve.tenants.audit.Audit.close": "of a service, which is guarded",
    "serve.uploads.part_writer.PartWriter.close": "memory",
    "serve.workers.resident_keys.ResidentKeys.close": "copies of descriptors",
    "serve.workers.workers.Worker.close": "of workers, which are guarded",
}
"""Ends that no other process sees, and why."""

NAMES = {"close", "__exit__", "__del__", "__aexit__"}
CALLS = {"register", "finalize", "TemporaryDirectory", "NamedTemporaryFile", "register_at_fork"}


def ends() -> set[str]:
    """Methods that end something, and functions that have something ended with an object or the process."""
    listed = set[str]()
    for path, tree in files():
        for name, node in named_nodes(tree, ".".join(path.with_suffix("").parts)):
            match node:
                case ast.FunctionDef(name=own) | ast.AsyncFunctionDef(name=own) if own in NAMES:
                    listed.add(name)
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("atexit" | "weakref" | "tempfile" | "os"), attr=attr)
                    | ast.Name(attr)
                ) if attr in CALLS:
                    listed.add(name)
                case _:
                    pass
    return listed


def test_every_end_is_guarded_or_inside() -> None:
    """A new one is entered, and a guarded one is tried below."""
    assert ends() == GUARDED.keys() | INSIDE.keys()
    assert not GUARDED.keys() & INSIDE.keys()


def leave(block: Callable[[], Any], how: str) -> None:
    """Leave a block in a child."""

    def child() -> None:
        try:
            block()
        except (SystemExit, ValueError):
            return
        finally:
            # What the end of an interpreter does; those of the libraries are not ours to run here.
            if how == "exit":
                atexit._run_exitfuncs()

    in_child(child)


HOW: dict[str, Callable[[], None]] = {
    "normally": lambda: None,
    "by an exception": lambda: (_ for _ in ()).throw(ValueError("planted")),
    "by sys.exit": lambda: sys.exit(3),
}


def end(block: AbstractContextManager[object], how: str) -> None:
    """End a block that was begun, in one of the ways."""
    error: tuple[Any, Any, Any] = (None, None, None)
    try:
        HOW[how]()
    except BaseException as raised:  # noqa: BLE001 (as `with` does)
        error = type(raised), raised, None
    block.__exit__(*error)


pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:This process"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_a_child_leaves_a_session_and_its_server() -> None:
    """The attack: the keys of the parent were deleted on the server."""
    sample = np.zeros(INPUTS)
    running = serve(make_full(), workers=WORKERS)
    with running as server, RemoteModel(server.url, insecure=True).session() as session:
        session.upload_keys()
        expected, keys = session.infer(sample), session._identifier

        def child(how: str) -> None:
            with session:
                HOW[how]()

        for how in HOW:
            leave(partial(child, how), how)
            assert session.remote.ask("GET", f"/v1/keys/{keys}")["ready"] is True, how
            assert session._key_file.exists(), how
            assert np.abs(session.infer(sample) - expected).max() < 1e-3, how
            assert session._identifier == keys, how


def test_a_child_deletes_the_keys_that_it_sent_itself() -> None:
    with serve(make_full(), workers=WORKERS) as server:
        session = RemoteModel(server.url, insecure=True).session()

        def child() -> str:
            session.upload_keys()
            sent = str(session._identifier)
            session.close()
            return sent

        sent = in_child(child)
        with pytest.raises(kw.errors.UnknownKeysError):
            session.remote.ask("GET", f"/v1/keys/{sent}")
        session.close()


def test_a_child_leaves_a_served_block() -> None:
    """It waited for ever for a thread that it does not have."""
    with serve(make_full(), workers=WORKERS) as server:
        block = serve(make_full())
        inner = block.__enter__()
        state = Path(str(inner._service._state.folder))
        with ExitStack() as sessions:
            for how in HOW:
                leave(partial(end, block, how), how)
                assert state.exists(), how
                for each in (server, inner):  # also for clients that come later
                    session = sessions.enter_context(RemoteModel(each.url, insecure=True).session())
                    assert session.infer(np.zeros(INPUTS)).shape == (4,), how
        block.__exit__(None, None, None)
        assert not state.exists()


@pytest.mark.parametrize("how", HOW)
def test_a_child_leaves_folders_and_files(tmp_path: Path, how: str) -> None:
    with new_folder(tmp_path / "folder") as folder, new_file(tmp_path / "file") as file:
        with temporary_folder() as temporary:
            (folder / "a").write_text("a")
            file.write_text("b")
            (temporary / "c").write_text("c")

            def child() -> None:
                # As blocks of one process, which end in another.
                for path in (folder, file.parent, temporary):
                    assert path.exists()
                HOW[how]()

            leave(child, "exit")
            assert (temporary / "c").read_text() == "c"
        assert not temporary.exists()
    assert (tmp_path / "folder" / "a").read_text() == "a"
    assert (tmp_path / "file").read_text() == "b"


@pytest.mark.parametrize("how", HOW)
def test_a_child_writes_nothing_of_an_open_file(tmp_path: Path, how: str) -> None:
    """What its parent had in the buffer was written twice, or published before it was whole."""
    path = tmp_path / "file"
    block = replacing(path)
    file = block.__enter__()
    file.write(b"abc")

    leave(partial(end, block, how), how)
    assert not path.exists()
    file.write(b"def")
    block.__exit__(None, None, None)
    assert path.read_bytes() == b"abcdef"


@pytest.mark.parametrize("block", [new_folder, new_file])
def test_a_child_publishes_nothing(tmp_path: Path, block: Callable[[Path], Any]) -> None:
    entered = block(tmp_path / "x")
    path = entered.__enter__()
    in_child(lambda: entered.__exit__(None, None, None))
    assert path.parent.exists()
    assert not (tmp_path / "x").exists()
    path.is_dir() or path.write_text("parent")
    entered.__exit__(None, None, None)
    assert (tmp_path / "x").exists()


def test_a_child_ends_no_worker_and_no_service(tmp_path: Path) -> None:
    workers = Workers()
    service = Service(make_full(), tmp_path, workers=workers)
    service.prepare()
    (worker,) = workers.all
    pid = worker.pid

    def child() -> None:
        service.close()
        workers.close()

    in_child(child)
    assert isinstance(worker, Worker)
    assert worker.pid == pid is not None
    service.close()
    workers.close()


def test_a_child_ends_no_server() -> None:
    with serve(make_full()) as server:
        in_child(server.shutdown)
        assert isinstance(server, Server)
        assert RemoteModel(server.url, insecure=True).manifest.hash


def test_locks_of_modules_are_free_in_a_child() -> None:
    """A child that was forked while another thread held one waited for it for ever."""
    lines = ((path, ast.unparse(line)) for path, tree in files() for line in tree.body)
    assert not [each for each in lines if re.match(r"[^\n]*= .*\bR?Lock\(", each[1])]
    lock = unforked_lock()
    lock.acquire()
    threading.Timer(0.1, lock.release).start()
    assert in_child(lambda: lock.acquire(blocking=False))
