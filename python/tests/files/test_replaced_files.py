"""Files that a user names are replaced whole; pipes and devices are written through, and never waited for."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import _files, compiler
from keywright._files import new_file, new_folder, put, replace, replacing
from keywright.errors.model import FolderError
from keywright.federated import Encoding
from keywright.federated.threshold.protocol import Roster
from keywright.federated.threshold.state import ServerState
from keywright.plan.keys import plan_file
from keywright.plan.keys.key_plan import KeyPlan
from keywright.serve.tenants.accounts import Accounts, add
from tests.serve.network import make_full, network

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")

DATA = b"some bytes of a result" * 1000


def by_new_file(path: Path) -> None:
    with new_file(path) as temporary:
        temporary.write_bytes(DATA)


@cache
def compiled() -> compiler.Program:
    """One program: it states when it was compiled."""
    return compiler.compile_program(network(), compiler.Target(slots=512, levels=3))


def by_program(path: Path) -> None:
    compiler.save(compiled(), path)


def by_accounts(path: Path) -> None:
    add(path, "somebody")


def by_plan(path: Path) -> None:
    plan_file.save(compiled_plan(), path)


@cache
def compiled_plan() -> KeyPlan:
    return make_full().execution.plan


def by_threshold_server(path: Path) -> None:
    roster = Roster((1, 2), (bytes(32), bytes([1]) * 32), (bytes(32),) * 2)
    ServerState(path, Encoding(bound=1.0, max_clients=2, max_weight=9), 2).store(roster, bytes(16), 3, 1)


@cache
def secret_key() -> kw.SecretKey:
    return kw.SecretKey.generate(kw.Parameters.from_bits(10, [40, 30], [40], 30, insecure=True))


def by_secret(path: Path) -> None:
    secret_key().save(path)


def by_parameters(path: Path) -> None:
    secret_key().parameters.save(path)


ENGINE: dict[str, Callable[[Path], None]] = {"a secret key": by_secret, "parameters": by_parameters}
"""Those of the engine."""

WRITERS: dict[str, Callable[[Path], None]] = {
    "--out": by_new_file,
    "compiler.save": by_program,
    "accounts": by_accounts,
    "a plan": by_plan,
    "a threshold server's state": by_threshold_server,
}
ALL = WRITERS | ENGINE
OVERWRITING = sorted(set(ALL) - {"accounts"})
"""Those that do not read what was there."""

DIRECT: dict[str, str] = {
    "_reading/sealed.py": "the document of a folder that is being made",
    "_files.py": "the writer",
    "model/folder/description.py": "files of a folder that is being made",
    "search/encrypted_index.py": "files of a folder that is being made",
    "search/index.py": "files of a folder that is being made",
    "commands/steps/run.py": "files of a folder that is being made",
    "commands/steps/encrypt.py": "files of a folder that is being made",
    "serve/served/model.py": "a folder gets its name when it is complete",
    "serve/storage/state_folder.py": "a lock",
    "serve/storage/folder.py": "pieces of an upload, which are appended",
    "serve/storage/incoming_file.py": "parts of a file that others read meanwhile",
    "serve/storage/external/copies.py": "parts of a file that others read meanwhile",
    "program/file/storage.py": "entries of an archive within the writer's file",
    "serve/tenants/audit.py": "lines that are appended",
    "serve/workers/worker.py": "a setting of its own process",
    "commands/models/infer.py": "the file of `new_file`",
    "commands/steps/decrypt.py": "the file of `new_file`",
    "commands/planning/calibrate.py": "the file of `new_file`",
}
"""Modules that write files by themselves, and why."""


def writes(call: ast.Call) -> bool:
    """Whether a call opens a file to write it, or moves one."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    texts = [argument for argument in ast.walk(call) if isinstance(argument, ast.Constant)]
    modes = {text.value for text in texts if isinstance(text.value, str) and len(text.value) <= 3}
    flags = {part.attr for part in ast.walk(call) if isinstance(part, ast.Attribute)}
    if name == "open":
        writing = any(set(mode) & set("wax+") and set(mode) <= set("rwaxbt+") for mode in modes)
        return writing or bool(flags & {"O_WRONLY", "O_RDWR"})
    if name in ("replace", "rename"):
        # Of text, `replace` takes two arguments, and of records only named ones.
        return len(call.args) == 1 and isinstance(call.func, ast.Attribute)
    others = (
        "write_text",
        "write_bytes",
        "mkstemp",
        "NamedTemporaryFile",
        "move",
        "copyfile",
        "copy2",
        "savez",
    )
    return name in others and isinstance(call.func, ast.Attribute)


