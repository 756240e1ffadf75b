"""The wheel for 64-bit ARM, in Debian's Python for that processor and user-mode emulation."""

import subprocess
import sys
from pathlib import Path

from release.installed.trial import Failed, Skipped, environment, fresh, need, one, run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE, PYTHON = "bookworm", "3.11"
PLATFORMS = ("2_28", "2_27", "2_26", "2_24", "2_17")
"""Versions of the C library that wheels of what the package needs are built for."""

SOURCES = "deb [signed-by={keyring}] http://deb.debian.org/debian {suite} main\n"

CONFIGURATION = """\
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
Dir::State "{folder}";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Debug::NoLocking "1";
"""


def unpack_python(folder: Path) -> Path:
    """Unpack Debian's Python for ARM, with all that it links, into a folder; nothing is installed."""
    need("apt-get", "dpkg-deb", "qemu-aarch64")
    if not KEYRING.exists():
        raise Skipped(f"there is no {KEYRING}: the packages come from Debian")
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(SOURCES.format(keyring=KEYRING, suite=SUITE), encoding="utf-8")
    (folder / "apt.conf").write_text(CONFIGURATION.format(folder=folder), encoding="utf-8")
    clean = environment(extra={"APT_CONFIG": str(folder / "apt.conf")})
    try:
        run("apt-get", "--quiet", "update", cwd=folder, env=clean)
    except Failed as error:
        raise Skipped(f"Debian's packages cannot be had: {error}") from error
    packages = (f"python{PYTHON}", "libstdc++6")
    download = ("--yes", "--quiet", "--download-only", "--no-install-recommends")
    run("apt-get", "install", *download, *packages, cwd=folder, env=clean)
    root = folder / "root"
    for package in sorted((folder / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    return root


def try_arm_wheel(files: Path, scratch: Path) -> None:
    """Run `keywright demo` from the wheel for ARM."""
    wheel = one(files, "keywright-*-manylinux_*_aarch64.whl")
    root = unpack_python(fresh(scratch))
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
