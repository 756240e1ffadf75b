"""Install pinned packages, with hashes, into the environment of this interpreter or of another.

    python scripts/install_pins.py requirements/dev.txt

uv takes a tenth of pip's time, but does not read the user's settings for pip. They are handed to it: index,
further indices, folders of wheels, trusted hosts, certificate authorities. pip does the work itself where
there is a setting that uv has no option for, where no list pins uv, and where uv has no wheel.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from ast import literal_eval
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

SECTIONS = ("global", "install", ":env:")
"""Sections of pip's settings; later ones hold over earlier ones."""

OPTIONS = {
    "index-url": "--index-url",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}
"""Settings of pip, each a list of words, and uv's options for them."""

PLAIN = {
    "cache-dir", "default-timeout", "timeout", "disable-pip-version-check", "no-input", "progress-bar",
    "quiet", "retries", "root-user-action", "verbose", "no-color", "require-virtualenv",
}  # fmt: skip
"""Settings of pip that say nothing of what is installed or where it comes from."""

PIN = re.compile(r"^uv==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def settings(listed: str) -> dict[str, str]:
    """Settings that hold for `pip install`, from what `pip config list` printed."""
    settings: dict[str, str] = {}
    for section in SECTIONS:
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.rpartition(".")[0] == section:
                settings[name.rpartition(".")[2]] = str(literal_eval(value))
    return settings


def options(configured: Mapping[str, str]) -> list[str] | None:
    """uv's options for settings of pip; None where there are none."""
    arguments: list[str] = []
    for name, value in configured.items():
        if name in OPTIONS:
            arguments += [f"{OPTIONS[name]}={word}" for word in value.split()]
        elif name == "no-index" and value.lower() in {"1", "true", "yes", "on"}:
            arguments.append("--no-index")
        elif name not in PLAIN | {"cert", "no-index"}:
            return None
    return arguments


def pip_settings() -> dict[str, str]:
    """The user's settings for `pip install`."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    return settings(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def uv_environment(configured: Mapping[str, str]) -> dict[str, str]:
    """The environment of uv for settings of pip."""
    return os.environ | ({"SSL_CERT_FILE": configured["cert"]} if "cert" in configured else {})


def install(python: str, lists: Sequence[Path]) -> list[str]:
    """Install the packages of the lists for an interpreter; return the command that did."""
    strict = ["--quiet", "--no-deps", "--require-hashes"]
    files = [word for path in lists for word in ("-r", str(path))]
    configured = pip_settings()
    arguments = options(configured)
    environment, command = dict(os.environ), [python, "-m", "pip", "install", "--no-compile", *strict, *files]
    if arguments is not None and (find_spec("uv") is not None or install_uv(lists)):
        # Settings of uv itself would hold over those of pip.
        command = [sys.executable, "-m", "uv", "--no-config", "pip", "install", f"--python={python}"]
        command += [*strict, *arguments, *files]
        environment = uv_environment(configured)
    subprocess.run(command, env=environment, check=True)
    return command


def install_uv(lists: Sequence[Path]) -> bool:
    """Install the pinned uv for this interpreter; False where no list pins it, or there is no wheel of it."""
    pins = [pin[0] for path in lists if (pin := PIN.search(path.read_text(encoding="utf-8")))]
    if not pins:
        return False
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "uv.txt"
        own.write_text(pins[0], encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        done = subprocess.run([*command, "--only-binary=:all:", "-r", str(own)], check=False)
        return done.returncode == 0


def main() -> int:
    """Install the lists that the command line names."""
    parser = argparse.ArgumentParser(
        description="Install pinned packages into this interpreter's environment."
    )
    parser.add_argument("--python", default=sys.executable, help="of another environment")
    parser.add_argument("lists", nargs="+", type=Path, help="files of pins with hashes")
    arguments = parser.parse_args()
    try:
        install(arguments.python, arguments.lists)
    except subprocess.CalledProcessError as error:
        print(f"ended with status {error.returncode}: {shlex.join(error.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