def test_files_are_written_by_one_writer() -> None:
    """Any other one replaces devices, waits for pipes, or leaves half of a file."""
    package = Path(kw.__file__).parent
    paths = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and writes(node)
    }
    assert paths == set(DIRECT)


ENGINE_WRITERS = {
    "wire/src/stream/file.rs": "the writer",
    "wire/src/stream/temporary.rs": "the writer's temporary files",
    "pool/src/file/mod.rs": "a pool's data file gets its name when it is complete, and replaces nothing",
    "pool/src/file/disk.rs": "a register of random name",
    "pool/src/file/register.rs": "a register, which is opened",
}
"""Files of the engine that write files by themselves, and why."""

ENGINE_CALLS = re.compile(
    r"(?<!Atomic)File::(?:create|options)|OpenOptions::new|fs::(?:write|rename|copy|hard_link)|symlink\("
)


def test_files_of_the_engine_are_written_by_one_writer() -> None:
    crates = Path(__file__).parents[3] / "crates"
    paths = {
        path.relative_to(crates).as_posix()
        for path in crates.glob("*/src/**/*.rs")
        if ENGINE_CALLS.search(path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0])
    }
    assert paths == set(ENGINE_WRITERS)


def test_the_walk_sees_a_writer() -> None:
    seen = ["open(p, 'w')", "p.open('ab')", "p.open(mode='r+b')", "os.open(p, os.O_WRONLY | os.O_CREAT)"]
    seen += ["p.write_text('x')", "temporary.replace(path)", "os.rename(a)", "tempfile.mkstemp()"]
    unseen = [
        "open(p)",
        "p.open('rb')",
        "name.replace('a', 'b')",
        "replace(path, data)",
        "os.open(p, os.O_RDONLY)",
    ]
    for text, expected in [*((text, True) for text in seen), *((text, False) for text in unseen)]:
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call)
        assert writes(call) is expected, text


def test_a_block_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace(path, b"before")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("writer", OVERWRITING)
def test_a_pipe_gets_the_contents_and_stays(tmp_path: Path, writer: str) -> None:
    pipe, plain, contents = tmp_path / "pipe", tmp_path / "plain", list[bytes]()
    ALL[writer](plain)
    os.mkfifo(pipe, 0o600)
    reader = threading.Thread(target=lambda: contents.append(pipe.read_bytes()), daemon=True)
    reader.start()
    ALL[writer](pipe)
    reader.join()
    assert contents == [plain.read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "plain"}


@pytest.mark.parametrize(("mode", "owner"), [(0o644, None), (0o620, None), (0o602, None), (0o600, 65534)])
def test_no_secret_goes_into_a_pipe_that_another_user_can_read(
    tmp_path: Path, mode: int, owner: int | None
) -> None:
    """In a shared folder, anybody can make one of the expected name first."""
    pipe, received = tmp_path / "secret", list[bytes]()
    os.mkfifo(pipe)
    pipe.chmod(mode)
    if owner is not None:
        if os.geteuid() != 0 or not Path("/proc/self").exists():
            pytest.skip("only root can give a pipe to another user")
        os.chown(pipe, owner, -1)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with pytest.raises(OSError, match="a pipe that another user can read; make it with mkfifo -m 600"):
        secret_key().save(pipe)
    reader.join()
    assert received == [b""]


@pytest.mark.parametrize("writer", OVERWRITING)
def test_a_device_stays(tmp_path: Path, writer: str) -> None:
    """As root, ``--out /dev/null`` destroyed it."""
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    ALL[writer](link)
    assert link.is_symlink()
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.parametrize("writer", ALL)
def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path, writer: str) -> None:
    (tmp_path / "far").mkdir()
    link, far = tmp_path / "link", tmp_path / "far" / "file"
    link.symlink_to(far)
    ALL[writer](link)
    ALL[writer](link)
    assert link.is_symlink()
    assert far.is_file()
    assert not far.is_symlink()


def by_new_folder(path: Path) -> None:
    with new_folder(path) as place:
        (place / "secret").write_bytes(DATA)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no ways into open folders")
