"""Run the tests of the package with the oldest versions that pyproject.toml allows, and the oldest Python.

    python scripts/lowest_versions.py [NAME ...] [--python PYTHON]

What an extra needs of another library can rule out that library's oldest version. So each group of extras has
an environment, with the tests of what it installs, and whatever else those tests import. The extension is the
one that `make test` tests. PyTorch and Ray are not tried: they take gigabytes.
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import install_pins
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "lowest"
TOOLS = ("flask-cors", "hypothesis", "moto[s3]", "packaging", "pytest", "pyyaml")
"""What the tests need besides, in any version that fits."""


@dataclass(frozen=True)
class Group:
    """Extras that are installed together, and tests of what they bring."""

    extras: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "models": Group(
        ("check", "images", "plot", "serve", "sklearn"), ("plan", "compiler", "commands", "model")
    ),
    "service": Group(("serve", "sklearn", "storage"), ("serve",)),
    "federated": Group(("federated", "sklearn"), ("federated",)),
}


def run(*command: str | Path, env: dict[str, str] | None = None) -> int:
    """Run a command; returns its status."""
    print("$", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def require(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command.

    Raises:
        SystemExit: it failed.
    """
    if run(*command, env=env) != 0:
        raise SystemExit(f"this failed: {' '.join(map(str, command))}")


def direct(pins: str, extras: tuple[str, ...]) -> list[str]:
    """The pins of what pyproject.toml itself names; what the tests need may change the others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] + [
        line for name in extras for line in project["optional-dependencies"][name]
    ]
    names = {canonicalize_name(Requirement(line).name) for line in lines}
    written_lines = [line for line in pins.splitlines(keepends=True) if re.match(r"[a-z]", line)]
    return [line for line in written_lines if canonicalize_name(line.partition("==")[0]) in names]


def test(name: str, group: Group, python: str) -> int:
    """Make the environment of a group and run its tests; returns the status of pytest."""
    uv, venv, lowest = Path(sys.executable).with_name("uv"), FOLDER / name, FOLDER / f"{name}.txt"
    require(uv, "venv", "--quiet", "--clear", "--python", python, venv)
    interpreter, configured = venv / "bin" / "python", install_pins.pip_settings()
    target = ("--quiet", "--python", interpreter, *(install_pins.options(configured) or ()))
    environment = install_pins.uv_environment(configured)
    require(
        *(uv, "pip", "compile", "--resolution", "lowest-direct", *target),
        *(word for extra in group.extras for word in ("--extra", extra)),
        *("pyproject.toml", "--output-file", lowest),
        env=environment,
    )
    require(uv, "pip", "install", *target, "--requirement", lowest, env=environment)
    constraint = FOLDER / f"{name}-direct.txt"
    constraint.write_text("".join(direct(lowest.read_text(encoding="utf-8"), group.extras)), encoding="utf-8")
    require(uv, "pip", "install", *target, "--constraint", constraint, *TOOLS, env=environment)
    (site,) = (venv / "lib").glob("python3*/site-packages")
    (site / "keywright.pth").write_text(f"{ROOT / 'python'}\n", encoding="utf-8")
    folders = [f"python/tests/{folder}" for folder in group.tests]
    # Old libraries warn of what is new; that is not what is tested.
    environment = os.environ | {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return run(interpreter, "-m", "pytest", "--quiet", "-W", "default", *folders, env=environment)


def main() -> int:
    """Returns 1 if the tests of a group failed."""
    parser = argparse.ArgumentParser(description="Test with the oldest versions of what the package needs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"groups: {', '.join(GROUPS)}")
    parser.add_argument("--python", default="3.11", help="version of Python")
    options = parser.parse_args()
    unknown = sorted({*options.names} - {*GROUPS})
    if unknown:
        parser.error(f"there is no group {', '.join(unknown)}: choose from {', '.join(GROUPS)}")
    failed = [name for name in options.names or GROUPS if test(name, GROUPS[name], options.python) != 0]
    if failed:
        print("tests failed with the oldest versions:", *failed, file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
