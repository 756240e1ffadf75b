"""Places where files cannot be read or written: every public loader, saver and command ends with an error
that names the place, and leaves nothing there.

A loader or saver that is in none of the tables fails a test.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright import bfv, compiler, search
from keywright._files import PARTIAL, new_file, new_folder, replacing, sweep
from keywright.cli import main
from keywright.compiler.front_ends import load_model
from keywright.errors import FolderError, KeywrightError
from keywright.plan.cost.calibration import Calibration
from keywright.plan.keys import plan_file
from keywright.serve import load_page, load_served
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.quotas import Quotas
from tests.serve.network import make_full, network

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other limits of names and files")

Use = Callable[[Path], object]


@cache
def parameters() -> kw.Parameters:
    return kw.Parameters.from_bits(10, [40, 30], [50], 30, insecure=True)


@cache
def generator() -> kw.KeyGenerator:
    return kw.KeyGenerator(kw.SecretKey.generate(parameters()))


@cache
def saved() -> dict[str, Use]:
    """What writes each kind of file, by the name of its saver."""
    generated, secret = generator(), kw.SecretKey.generate(parameters())
    keys = generated.evaluation_keys(rotations=[1])
    full, program = make_full(), compiler.compile_program(network(), compiler.Target(slots=512, levels=3))
    vectors = np.eye(64)
    return {
        "Parameters.save": parameters().save,
        "SecretKey.save": secret.save,
        "PublicKey.save": generated.public_key().save,
        "EvaluationKeys.save": keys.save,
        "KeyGenerator.save_evaluation_keys": lambda path: generated.save_evaluation_keys(path, list(keys)),
        "Ciphertext.save": kw.Encryptor(generated.public_key()).encrypt([0.5]).save,
        "SeededCiphertext.save": kw.Decryptor(secret).encrypt([0.5]).save,
        "Model.save": full.save,
        "ModelClient.save": full.client().save,
        "compiler.save": lambda path: compiler.save(program, path),
        "plan.save": lambda path: plan_file.save(full.execution.plan, path),
        "Index.save": search.Index.of(vectors).save,
        "accounts": lambda path: add(path, "somebody"),
        "new_file": lambda path: _fill(new_file, path),
        "new_folder": _fill_folder,
        "replacing": _replace,
    }


def _fill(block: Any, path: Path) -> None:
    with block(path) as place:
        place.write_bytes(bytes(1 << 16))


def _fill_folder(path: Path) -> None:
    with new_folder(path) as place:
        (place / "inside").write_bytes(bytes(1 << 16))


def _replace(path: Path) -> None:
    with replacing(path) as file:
        file.write(bytes(1 << 16))


LOADERS: dict[str, Use] = {
    "Parameters.load": kw.Parameters.load,
    "SecretKey.load": lambda path: kw.SecretKey.load(path, parameters()),
    "PublicKey.load": lambda path: kw.PublicKey.load(path, parameters()),
    "EvaluationKeys.load": lambda path: kw.EvaluationKeys.load(path, parameters()),
    "MasterKeys.load": lambda path: kw.keys.MasterKeys.load(path, parameters()),
    "Ciphertext.load": lambda path: kw.Ciphertext.load(path, parameters()),
    "SeededCiphertext.load": lambda path: kw.SeededCiphertext.load(path, parameters()),
    "BfvParameters.load": bfv.Parameters.load,
    "keys.inspect": kw.keys.inspect,
    "compiler.load": compiler.load,
    "plan.load": plan_file.load,
    "model.load": kw.load,
    "model.load_client": kw.load_client,
    "model.load_server": kw.load_server,
    "load_model": load_model,
    "Calibration.load": Calibration.load,
    "Accounts.load": Accounts.load,
    "Quotas.load": Quotas.load,
    "serve.load_page": load_page,
    "serve.load_served": load_served,
    "Index.load": search.Index.load,
    "EncryptedIndex.load": search.EncryptedIndex.load,
}

ELSEWHERE = {
    "BfvCiphertext.load": "the reader of `Ciphertext.load`",
    "BfvCiphertext.save": "the writer of `Ciphertext.save`",
    "BfvParameters.save": "the writer of `Parameters.save`",
    "BfvSeededCiphertext.load": "the reader of `Ciphertext.load`",
    "BfvSeededCiphertext.save": "the writer of `Ciphertext.save`",
    "CostModel.load_seconds": "a time",
    "EncryptedIndex.save": "as `Index.save`",
    "Identity.load": "a file of a folder that `load_client` reads",
    "Identity.save": "a file in `new_folder`",
    "MasterKeys.save": "the writer of `EvaluationKeys.save`",
    "Model.load": "`model.load`",
    "ModelClient.save_evaluation_keys": "`KeyGenerator.save_evaluation_keys`",
    "ModelClient.save_keys": "`KeyGenerator.save_evaluation_keys`",
    "ModelServer.load_keys": "the reader of `EvaluationKeys.load`",
    "PlanExecution.load_keys": "the reader of `EvaluationKeys.load`",
    "SumKey.load": "the reader of `SecretKey.load`",
    "SumKey.save": "the writer of `SecretKey.save`",
    "model.save_keys": "`KeyGenerator.save_evaluation_keys`",
}
"""Others, and what they share with those that are tried."""


def public() -> Iterator[str]:
    """The public functions and methods that load or save, by name."""
    for room in pkgutil.iter_modules(kw.__path__):
        if room.name.startswith("_") or room.name in ("cli", "commands"):
            continue
        for name, value in vars(importlib.import_module(f"keywright.{room.name}")).items():
            if name.startswith("_"):
                continue
            if inspect.isclass(value):
                methods = [each for each in dir(value) if each.startswith(("load", "save"))]
                yield from (f"{value.__name__}.{each}" for each in methods)
            elif callable(value) and name.startswith(("load", "save")):
                yield f"{room.name}.{name}"


def test_every_loader_and_saver_is_tried() -> None:
    assert set(public()) - LOADERS.keys() - saved().keys() == ELSEWHERE.keys()
    assert not ELSEWHERE.keys() & (LOADERS.keys() | saved().keys())


def test_what_is_written_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask says, but for what a key's owner sends to others."""
    before = os.umask(0)
    try:
        for name, save in saved().items():
            save(tmp_path / name)
    finally:
        os.umask(before)
    readable = {name for name in saved() if (tmp_path / name).stat().st_mode & 0o077}
    assert readable == {
        "Ciphertext.save",
        "EvaluationKeys.save",
        "KeyGenerator.save_evaluation_keys",
        "Parameters.save",
        "PublicKey.save",
        "SeededCiphertext.save",
    }


