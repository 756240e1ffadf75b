"""Files that a user names are replaced whole; pipes and devices are written through, and never waited for."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright import compiler
from keywright._files import put
from keywright.errors.model import FolderError
from keywright.model.folder.files import new_file
from keywright.serve.tenants.accounts import Accounts, add
from tests.serve.network import network

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")

DATA = b"some bytes of a result" * 1000


def by_new_file(path: Path) -> None:
    with new_file(path) as made:
        made.write_bytes(DATA)


@cache
def compiled() -> compiler.Program:
    """One program: it states when it was compiled."""
    return compiler.compile(network(), compiler.Target(slots=512, levels=3))


def by_program(path: Path) -> None:
    compiler.save(compiled(), path)


def by_accounts(path: Path) -> None:
    add(path, "somebody")


WRITERS: dict[str, Callable[[Path], None]] = {
    "--out": by_new_file,
    "compiler.save": by_program,
    "accounts": by_accounts,
}


@pytest.mark.parametrize("writer", ["--out", "compiler.save"])
def test_a_pipe_gets_the_contents_and_stays(tmp_path: Path, writer: str) -> None:
    pipe, plain, found = tmp_path / "pipe", tmp_path / "plain", list[bytes]()
    WRITERS[writer](plain)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    WRITERS[writer](pipe)
    reader.join(20)
    assert found == [plain.read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "plain"}


@pytest.mark.parametrize("writer", ["--out", "compiler.save"])
def test_a_device_stays(tmp_path: Path, writer: str) -> None:
    """As root, ``--out /dev/null`` destroyed it."""
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    WRITERS[writer](link)
    assert link.is_symlink()
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path, writer: str) -> None:
    (tmp_path / "far").mkdir()
    link, far = tmp_path / "link", tmp_path / "far" / "file"
    link.symlink_to(far)
    WRITERS[writer](link)
    WRITERS[writer](link)
    assert link.is_symlink()
    assert far.is_file()
    assert not far.is_symlink()


def test_what_can_be_neither_replaced_nor_written_is_an_error(tmp_path: Path) -> None:
    import socket

    temporary, path = tmp_path / "new", tmp_path / "socket"
    temporary.write_bytes(DATA)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with pytest.raises(OSError, match="neither a file, a pipe nor a character device"):
            put(temporary, path)
    assert temporary.read_bytes() == DATA


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A client's folder with a secret and a public key."""
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45], [50, 50], 45, insecure=True)
    folder = tmp_path_factory.mktemp("client")
    parameters.save(folder / "parameters.kw")
    compiler.save(
        compiler.compile(network(), compiler.Target(slots=parameters.max_slots, levels=3)),
        folder / "program.kwp",
    )
    secret = kw.SecretKey.generate(parameters)
    secret.save(folder / "secret.kw")
    kw.KeyGenerator(secret).public_key().save(folder / "public.kw")
    return folder


@pytest.mark.parametrize("name", ["parameters.kw", "program.kwp", "secret.kw", "public.kw"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_client_waits_for_no_pipe(folder: Path, tmp_path: Path, name: str, kind: str) -> None:
    place = tmp_path / "client"
    shutil.copytree(folder, place)
    if name == "public.kw":
        (place / "secret.kw").unlink()
    (place / name).unlink()
    os.mkfifo(place / name) if kind == "pipe" else (place / name).mkdir()
    found: list[BaseException] = []

    def load() -> None:
        try:
            kw.load_client(place, insecure=True)
        except FolderError as error:
            found.append(error)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert len(found) == 1
    assert name in str(found[0])


def test_a_client_folder_is_read(folder: Path) -> None:
    """The folder of the tests above is a good one."""
    assert np.asarray(kw.load_client(folder, insecure=True).program.input_layout.period) > 0


def test_keys_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    """Eight processes kept three."""
    path, made = tmp_path / "accounts.json", list[str]()
    gate = threading.Barrier(8)

    def make(number: int) -> None:
        gate.wait()
        made.extend(add(path, f"tenant-{number % 4}") for _ in range(4))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accounts = Accounts.load(path)
    assert len(made) == 32
    assert all(accounts.known(f"Bearer {key}") for key in made)
    assert path.stat().st_mode & 0o077 == 0
