"""Functional coverage by instance, of all simulations in build/results: the gate of `make hw-full`.

A cover property of an instance (those of a generate loop are one) that no simulation reached is an error. So
are results that lack a module: `make hw-test` comes before.
"""

import re
import sys
from collections import Counter
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "build/results"
TOPS = ("client_core", "key_switch", "key_switch_pair", "samplers_bench", "frame_output", "stream_buffer")


def points() -> Counter[str]:
    """How often simulations reached each cover property, by `top.instance.property`."""
    reached: Counter[str] = Counter()
    for path in RESULTS.glob("*/coverage.dat"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if counter := re.search(r"\x01h\x02([^\x01']+).*' (\d+)$", line):
                reached[counter[1]] += int(counter[2])
    return reached


def main() -> None:
    """Prints what was not reached, and exits with 1 if there is such a point."""
    reached = points()
    missing = [point for point, times in sorted(reached.items()) if times == 0]
    missing += [f"{top}: no results" for top in TOPS if not any(point.startswith(top) for point in reached)]
    print(*(f"not reached: {point}" for point in missing), f"{len(reached)} points of coverage", sep="\n")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
