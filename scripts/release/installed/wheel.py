"""The wheel of this machine, in a new virtual environment that knows no Rust."""

import os
import platform
import sys
from pathlib import Path

from release.installed.trial import environment, fresh, one, run

CHECKS = """\
import importlib.metadata, shutil
import keywright
assert shutil.which("cargo") is None and shutil.which("rustc") is None
assert keywright.__version__ == importlib.metadata.version("keywright"), keywright.__version__
try:
    import keywright.insecure
except ImportError:
    pass
else:
    raise SystemExit("the wheel has the insecure scheme")
print(keywright.__version__)
"""


PATTERNS = {"Linux": "manylinux_*", "Darwin": "macosx_*", "Windows": "win_*"}
"""What the tags of wheels call the systems."""


def programs(venv: Path) -> Path:
    """Where a virtual environment has its programs."""
    return venv / ("Scripts" if os.name == "nt" else "bin")


def use(venv: Path, scratch: Path) -> None:
    """Import the installed package and run the demonstration."""
    clean = environment(programs(venv))
    print(run(programs(venv) / "python", "-c", CHECKS, cwd=scratch, env=clean), end="")
    print(run(programs(venv) / "keywright", "demo", cwd=scratch, env=clean), end="")


def try_wheel(files: Path, scratch: Path) -> None:
    """Install the wheel for this machine and run `keywright demo`, in every Python that PYTHONS names."""
    for number, python in enumerate(os.environ.get("PYTHONS", sys.executable).split()):
        print(run(python, "--version", cwd=files, env=environment()), end="")
        install(files, scratch / str(number), python)


def install(files: Path, scratch: Path, python: str) -> None:
    """Install the wheel for this machine and use it in one Python."""
    wheel = one(files, f"keywright-*-{PATTERNS[platform.system()]}{platform.machine().lower()}.whl")
    venv = fresh(scratch) / "venv"
    run(python, "-m", "venv", venv, cwd=scratch, env=environment())
    run(programs(venv) / "pip", "install", "--quiet", wheel, cwd=scratch, env=environment())
    use(venv, scratch)


def try_source(files: Path, scratch: Path) -> None:
    """Build the source distribution as pip does, install the result, and run `keywright demo`."""
    source = one(files, "keywright-[0-9]*.tar.gz")
    venv = fresh(scratch) / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=scratch, env=environment())
    pip = programs(venv) / "pip"
    rust = environment(Path.home() / ".cargo" / "bin")
    run(pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", scratch, source, cwd=scratch, env=rust)
    run(pip, "install", "--quiet", one(scratch, "*.whl"), cwd=scratch, env=environment())
    use(venv, scratch)
