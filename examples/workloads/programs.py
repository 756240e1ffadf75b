"""What the submissions share: the programs that a harness starts, and its folders."""

import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build"

PROGRAM = """#!{python}
import sys

sys.path.insert(0, {folder!r})
from {module} import main

main({name!r}, sys.argv[1:])
"""


def write_programs(steps: Mapping[str, Callable[[int], None]]) -> None:
    """Write a program for each step into the folder `build`. It calls `main` of the step's module."""
    BUILD.mkdir(exist_ok=True)
    for name, step in steps.items():
        path = BUILD / name
        module = step.__module__
        path.write_text(PROGRAM.format(python=sys.executable, folder=str(HERE), module=module, name=name))
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def emptied(folder: Path) -> Path:
    """Return the folder, after deleting files of an earlier run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def say(who: str, text: str) -> None:
    """Print a line among the harness's."""
    print(f"         [{who}] {text}", flush=True)