def bad(folder: Path) -> dict[str, Path]:
    """Paths at which nothing can be read or written."""
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "file").write_bytes(b"x")
    return {
        "beyond a loop": folder / "loop" / "x",
        "beyond a file": folder / "file" / "x",
        "a long name": folder / ("n" * 300),
        "a long path": Path(str(folder) + "/n" * 3000),
    }


def unreadable(folder: Path) -> dict[str, Path]:
    """Paths at which nothing can be read."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    others = {"a loop": "loop", "a folder": "folder", "a pipe": "pipe", "nothing": "none"}
    return bad(folder) | {name: folder / path for name, path in others.items()}


def unwritable(folder: Path) -> dict[str, Path]:
    """Paths at which nothing can be written."""
    (folder / "full").mkdir()
    (folder / "full" / "x").write_bytes(b"x")
    return bad(folder) | {"a folder": folder / "full"}


def refuse(use: Use, path: Path) -> None:
    """Check that it is refused, with an error that says where."""
    with pytest.raises((KeywrightError, OSError)) as caught:
        use(path)
    error = caught.value
    assert PARTIAL not in str(error)
    if isinstance(error, KeywrightError):
        assert path.name[:40] in str(error)
    else:
        assert isinstance(error, OSError)
        assert None not in (error.errno, error.filename)


@pytest.mark.parametrize("loader", LOADERS)
def test_what_cannot_be_read_is_named(loader: str, tmp_path: Path) -> None:
    for path in unreadable(tmp_path).values():
        refuse(LOADERS[loader], path)


@pytest.mark.parametrize("saver", sorted(saved()))
def test_what_cannot_be_written_is_named(saver: str, tmp_path: Path) -> None:
    paths = unwritable(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for path in paths.values():
        refuse(saved()[saver], path)
    assert [path for path in sorted(tmp_path.rglob("*")) if not path.name.endswith(".lock")] == before


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions hold, which they do not for root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("use", "closed"),
    [*((use, "folder") for use in [*LOADERS, *sorted(saved())]), *((use, "folder/x") for use in LOADERS)],
)
def test_what_is_forbidden_is_named(use: str, closed: str, tmp_path: Path) -> None:
    """A file, or its folder, that others have closed."""
    call, folder = (LOADERS | saved())[use], tmp_path / "folder"
    folder.mkdir()
    # What it imports may be forbidden, too.
    with suppress(KeywrightError, OSError):
        call(folder / "x")
    (folder / "x").touch()
    (tmp_path / closed).chmod(0)
    try:
        with without_privileges():
            refuse(call, folder / "x")
    finally:
        (tmp_path / closed).chmod(0o700)


@contextmanager
def little_room() -> Iterator[None]:
    """Files may have 300 bytes, as on a disk that becomes full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("saver", sorted(set(saved()) - {"Parameters.save", "accounts"}))
