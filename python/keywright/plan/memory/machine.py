"""The memory of the machine and of this process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from keywright._core import keep_large_blocks, trim_memory
from keywright._processes import unforked_lock

from . import windows

WINDOWS: bool = sys.platform == "win32"
if not WINDOWS:
    import resource

SHARE = 0.8
"""Default share of the free memory that a process uses."""

CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Limit and use of a control group, of version 2 and of version 1."""

UNLIMITED = 1 << 60
"""A limit of a control group that means no limit."""

_MEMORY = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


_keepers: list[None] = []
_LOCK = unforked_lock()


@contextmanager
def large_blocks_kept() -> Iterator[None]:
    """Let freed memory serve the next arrays, whose pages then exist already, until all that keep it have
    ended; then it goes back to the operating system."""
    with _LOCK:
        _keepers.append(None)
        keep_large_blocks(True)
    try:
        yield
    finally:
        with _LOCK:
            _keepers.pop()
            if not _keepers:
                keep_large_blocks(False)
                trim_memory()


def available_bytes() -> int:
    """Return the memory that programs can allocate without swapping, within the limits of the control groups
    of this process. On macOS, this is half of all memory."""
    if WINDOWS:
        return windows.available_bytes(windows.kernel32())
    result = _fields(_MEMORY)
    if "MemAvailable" not in result:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return min([result["MemAvailable"], *_left_in_groups()])


def default_budget() -> int:
    """Return the default budget of a process: `SHARE` of the free memory plus its current memory."""
    return int(SHARE * (available_bytes() + resident_bytes()))


def resident_bytes() -> int:
    """Return the current memory of this process, or its peak on systems that do not report it."""
    if WINDOWS:
        return windows.process_bytes(windows.kernel32())[0]
    return _fields(_STATUS).get("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    if WINDOWS:
        return windows.process_bytes(windows.kernel32())[1]
    peak = _fields(_STATUS).get("VmHWM")
    if peak is not None:
        return peak
    counted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return counted if sys.platform == "darwin" else counted * 1024


def _fields(path: Path) -> dict[str, int]:
    """Read amounts in kB from a file of the kernel, in bytes; empty if there is no such file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    split = (line.partition(":") for line in lines)
    return {name: 1024 * int(rest.split()[0]) for name, _, rest in split if rest.endswith(" kB")}


def _left_in_groups() -> Iterator[int]:
    """Yield the memory that is left within each control group, from this process's own up."""
    try:
        own = [line.split(":", 2)[2] for line in _GROUP.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return
    folders = {_GROUPS}
    for name in own:
        place = _GROUPS / name.lstrip("/")
        folders |= {place, *(parent for parent in place.parents if parent.is_relative_to(_GROUPS))}
    for folder in folders:
        for limit_name, used_name in CGROUP_FILES:
            try:
                limit = (folder / limit_name).read_text(encoding="utf-8").strip()
                used = (folder / used_name).read_text(encoding="utf-8").strip()
            except OSError:
                continue
            if limit.isdigit() and used.isdigit() and int(limit) < UNLIMITED:
                yield max(0, int(limit) - int(used))
