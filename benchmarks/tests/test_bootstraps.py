from typing import Any

import pytest
from harness.console import Console
from studies.bootstraps import BALANCED, PEERS, measure, ratios, table

LATTIGO = next(peer for peer in PEERS if peer.name == "lattigo")


def one(ours: float, theirs: float) -> dict[str, dict[str, Any]]:
    common = {"threads": 1, "levels_left": 9, "key_bytes": None}
    return {
        BALANCED: {"preset": BALANCED, "median_s": ours, **common},
        "lattigo": {"preset": "N16QP1546H192H32", "median_s": theirs, **common},
    }


def test_a_ratio_is_of_one_round() -> None:
    quotients = ratios([one(1, 8), one(2, 20), one(1, 9)], [LATTIGO])
    assert quotients == [f"Time, lattigo to {BALANCED}: 9.00 (8.00 to 10.00 in 3 rounds)."]


def test_the_table_has_medians_names_and_dashes() -> None:
    lines = table([one(1, 8), one(2, 20), one(1, 9)]).splitlines()
    assert lines[0] == f"|  | {BALANCED} | lattigo |"
    assert f"| preset | {BALANCED} | N16QP1546H192H32 |" in lines
    assert "| median_s | 1 | 9 |" in lines
    assert "| key_bytes | - | - |" in lines


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('{"checked": false, "threads": 1}', "wrong"),
        ('{"checked": true, "threads": 2}', "2 threads"),
    ],
)
def test_what_is_wrong_or_runs_otherwise_is_refused(printed: str, expected: str) -> None:
    with pytest.raises(SystemExit, match=expected):
        measure(Console(), "a peer", ["echo", printed], 1)
    with pytest.raises(SystemExit, match="status"):
        measure(Console(), "a peer", ["false"], 1)
