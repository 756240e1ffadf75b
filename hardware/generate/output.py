"""Writing and checking a generated source, and the definitions in vectors/ that it is made from."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

HARDWARE = Path(__file__).parents[1]


def definition(name: str) -> ModuleType:
    """A module of vectors/."""
    sys.path.append(str(HARDWARE.parent / "vectors"))
    return importlib.import_module(name)


def finish(path: str, text: str) -> None:
    """Writes `text` to a path below hardware/; with `--check`, exits with 1 unless it is there already."""
    target = HARDWARE / path
    if "--check" not in sys.argv[1:]:
        target.write_text(text, encoding="ascii")
    elif not target.exists() or target.read_text(encoding="ascii") != text:
        sys.exit(f"{path} is not what hardware/generate makes: run the generator without --check")