@pytest.mark.parametrize("before", [False, True], ids=["a new file", "a file of before"])
def test_a_full_disk_leaves_what_was_there(saver: str, before: bool, tmp_path: Path) -> None:
    """`Index.save` left a part of a folder, and errors of writing named no file."""
    path, folders = tmp_path / "saved", ("Model.save", "ModelClient.save", "Index.save", "new_folder")
    if before and saver not in folders:
        path.write_bytes(b"before")
    use = saved()[saver]
    with little_room(), pytest.raises((OSError, KeywrightError)) as caught:
        use(path)
    if isinstance(caught.value, OSError):
        assert caught.value.errno == errno.EFBIG
        assert str(caught.value.filename) == str(path)
    assert {each.name for each in tmp_path.iterdir()} == ({path.name} if path.exists() else set())
    assert not path.exists() or path.read_bytes() == b"before"
    use(path)


KILLED = """
import os, sys, time
from pathlib import Path
from keywright._files import new_file, new_folder, replacing
path = Path(sys.argv[2])
with {"new_file": new_file, "new_folder": new_folder, "replacing": replacing}[sys.argv[1]](path):
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("before", [False, True], ids=["a new path", "a path of before"])
@pytest.mark.parametrize("block", ["new_file", "new_folder", "replacing"])
def test_what_a_killed_writer_has_left_is_removed_by_the_next(
    block: str, before: bool, tmp_path: Path
) -> None:
    """A folder of keys stayed for ever. Another writer that still lives keeps its own."""
    path = tmp_path / "saved"
    command = [sys.executable, "-c", KILLED, block, str(path)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"writing\n"
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        assert len(list(tmp_path.iterdir())) == 2
        if before and block == "new_folder":
            path.mkdir()
            with pytest.raises(FolderError):
                saved()[block](path)
        else:
            path.write_bytes(b"before") if before else None
            saved()[block](path)
        (left,) = [each for each in tmp_path.iterdir() if each.name.endswith(PARTIAL)]
        assert writers[1].poll() is None
        writers[1].kill()
        writers[1].wait()
        sweep(path)
        assert not left.exists()
    finally:
        for writer in writers:
            with suppress(ProcessLookupError):
                writer.kill()
            writer.communicate()


@pytest.mark.parametrize("saver", sorted(saved()))
def test_every_writer_removes_what_killed_ones_have_left(saver: str, tmp_path: Path) -> None:
    """Those of the engine left theirs for ever. Each removes what another has left."""
    for mark in ("12345678", "abcdefg_", "zzzzzzz0"):
        (tmp_path / f".saved.{mark}{PARTIAL}").write_bytes(b"left")
    saved()[saver](tmp_path / "saved")
    assert not [each for each in tmp_path.iterdir() if each.name.endswith(PARTIAL)]


def test_links_and_files_of_others_are_not_removed(tmp_path: Path) -> None:
    """The next writer removes leftovers of its own path, and nothing behind links."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"x")
    (tmp_path / f".saved.12345678{PARTIAL}").symlink_to(victim)
    others = [tmp_path / f"{name}{PARTIAL}" for name in (".others.12345678", ".saved.1", ".saved.x.12345678")]
    for other in others:
        other.write_bytes(b"x")
    _replace(tmp_path / "saved")
    assert all(each.exists() for each in (victim, *others))


