import json
import re
from itertools import chain
from typing import Any

from harness.folders import HERE

PAGE = HERE.parent / "docs" / "reproduction" / "measurements.md"


def test_programs_are_predicted_within_a_fifth_or_the_page_names_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    latest: dict[str, list[dict[str, Any]]] = {}
    for record in sorted((HERE / "record").glob("*-calibrate/programs.jsonl")):
        rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
        latest |= {
            what: [row for row in rows if row["what"] == what] for what in {row["what"] for row in rows}
        }
        assert f"record/{record.parent.name}/{record.name}" in text
    outside = set()
    for row in chain.from_iterable(latest.values()):
        for name in ("predicted_s", "built_in_s"):
            if not 0.8 <= row[name] / row["steady_s"] <= 1.2:
                outside.add(row["what"].partition(" ")[2].partition(",")[0])
    (stated,) = re.findall(r"^More than 20 % off: (.*?)[.](?: |$)", text, re.MULTILINE)
    assert set(re.findall("`(.*?)`", stated)) == outside
