"""What memory the machine has, and what this process takes."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

SHARE = 0.8
"""Of what is free, what a process takes where nobody says how much it may."""

CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Limit and use of a control group, of the second and of the first version."""

UNLIMITED = 1 << 60
"""A limit of a control group that is none."""

_MEMORY = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Memory that programs can take now without swapping, within the limits of the control groups that this
    process is in. Where the system does not say (other than Linux): half of all memory."""
    found = _fields(_MEMORY)
    if "MemAvailable" not in found:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return min([found["MemAvailable"], *_left_in_groups()])


def default_budget() -> int:
    """What a process may take where nobody says how much: `SHARE` of what is free and of what it has."""
    return int(SHARE * (available_bytes() + resident_bytes()))


def resident_bytes() -> int:
    """Memory that this process has now; where the system does not say, the most that it had."""
    return _fields(_STATUS).get("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """The most memory that this process has had."""
    peak = _fields(_STATUS).get("VmHWM")
    if peak is not None:
        return peak
    counted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return counted if sys.platform == "darwin" else counted * 1024


def _fields(path: Path) -> dict[str, int]:
    """Amounts in kB of a file of the kernel, in bytes; nothing where there is no such file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    split = (line.partition(":") for line in lines)
    return {name: 1024 * int(rest.split()[0]) for name, _, rest in split if rest.endswith(" kB")}


def _left_in_groups() -> Iterator[int]:
    """What the limit of each control group leaves, from this process's own up."""
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