@pytest.mark.parametrize("writer", [*WRITERS.values(), by_new_folder])
def test_nothing_is_written_through_a_link_that_has_a_temporary_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Callable[[Path], None]
) -> None:
    """In a shared folder, others can rename what is being written, and put their own under its name."""
    create, links = _files._create, list[Path]()

    def attacked(place: Path, prefix: str, folder: bool) -> tuple[Path, int | None]:
        new, handle = create(place, prefix, folder)
        new.rename(new.with_name("moved"))
        elsewhere = tmp_path / f"elsewhere-{len(links)}"
        elsewhere.mkdir() if folder else elsewhere.touch()
        new.symlink_to(elsewhere)
        links.append(elsewhere)
        return new, handle

    monkeypatch.setattr(_files, "_create", attacked)
    (tmp_path / "shared").mkdir()
    writer(tmp_path / "shared" / "result")
    assert links
    for elsewhere in links:
        assert list(elsewhere.iterdir()) == [] if elsewhere.is_dir() else elsewhere.read_bytes() == b""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no ways into open folders")
def test_a_file_of_a_new_folder_is_written_there_whatever_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its temporary file was made by the folder's name."""
    make, elsewhere = tempfile.mkstemp, tmp_path / "elsewhere"
    elsewhere.mkdir()

    def attacked(*arguments: Any) -> tuple[int, str]:
        (new,) = tmp_path.glob("*.partial")
        new.rename(tmp_path / "moved")
        new.symlink_to(elsewhere)
        handle, name = make(*arguments)
        new.unlink()
        (tmp_path / "moved").rename(new)
        assert not list(elsewhere.iterdir())
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", attacked)
    with new_folder(tmp_path / "result") as place:
        replace(place / "secret", DATA)
    assert (tmp_path / "result" / "secret").read_bytes() == DATA


def test_what_can_be_neither_replaced_nor_written_is_an_error(tmp_path: Path) -> None:
    import socket

    temporary, path = tmp_path / "new", tmp_path / "socket"
    temporary.write_bytes(DATA)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with (
            temporary.open("rb") as file,
            pytest.raises(OSError, match="neither a file, a pipe nor a character device"),
        ):
            put(temporary, file, path)
    assert temporary.read_bytes() == DATA


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A client's folder with a secret and a public key."""
    parameters = kw.Parameters.from_bits(11, [55, 45, 45, 45], [50, 50], 45, insecure=True)
    folder = tmp_path_factory.mktemp("client")
    parameters.save(folder / "parameters.kw")
    compiler.save(
        compiler.compile_program(network(), compiler.Target(slots=parameters.max_slots, levels=3)),
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
    errors: list[BaseException] = []

    def load() -> None:
        try:
            kw.load_client(place, insecure=True)
        except FolderError as error:
            errors.append(error)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join()
    assert not thread.is_alive()
    assert len(errors) == 1
    assert name in str(errors[0])


def test_a_client_folder_is_read(folder: Path) -> None:
    """The folder of the tests above is a good one."""
    assert np.asarray(kw.load_client(folder, insecure=True).program.input.layout.period) > 0


def test_a_lock_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process kept every other one waiting for ever."""
    import fcntl

    monkeypatch.setattr(_files, "LOCK_S", 0.0)
    lock = tmp_path / ".accounts.json.lock"
    with lock.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(FolderError, match="another process has locked") as refusal:
            add(tmp_path / "accounts.json", "somebody")
    assert refusal.value.code == "locked"
    add(tmp_path / "accounts.json", "somebody")
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match=f"{re.escape(str(lock))} is a link") as refusal:
        add(tmp_path / "accounts.json", "somebody")
    assert refusal.value.code == "place"
    assert not (tmp_path / "elsewhere").exists()


def test_a_group_shares_a_lock_as_the_umask_says(tmp_path: Path) -> None:
    """Locks were for one user alone, also where a group has the folder."""
    before = os.umask(0o007)
    try:
        add(tmp_path / "accounts.json", "somebody")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / ".accounts.json.lock").stat().st_mode) == 0o660
    assert stat.S_IMODE((tmp_path / "accounts.json").stat().st_mode) == 0o600


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_write_one_path(tmp_path: Path) -> None:
    """They drew the same temporary names, and removed each other's files."""
    path, parameters = tmp_path / "parameters.kw", kw.Parameters.preset(kw.Parameters.presets()[0])
    # What names are drawn from exists before the forks.
    parameters.save(path)
    children = []
    for _ in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                for _ in range(100):
                    parameters.save(path)
                os._exit(0)
            finally:
                os._exit(1)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208
    assert path.read_bytes() == parameters.to_bytes()


def test_keys_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    """Eight processes kept three."""
    path, keys = tmp_path / "accounts.json", list[str]()
    gate = threading.Barrier(8)

    def make(number: int) -> None:
        gate.wait()
        keys.extend(add(path, f"tenant-{number % 4}") for _ in range(4))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accounts = Accounts.load(path)
    assert len(keys) == 32
    assert all(accounts.known(f"Bearer {key}") for key in keys)
    assert path.stat().st_mode & 0o077 == 0
