"""What `make test-full` needs beside `make test`: it must not leave tests out because a tool is missing.

    python scripts/full_tools.py

Prints each missing tool and what has it; the exit status is 1 if there is one.
"""

import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = {
    "c++": "g++",
    "perl": "perl",
    "valgrind": "valgrind",
    "pkg-config": "pkg-config",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "arm-linux-gnueabihf-gcc": "gcc-arm-linux-gnueabihf",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi",
    "qemu-aarch64": "qemu-user",
    "qemu-arm": "qemu-user",
    "qemu-system-arm": "qemu-system-arm",
}
"""Programs, and packages of requirements/full.apt that have them."""

LIBRARIES = {"libcurl": "libcurl4-openssl-dev", "libcjson": "libcjson-dev"}
OTHERS = {"node": "Node.js 22", "npm": "Node.js 22", "rustup": "https://rustup.rs"}


def missing() -> list[str]:
    """The tools that this machine lacks, each with what has it."""
    sources = {**{tool: f"`make full-system` installs {name}" for tool, name in TOOLS.items()}, **OTHERS}
    paths = [f"{tool}: {source}" for tool, source in sources.items() if shutil.which(tool) is None]
    if shutil.which("pkg-config") is not None:
        for library, name in LIBRARIES.items():
            if subprocess.run(["pkg-config", "--exists", library], check=False).returncode != 0:
                paths.append(f"{library}: `make full-system` installs {name}")
    postgres = shutil.which("postgres") or any(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not postgres:
        paths.append("postgres: `make full-system` installs postgresql")
    return paths


def main() -> int:
    """Report what is missing."""
    lines = missing()
    for line in lines:
        print(f"missing {line}", file=sys.stderr)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
