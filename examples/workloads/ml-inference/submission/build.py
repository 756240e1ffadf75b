"""Compile the network for every size, and write the harness's programs into the folder build."""

import shutil
import stat
import sys
from pathlib import Path

import keywright as kw
from steps import BUILD, HERE, SIZES, STEPS, model_folder

PROGRAM = """#!{python}
import sys

sys.path.insert(0, {folder!r})
from steps import main

main({name!r}, sys.argv[1:])
"""


def compile_sizes(model: Path) -> None:
    """Compile a model folder for each size, with the best batch for its number of images."""
    for size, (name, count) in enumerate(SIZES):
        folder = model_folder(size)
        compiled = kw.compile(model, samples=count)
        compiled.save(folder, name)
        print(f"         [build] {name}: {compiled.program.batch} images in a ciphertext")


def main() -> None:
    """Build missing parts."""
    if not BUILD.exists():
        try:
            compile_sizes(HERE / "model.onnx")
        except BaseException:
            shutil.rmtree(BUILD)
            raise
    for name in STEPS:
        path = BUILD / name
        path.write_text(PROGRAM.format(python=sys.executable, folder=str(HERE), name=name))
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


if __name__ == "__main__":
    main()
