"""The process that is measured: `python -m studies.networks.worker SETTING.json`.

Prints a JSON object about the run, then one for each image, as they are done.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from studies.networks.session import Session, Setting, groups


def main() -> None:
    """Run all images of the setting."""
    given = json.loads(Path(sys.argv[1]).read_text())
    calibration = given["calibration"]
    setting = Setting(
        Path(given["model"]),
        None if calibration is None else Path(calibration),
        given["preset"],
        given["threads"],
    )
    samples = np.load(given["samples"], mmap_mode="r")
    session = Session(setting)
    print(json.dumps({"run": session.facts}), flush=True)
    numbers = given["numbers"]
    for places in groups(numbers, session.program.batch):
        lines = session.classify(np.asarray(samples[places], np.float64))
        for place, line in zip(places, lines, strict=True):
            print(json.dumps({"image": numbers[place], **line}), flush=True)


if __name__ == "__main__":
    main()
