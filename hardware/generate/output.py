"""Writing and checking a generated source."""

import sys
from pathlib import Path

HARDWARE = Path(__file__).parents[1]
sys.path.append(str(HARDWARE.parent / "vectors"))


def finish(path: str, text: str) -> None:
    """Writes `text` to a path below hardware/; with `--check`, exits with 1 unless it is there already."""
    target = HARDWARE / path
    if "--check" not in sys.argv[1:]:
        target.write_text(text, encoding="ascii")
    elif not target.exists() or target.read_text(encoding="ascii") != text:
        sys.exit(f"{path} is not what hardware/generate makes: run the generator without --check")
