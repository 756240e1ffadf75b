"""The libraries that each wheel links, compared with the tag in its name: some platforms cannot run here."""

import re
from pathlib import Path

from release.checkout import TOOLS
from release.installed.trial import Failed, Skipped, environment, fresh, one, run

MACHINES = ("x86_64", "aarch64")

NEEDED = """\
import io, sys, zipfile
from elftools.elf.elffile import ELFFile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    dynamic = ELFFile(io.BytesIO(wheel.read("keywright/_core.abi3.so"))).get_section_by_name(".dynamic")
print(*(tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"))
"""
"""Prints the libraries that the extension of a wheel links."""


def try_tags(files: Path, scratch: Path) -> None:
    """Check that wheels need no newer C library than their names say, and wheels for musl only musl."""
    auditwheel = TOOLS / "auditwheel"
    if not auditwheel.exists():
        raise Skipped("there is no auditwheel: `make dist` installs it")
    fresh(scratch)
    for machine in MACHINES:
        check_glibc(one(files, f"keywright-*-manylinux_*_{machine}.whl"), auditwheel, scratch)
    for machine in MACHINES:
        wheel = one(files, f"keywright-*-musllinux_*_{machine}.whl")
        # auditwheel compares with the C library of this machine, which is another one.
        needed = run(TOOLS / "python", "-c", NEEDED, wheel, cwd=scratch, env=environment()).split()
        if needed != ["libc.so"]:
            raise Failed(f"{wheel.name} links {', '.join(needed)}; only libc.so is allowed")
        print(f"{wheel.name}: links libc.so alone")


def check_glibc(wheel: Path, auditwheel: Path, scratch: Path) -> None:
    """Compare the tag that auditwheel finds with the tag in a wheel's name."""
    text = run(auditwheel, "show", wheel, cwd=scratch, env=environment())
    match = re.search(r'platform\s+tag:\s+"manylinux_(\d+)_(\d+)_\w+"', text)
    promised = re.search(r"manylinux_(\d+)_(\d+)_", wheel.name)
    if match is None or promised is None:
        raise Failed(f"auditwheel finds no tag for {wheel.name}:\n{text}")
    if tuple(map(int, match.groups())) > tuple(map(int, promised.groups())):
        raise Failed(f"{wheel.name} needs glibc {match[1]}.{match[2]}, which is newer than its name says")
    print(f"{wheel.name}: needs glibc {match[1]}.{match[2]} or older")