@pytest.mark.parametrize("block", ["new_file", "new_folder", "replacing"])
def test_what_was_removed_before_it_was_locked_is_made_anew(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process sweeps between the creation of a file and its lock."""
    maker = "mkstemp" if block == "replacing" else "mkdtemp"
    make, swept = getattr(tempfile, maker), list[object]()

    def make_and_sweep(*arguments: object) -> object:
        new = make(*arguments)
        if len(swept) < 2:
            swept.append(new)
            sweep(tmp_path / "saved")
            assert not list(tmp_path.iterdir())
        return new

    monkeypatch.setattr(tempfile, maker, make_and_sweep)
    saved()[block](tmp_path / "saved")
    assert len(swept) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize("inside", ["x", ""], ids=["a folder", "a file"])
def test_a_folder_that_another_process_made_meanwhile_stays(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, file = Path.rename, tmp_path / "saved" / inside

    def rename_late(self: Path, target: Path) -> Path:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"theirs")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", rename_late)
    with pytest.raises(FolderError, check=lambda error: error.code == "exists"):
        _fill_folder(tmp_path / "saved")
    assert file.read_bytes() == b"theirs"
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize("block", ["new_file", "new_folder", "replacing"])
def test_folders_that_cannot_be_read_are_written(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of mode 0300: their names can be neither listed nor synced."""

    def unless_unreadable(call: Any, path: Any, *arguments: Any, **keywords: Any) -> Any:
        if path in (tmp_path, str(tmp_path)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return call(path, *arguments, **keywords)

    with monkeypatch.context() as patches:
        for name in ("scandir", "open"):
            patches.setattr(os, name, partial(unless_unreadable, getattr(os, name)))
        saved()[block](tmp_path / "saved")
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]


def test_long_names_have_room_for_a_temporary_one(tmp_path: Path) -> None:
    for name in ("n" * 255, "\N{EURO SIGN}" * 85):
        with new_folder(tmp_path / "folder" / name) as folder:
            folder.name.encode()
        _replace(tmp_path / name)
        _fill(new_file, tmp_path / name)
        assert (tmp_path / name).stat().st_size == 1 << 16


COMMANDS: dict[str, list[str]] = {
    "compile": ["compile", "PATH", "--out", "x"],
    "compile --out": ["compile", "MODEL", "--range", "-1", "1", "--out", "PATH"],
    "info": ["info", "PATH"],
    "plan": ["plan", "PATH"],
    "keygen": ["keygen", "PATH", "--out", "x"],
    "infer": ["infer", "PATH", "--input", "PATH"],
    "infer --input": ["infer", "MODEL", "--range", "-1", "1", "--input", "PATH"],
    "encrypt": ["encrypt", "PATH", "--input", "PATH", "--out", "x"],
    "decrypt": ["decrypt", "PATH", "--input", "PATH", "--out", "x"],
    "run": ["run", "PATH", "--input", "PATH", "--out", "x"],
    "serve": ["serve", "PATH"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_name_what_they_cannot_read_or_write(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message, and no traceback."""
    import onnx

    monkeypatch.chdir(tmp_path)
    model = tmp_path / "model.onnx"
    onnx.save(network(), model)
    for what, path in unreadable(tmp_path).items():
        if "--out" in command and what in ("nothing", "a pipe", "a loop"):
            continue
        words = [word.replace("PATH", str(path)).replace("MODEL", str(model)) for word in COMMANDS[command]]
        assert main(words) == 2, what
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert error.startswith("error") or "error" in error
    assert not (tmp_path / "x").exists()
