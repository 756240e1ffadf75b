"""Published packages in folders of their own.

Each entry pins one package by version and digest: a package of PyPI in ``requirements/NAME.txt``, one of npm
in ``requirements/NAME.json``, a lock file. Its files are unpacked; nothing that it needs is installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE / ".cache"


def install(name: str, cache: Path = CACHE) -> Path:
    """The folder with the files of an entry's package, downloaded by the first call.

    Raises:
        subprocess.CalledProcessError: the package cannot be downloaded, or has another digest.
    """
    folder, unfinished = cache / name, cache / f"{name}.part"
    if folder.is_dir():
        return folder
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    requirements = HERE / "requirements" / f"{name}.txt"
    if requirements.is_file():
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
        pinned_only = ["--no-deps", "--require-hashes", "--requirement", str(requirements)]
        subprocess.run([*pip, *pinned_only, "--dest", str(unfinished)], check=True)
        (archive,) = unfinished.iterdir()
        shutil.unpack_archive(archive, unfinished, "zip" if archive.suffix == ".whl" else "gztar")
        archive.unlink()
    else:
        lock = json.loads(requirements.with_suffix(".json").read_text())
        root = {"dependencies": lock["packages"][""]["dependencies"]}
        (unfinished / "package.json").write_text(json.dumps(root))
        shutil.copy(requirements.with_suffix(".json"), unfinished / "package-lock.json")
        npm = ["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(npm, cwd=unfinished, check=True)
    unfinished.rename(folder)
    return folder


def pinned(name: str) -> str:
    """The package and the version of an entry, as ``name==version``."""
    requirements = HERE / "requirements" / f"{name}.txt"
    if requirements.is_file():
        return next(line.split()[0] for line in requirements.read_text().splitlines() if "==" in line)
    lock = json.loads(requirements.with_suffix(".json").read_text())
    ((package, version),) = lock["packages"][""]["dependencies"].items()
    return f"{package}@{version}"
