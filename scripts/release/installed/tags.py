"""What a wheel links, against what the tag in its name promises: for platforms that nothing here can run."""

import re
from pathlib import Path

from release.checkout import TOOLS
from release.installed.trial import Failed, Skipped, environment, fresh, one, run

WHEELS = tuple(
    f"keywright-*-{tag}_*_{machine}.whl"
    for tag in ("manylinux", "musllinux")
    for machine in ("x86_64", "aarch64")
)


def try_tags(files: Path, scratch: Path) -> None:
    """Every wheel's symbols and libraries are those of the C library that its name has, or an older one."""
    auditwheel = TOOLS / "auditwheel"
    if not auditwheel.exists():
        raise Skipped("there is no auditwheel: `make dist` installs it")
    fresh(scratch)
    for pattern in WHEELS:
        wheel = one(files, pattern)
        tag = wheel.stem.rsplit("-", 1)[1]
        text = run(auditwheel, "show", wheel, cwd=scratch, env=environment())
        found = re.search(r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"(\w+)"', text)
        if found is None:
            raise Failed(f"auditwheel names no tag for {wheel.name}:\n{text}")
        family, major, minor = re.match(r"([a-z]+)_(\d+)_(\d+)", found[1]).groups()  # type: ignore[union-attr]
        promised = re.match(r"([a-z]+)_(\d+)_(\d+)", tag)
        assert promised is not None, tag
        if family != promised[1] or (int(major), int(minor)) > (int(promised[2]), int(promised[3])):
            raise Failed(f"{wheel.name} needs {found[1]}, which is newer than its name says")
        print(f"{wheel.name}: consistent with {found[1]}")
