"""The wheel for 64-bit ARM, in Debian's Python for that processor and user-mode emulation."""

import sys
from pathlib import Path

from release.installed.debian import unpack
from release.installed.trial import Failed, environment, fresh, need, one, run

PYTHON = "3.11"
"""The Python of the release of Debian that `release.installed.debian` names."""

PLATFORMS = ("2_28", "2_27", "2_26", "2_24", "2_17")
"""Versions of the C library that wheels of what the package needs are built for."""


def try_arm_wheel(files: Path, scratch: Path) -> None:
    """Run `keywright demo` from the wheel for ARM."""
    wheel = one(files, "keywright-*-manylinux_*_aarch64.whl")
    need("qemu-aarch64")
    root = unpack(fresh(scratch), "aarch64", f"python{PYTHON}", "libstdc++6")
    site = scratch / "site"
    platforms = [f"manylinux_{version}_aarch64" for version in PLATFORMS] + ["manylinux2014_aarch64"]
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:"),
        *(word for platform in platforms for word in ("--platform", platform)),
        *("--python-version", PYTHON, "--implementation", "cp", "--target", site, wheel),
        cwd=scratch,
        env=environment(),
    )
    clean = environment(extra={"PYTHONPATH": str(site)})
    python = ("qemu-aarch64", "-L", root, root / "usr" / "bin" / f"python{PYTHON}")
    machine = run(*python, "-c", "import platform; print(platform.machine())", cwd=scratch, env=clean)
    if machine.strip() != "aarch64":
        raise Failed(f"the emulated machine is {machine.strip()}")
    print(run(*python, "-m", "keywright", "demo", cwd=scratch, env=clean), end="")
