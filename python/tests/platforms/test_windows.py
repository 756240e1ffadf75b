"""What the package does on a system that lacks what Linux has, played on this one."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.plan.memory import machine, windows
from keywright.runtime import run_clear
from keywright.serve import Service
from keywright.serve.workers import resident_keys, workers
from tests.serve.network import INPUTS, listening, make_thin

IMPORTS = """
import asyncio, ctypes, importlib, json, logging, os, pkgutil, platform, shutil, signal, socket, sqlite3, ssl
import subprocess, sys, tempfile, types, uuid
import highspy, numpy, onnx, rich.console, rich.progress, rich.table, shtab, starlette.applications, uvicorn

ABSENT = ("fcntl", "grp", "pwd", "resource", "termios")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ABSENT:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
locked = []
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_LOCK, msvcrt.LK_NBLCK = 1, 2
msvcrt.locking = lambda file, mode, count: locked.append((mode, count))
sys.modules["msvcrt"] = msvcrt
sys.platform = "win32"
for name in ("fork", "getloadavg", "getuid", "killpg", "sysconf"):
    delattr(os, name)
for name in ("send_fds", "recv_fds"):
    delattr(socket, name)

import keywright

imported = 0
for module in pkgutil.walk_packages(keywright.__path__, "keywright."):
    # Ray is an extra that has no tests with the others.
    if module.name.endswith("__main__") or module.name.startswith("keywright.serve.cluster."):
        continue
    importlib.import_module(module.name)
    imported += 1

from pathlib import Path
from keywright._files import locked as hold
from keywright.serve.overview import _resident
from keywright.serve.storage.state_folder import StateFolder

folder = Path(sys.argv[1])
StateFolder(folder)
with hold(folder / "other"):
    pass
assert locked == [(2, 1), (2, 1)], locked
assert _resident(1 << 30) == 0
print(imported)
"""


def test_every_module_is_imported_without_what_windows_lacks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORTS, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 100


class Kernel:
    """What is called of Windows."""

    def __init__(self, answers: bool = True) -> None:
        self.answers = answers

    def GlobalMemoryStatusEx(self, status: Any) -> bool:
        structure = status._obj
        assert structure.length == ctypes.sizeof(structure) == 64
        structure.total, structure.available = 16 << 30, 5 << 30
        return self.answers

    def GetCurrentProcess(self) -> int:
        return -1

    def K32GetProcessMemoryInfo(self, process: int, counters: Any, length: int) -> bool:
        structure = counters._obj
        assert (process, length, structure.length) == (-1, ctypes.sizeof(structure), ctypes.sizeof(structure))
        structure.resident, structure.peak = 100 << 20, 300 << 20
        return self.answers


def test_windows_says_how_much_memory_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "WINDOWS", True)
    monkeypatch.setattr(windows, "kernel32", Kernel)
    assert machine.available_bytes() == 5 << 30
    assert machine.resident_bytes() == 100 << 20
    assert machine.peak_bytes() == 300 << 20
    assert machine.default_budget() == int(0.8 * ((5 << 30) + (100 << 20)))
    for ask in (windows.available_bytes, windows.process_bytes):
        with pytest.raises(OSError, match="does not say"):
            ask(Kernel(answers=False))


def test_other_systems_have_no_such_library() -> None:
    with pytest.raises(OSError, match="not Windows"):
        windows.kernel32()


def test_windows_has_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_keys, "WINDOWS", True)
    assert resident_keys._descriptors() == resident_keys.WINDOWS_DESCRIPTORS


def test_workers_without_shared_memory_read_keys_for_every_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is passed to the process: Windows and macOS have no sealed memory."""
    monkeypatch.setattr(workers, "SHARES", False)
    thin = make_thin()
    pool = workers.Workers(1, 4 * thin.resident_key_bytes)
    service = Service(thin, tmp_path, workers=pool)
    sample = np.random.default_rng(1).uniform(0, 1, (1, INPUTS))
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        for _ in range(2):
            assert np.abs(session.infer(sample) - run_clear(thin.program, sample)).max() < 1e-3
    assert (pool.keys.loads, pool.keys.hits, pool.keys.count) == (2, 0, 0)
    service.close()
    pool.close()
