"""Install the package from this tree, with the extension that was compiled together with the tests.

    python scripts/tested_extension.py target/debug

`maturin develop` selects one crate, for which cargo unites the features of dependencies otherwise than for
the whole workspace: it would compile the engine once more. So the library is copied into the package, and
this module writes what maturin would install: a path to the sources, the package's data, its programs.
"""

import argparse
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "python"
LIBRARIES = {"win32": ("_core.dll", "_core.pyd"), "darwin": ("lib_core.dylib", "_core.abi3.so")}
"""What cargo calls the library, and what Python looks for, by system."""


def wheel(root: Path, folder: Path) -> Path:
    """Write a wheel whose only module is a path to the sources of the checkout; return its path."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    name, version = project["name"], manifest["workspace"]["package"]["version"]
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Python: {project['requires-python']}"]
    metadata += [f"Requires-Dist: {line}" for line in project["dependencies"]]
    for extra, lines in project["optional-dependencies"].items():
        metadata += [f"Provides-Extra: {extra}"]
        metadata += [f'Requires-Dist: {line} ; extra == "{extra}"' for line in lines]
    programs = [f"{program} = {function}" for program, function in project["scripts"].items()]
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.pth": [str(root / "python")],
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": ["Wheel-Version: 1.0", "Root-Is-Purelib: true", "Tag: py3-none-any"],
        f"{info}/entry_points.txt": ["[console_scripts]", *programs],
    }
    files[f"{info}/RECORD"] = [f"{path},," for path in (*files, f"{info}/RECORD")]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, lines in files.items():
            archive.writestr(place, "\n".join(lines) + "\n")
    return path


def installed(name: str, version: str) -> bool:
    """Whether this interpreter has the package, of this version and from this tree."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return distribution.version == version and str(SOURCES) in sys.path


def main() -> None:
    """Copy the library and install the package."""
    parser = argparse.ArgumentParser(description="Install the package with the extension of the tests.")
    parser.add_argument("libraries", type=Path, help="the folder where cargo wrote the library")
    built, module = LIBRARIES.get(sys.platform, ("lib_core.so", "_core.abi3.so"))
    library, place = parser.parse_args().libraries / built, SOURCES / "keywright" / module
    # A process may have the old file in its memory: a new one takes its place.
    beside = place.with_suffix(".new")
    shutil.copy2(library, beside)
    beside.replace(place)
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    if not installed("keywright", manifest["workspace"]["package"]["version"]):
        with tempfile.TemporaryDirectory() as folder:
            pip = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--no-index",
                "--force-reinstall",
            ]
            subprocess.run([*pip, str(wheel(ROOT, Path(folder)))], check=True)


if __name__ == "__main__":
    main()
