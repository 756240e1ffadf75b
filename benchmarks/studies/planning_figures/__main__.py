"""Figures that planning alone reproduces: `python -m studies.planning_figures`.

KDS: table 3. ARK: the saving of more than two rotations for one (figure 4), and the time of planning. Nothing
is encrypted. Seconds are processor time of the planner.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness.folders import record_folder
from keywright.plan import CostModel

from studies.network_keys.rotation_lists import workloads
from studies.planning_figures import overhead, weights


def main() -> int:
    """Write each line of the record as soon as it is computed."""
    parser = argparse.ArgumentParser(prog="python -m studies.planning_figures", description=__doc__)
    parser.add_argument("--programs", help="comma-separated programs of the lists (default: all)")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-planning)")
    options = parser.parse_args()
    programs = workloads()
    if options.programs is not None:
        names = options.programs.split(",")
        if unknown := [name for name in names if name not in programs]:
            parser.error(f"there is no program {unknown[0]!r}; there are {', '.join(programs)}")
        programs = {name: programs[name] for name in names}
    folder = record_folder(options.out, "planning")
    with (folder / "weights.jsonl").open("w") as out:
        for row in weights.rows():
            print(json.dumps(row), file=out)
    with (folder / "planning.jsonl").open("w") as out:
        for line in overhead.rows(programs, CostModel()):
            print(json.dumps(line), file=out, flush=True)
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
