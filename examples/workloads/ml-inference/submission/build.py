"""Compile the network for every size, and write the harness's programs into the folder build."""

import shutil
from pathlib import Path

import keywright as kw
from programs import BUILD, HERE, write_programs
from steps import SIZES, STEPS, model_folder


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
    write_programs(STEPS)


if __name__ == "__main__":
    main()
