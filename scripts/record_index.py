"""Write benchmarks/record/README.md: every record by its day with its tables, cited by a page or not.

    python scripts/record_index.py [--check]

With ``--check`` nothing is written, and the exit status is 1 if the page differs from the folder.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "record"
PAGE = FOLDER / "README.md"
HEAD = """# Records

A record is what a benchmark or a study wrote on its day. It is never changed: a newer run has a folder of
its own. Pages cite the newest that their claim rests on, so an older record may stand here alone. `python
scripts/record_index.py` writes this page.

| record | tables | other files |
|---|---|---|
"""


def title(table: Path) -> str:
    """Return the heading of a table without its day; its name if it has none."""
    heading = re.search(r"^# (.+)$", table.read_text(encoding="utf-8"), re.MULTILINE)
    text = heading[1] if heading else table.stem
    return re.sub(r",? (\d{4}-\d\d-\d\d|\d+ \w+ \d{4})$", "", text).replace("|", "/")


def index() -> str:
    """Return the page: a row for each folder, and one for each record that is a file alone."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(name for name in set(listed.stdout.split()) - {PAGE.name} if (FOLDER / name).is_file())
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(name.partition("/")[0], []).append(name)
    lines = []
    for record, files in sorted(rows.items(), reverse=True):
        tables = [name for name in files if name.endswith(".md")]
        links = ", ".join(f"[{title(FOLDER / name)}]({name})" for name in tables)
        others = len(files) - len(tables)
        lines.append(f"| [{record}]({record}) | {links} | {others or ''} |\n")
    return HEAD + "".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Write or compare the page. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the index of the records.")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    check: bool = parser.parse_args(arguments).check
    stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != index()
    if stale:
        print(f"{PAGE}: {'not what the folder has' if check else 'written'}")
        if not check:
            PAGE.write_text(index(), encoding="utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
