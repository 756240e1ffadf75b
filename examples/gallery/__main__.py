"""Run a published model in the clear and encrypted: `python -m gallery NAME` in the folder `examples`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from keywright.commands.helpers.inputs import parse_bytes

from . import page
from .entry import entry, names
from .measure import measure
from .packages import CACHE, install, pinned

sys.path.append(str(page.ROOT / "benchmarks"))
from harness.measurement import machine

GIGABYTE = 10**9


def main() -> None:
    """Install the package, run its model and print the comparison."""
    parser = argparse.ArgumentParser(prog="python -m gallery", description=__doc__)
    parser.add_argument(
        "name", choices=names(), nargs="?", help="without it, the page of a record is written"
    )
    parser.add_argument("--memory", type=parse_bytes, default=6 * GIGABYTE, help="default: 6GB")
    parser.add_argument("--tests", type=int, help="most samples to encrypt (default: all of the entry)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the packages")
    parser.add_argument("--record", type=Path, help="folder to which NAME.json is written")
    options = parser.parse_args()
    if options.name is None:
        page.PAGE.write_text(page.text([options.record] if options.record else page.RECORDS))
        return
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    chosen = entry(options.name)
    case = chosen.load(install(options.name, options.cache))
    if options.tests is not None:
        case = case.first(options.tests)
    line = measure(options.name, chosen, case, pinned(options.name), options.memory)
    line["machine"] = machine.describe()
    print(json.dumps(line, indent=1))
    if options.record is not None:
        options.record.mkdir(parents=True, exist_ok=True)
        (options.record / f"{options.name}.json").write_text(json.dumps(line, indent=1) + "\n")


if __name__ == "__main__":
    main()
