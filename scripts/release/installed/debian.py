"""Debian's packages for any processor, unpacked into a folder; nothing is installed."""

import subprocess
from pathlib import Path

from release.installed.trial import Failed, Skipped, environment, need, run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "bookworm"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What Debian calls the processors."""

SOURCES = "deb [signed-by={keyring}] http://deb.debian.org/debian {suite} main\n"

CONFIGURATION = """\
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
Dir::State "{folder}";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Debug::NoLocking "1";
"""


def unpack(folder: Path, machine: str, *packages: str) -> Path:
    """Unpack packages for a processor, with all that they need; returns the folder that is their root.

    Raises:
        Skipped: this system has no apt, or it does not reach the packages.
    """
    need("apt-get", "dpkg-deb")
    if not KEYRING.exists():
        raise Skipped(f"there is no {KEYRING}: the packages come from Debian")
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(SOURCES.format(keyring=KEYRING, suite=SUITE), encoding="utf-8")
    configuration = CONFIGURATION.format(architecture=ARCHITECTURES[machine], folder=folder)
    (folder / "apt.conf").write_text(configuration, encoding="utf-8")
    clean = environment(extra={"APT_CONFIG": str(folder / "apt.conf")})
    try:
        run("apt-get", "--quiet", "update", cwd=folder, env=clean)
    except Failed as error:
        raise Skipped(f"Debian's packages cannot be had: {error}") from error
    download = ("--yes", "--quiet", "--download-only", "--no-install-recommends")
    run("apt-get", "install", *download, *packages, cwd=folder, env=clean)
    root = folder / "root"
    for package in sorted((folder / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    return root
