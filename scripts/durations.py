"""Write how long the files of tests take, from a report of pytest, into scripts/durations.txt.

    python scripts/durations.py target/durations.xml

`make durations` runs this. pytest starts the slowest files first (conftest.py), so that no process is left
with one of them at the end.
"""

import argparse
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_name("durations.txt")


def file_of(name: str, root: Path = ROOT) -> str:
    """The file of a test, from the dotted name of its module, class or page."""
    if name.endswith(".md"):
        return name.removesuffix(".md").replace(".", "/") + ".md"
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = root.joinpath(*parts[:count]).with_suffix(".py")
        if path.is_file():
            return path.relative_to(root).as_posix()
    return name


def totals(report: Path, root: Path = ROOT) -> dict[str, float]:
    """Seconds of each file, with those of its fixtures."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ET.parse(report).iter("testcase"):
        seconds[file_of(case.attrib["classname"], root)] += float(case.attrib["time"])
    return seconds


def load(record: Path = RECORD) -> dict[str, float]:
    """Seconds of each file of a record; no files if there is no record."""
    if not record.is_file():
        return {}
    rows = (
        line.split() for line in record.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
    )
    return {path: float(seconds) for seconds, path in rows}


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description="Record how long the files of tests take.")
    parser.add_argument("report", type=Path, help="what pytest --junitxml wrote")
    seconds = totals(parser.parse_args().report)
    lines = ["# Seconds of each file of tests on two cores, slowest first; `make durations` writes this."]
    slowest = sorted(seconds.items(), key=lambda entry: -entry[1])
    lines += [f"{value:.1f} {path}" for path, value in slowest if value >= 0.5]
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
