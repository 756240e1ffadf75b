"""The process that is measured: `python -m studies.networks.worker SETTING.json`.

Prints a JSON object about the run. Then, for each input line of sample indices, evaluates these samples
together and prints an object for each.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from studies.networks.session import Session, Setting

PREDICTED = 2
"""Images on which the error of the scores is predicted."""


def main() -> None:
    """Serve until the input ends."""
    given = json.loads(Path(sys.argv[1]).read_text())
    calibration = given["calibration"]
    setting = Setting(
        Path(given["model"]),
        Path(given["program"]),
        None if calibration is None else Path(calibration),
        given["activations"],
        given["preset"],
        given["batch"],
        given["images"],
        given["memory"],
        given["threads"],
        given["key_memory"],
        given["key_bytes"],
    )
    samples = np.load(given["samples"], mmap_mode="r")
    session = Session(setting, np.asarray(samples[:PREDICTED], np.float64))
    print(json.dumps(session.facts), flush=True)
    for request in sys.stdin:
        for line in session.classify(np.asarray(samples[json.loads(request)], np.float64)):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
