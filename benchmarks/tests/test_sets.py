"""`sets.json` tells peers what `keywright bench` measures: both state the same."""

import json
from pathlib import Path

from keywright._core import bench_sets

SETS = Path(__file__).parents[1] / "sets.json"
OF_PEERS = {"log_p", "poulpy"}


def test_peers_measure_the_sets_of_keywright_bench() -> None:
    stated = json.loads(SETS.read_text(encoding="utf-8"))
    shared = {
        name: {fact: value for fact, value in facts.items() if fact not in OF_PEERS}
        for name, facts in stated.items()
    }
    assert shared == bench_sets()
