"""Writing and checking a vector file, and the two pseudo-random conventions that all of them share."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

WORD = (1 << 64) - 1


def splitmix64(state: int) -> Iterator[int]:
    """The outputs of SplitMix64 from `state`."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & WORD
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        yield z ^ (z >> 31)


def fold(words: Iterable[int]) -> int:
    """A polynomial checksum of words modulo 2^64; negative words in two's complement."""
    value = 0
    for word in words:
        value = (value * 6364136223846793005 + word) & WORD
    return value


def finish(source: str, text: str) -> None:
    """Writes `text` beside the program `source`; with `--check`, exits with 1 unless it is there already."""
    path = Path(source).with_suffix(".txt")
    if "--check" not in sys.argv[1:]:
        path.write_text(text, encoding="ascii")
    elif path.read_text(encoding="ascii") != text:
        sys.exit(f"{path.name} is not what {Path(source).name} computes")
