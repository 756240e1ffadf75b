"""Resources of the designs of targets.toml on Xilinx UltraScale+, as yosys maps them.

An estimate: yosys maps to the primitives of the family, but places and routes nothing and knows no timing. Every kind of
module is synthesised by itself (hierarchy.py) and kept in estimate.json with a digest of what it was made from; sums
are printed to estimate.md. `--check` fails if a source has changed since or if a kind of `spot_check`, synthesised again, is not
what is kept.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from hierarchy import HERE, YOSYS, Design, Kind, needed, source, write_tables, yosys

RESULT = HERE / "estimate.json"
# LUTs that a primitive of distributed memory takes (UltraScale Architecture Libraries Guide, UG974).
MEMORY_LUTS = {
    "RAM32M16": 8, "RAM32M": 4, "RAM64M8": 8, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8,
    "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8, "RAM32X16DR8": 8, "RAM64X8SW": 8,
    "SRL16E": 1, "SRLC32E": 1,
}  # fmt: skip
# Primitives by column, and how much of it each is: two half block memories are one.
COLUMNS = {
    "LUT": {f"LUT{n}": 1.0 for n in range(1, 7)},
    "LUT as memory": {name: float(luts) for name, luts in MEMORY_LUTS.items()},
    "FF": dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), 1.0),
    "DSP": {"DSP48E2": 1.0},
    "BRAM": {"RAMB36E2": 1.0, "RAMB18E2": 0.5},
    "URAM": {"URAM288": 1.0},
}
# Primitives of no column: carries and wide multiplexers come with LUTs, inverters go into them.
FREE = re.compile(r"CARRY[48]|MUXF[789]|INV|VCC|GND|BUFG")

Counts = Counter[str]
# By design: a digest of its sources, and what each of its kinds needs, by the digest of that.
Stored = dict[str, dict[str, str | dict[str, dict[str, float]]]]


@dataclass
class Target:
    """A design of targets.toml."""

    name: str
    top: str
    parameters: dict[str, int | str]
    paper: str
    limits: dict[str, float]
    blocks: list[str]
    group: list[dict[str, list[str]]]
    cycles: int = 0
    compare: list[dict[str, object]] = field(default_factory=list)

    def elaborated(self) -> Design:
        """Its hierarchy."""
        return Design(self.top, self.parameters)

    def digest(self) -> str:
        """Of all sources, of the parameters and of the tables."""
        state = hashlib.sha256(json.dumps([self.top, self.parameters], sort_keys=True).encode())
        modules = needed(self.top)
        for module in modules:
            state.update(source(module).encode())
        if "twiddle_generator" in modules:
            with tempfile.TemporaryDirectory() as folder:
                write_tables(Path(folder), int(self.parameters["LogLanes"]))
                for path in sorted(Path(folder).iterdir()):
                    state.update(path.read_bytes())
        return state.hexdigest()[:16]


def primitives(design: Design, name: str) -> Counts:
    """Synthesises a kind: its own primitives by column, without those of the kinds below it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "unit.il").write_text(design.unit(name), encoding="utf-8")
        synthesis = "synth_xilinx -family xcup -top top -flatten -noiopad -noclkbuf"
        text = yosys(f"read_rtlil unit.il; {synthesis}; tee -o stat.json stat -json", Path(folder))
    counts: Counts = Counter()
    below = {kind.lstrip("\\") for kind in design.children(name)}
    for cell, number in json.loads(text)["design"]["num_cells_by_type"].items():
        if cell in below or FREE.fullmatch(cell):
            continue
        found = [column for column, shares in COLUMNS.items() if cell in shares]
        if not found:
            sys.exit(f"{design.kinds[name].module} maps to {number} {cell}, which no column counts")
        for column in found:
            counts[column] += number * COLUMNS[column][cell]
    return counts


def label(kind: Kind) -> str:
    """What rows of the table are called: kinds that differ in more than the width of a chain are one row."""
    width = kind.parameters.get("Width", "")
    if kind.module == "bank_memory":
        return f"bank_memory, {int(width) // 16} bits"
    return f"{kind.module}, {width} bits" if width in ("60", "51") and kind.module != "delay_line" else kind.module


def row(cells: Iterable[object], counts: Counts, bold: bool = False) -> str:
    """A line of a table."""
    mark = "**" if bold else ""
    values = [f"{mark}{counts[column]:,g}{mark}" if counts[column] < 1e6 else f"{mark}{counts[column]:,.0f}{mark}"
              for column in COLUMNS]  # fmt: skip
    return f"| {' | '.join([*map(str, cells), *values])} |"


def heading(*cells: str) -> list[str]:
    """The first two lines of a table."""
    return [f"| {' | '.join([*cells, *COLUMNS])} |", f"|---|{'---:|' * (len(cells) - 1 + len(COLUMNS))}"]


def scaled(counts: Counts, times: float) -> Counts:
    """Counts, `times` times."""
    return Counter({column: times * number for column, number in counts.items()})


def page(target: Target, design: Design, kept: dict[str, Counts]) -> list[str]:
    """The tables of a design; ends the program if a limit is exceeded."""
    rows: dict[str, tuple[int, int, Counts]] = {}
    total: Counts = Counter()
    for name, _, times in design.walk({}):
        key = label(design.kinds[name])
        kinds, units, counts = rows.get(key, (0, 0, Counter()))
        rows[key] = (kinds + 1, units + times, counts + scaled(kept[design.digest(name)], times))
        total += scaled(kept[design.digest(name)], times)

    lines = [f"## {target.name}", "", "Every kind of module, without what is in other rows; totals over its units.", ""]
    lines += heading("module", "kinds", "units")
    lines += [row([f"`{key}`" if "," not in key else key, kinds, units], counts) for key, (kinds, units, counts) in sorted(rows.items())]
    lines += [row(["**sum**", "", ""], total, bold=True), ""]

    groups = {module: str(group["name"]) for group in target.group for module in group["modules"]}
    rest = str(target.group[-1]["name"])
    by_group: dict[str, Counts] = {str(group["name"]): Counter() for group in target.group}
    for name, group, times in design.walk(groups):
        by_group[group or rest] += scaled(kept[design.digest(name)], times)
    lines += ["By what it does:", "", *heading("part")]
    lines += [row([name], counts) for name, counts in by_group.items()] + [""]

    lines += ["Blocks with all that is in them, one of each:", "", *heading("block")]
    for block in target.blocks:
        for name in sorted(design.kinds, key=lambda name: label(design.kinds[name])):
            if design.kinds[name].module == block and design.digest(name) in kept:
                lines.append(row([label(design.kinds[name])], inclusive(design, name, kept)))
    lines.append("")

    if target.compare:
        columns = [column for column in COLUMNS if column != "LUT as memory"]
        lines += [f"Beside the paper's figures ({target.paper}); LUT are those of logic and of memory here:", ""]
        lines += [f"| part | | {' | '.join(columns)} |", f"|---|---|{'---:|' * len(columns)}"]
        for entry in target.compare:
            ours: Counts = Counter()
            assert isinstance(entry["groups"], list)
            for group in entry["groups"]:
                ours += by_group[group]
            ours["LUT"] += ours["LUT as memory"]
            paper = entry["paper"]
            assert isinstance(paper, dict)
            for what, counts in (("paper", paper), ("here", ours)):
                values = " | ".join(f"{counts[column]:,.10g}" for column in columns)
                lines.append(f"| {entry['name'] if what == 'paper' else ''} | {what} | {values} |")
        lines.append("")

    reached = {**total, "cycles x DSP": target.cycles * total["DSP"]}
    lines += ["| | limit | here |", "|---|---:|---:|"]
    for what, limit in target.limits.items():
        if reached[what] > limit:
            sys.exit(f"{target.name}: {reached[what]:,g} {what} are above the limit of {limit:,g}")
        lines.append(f"| {what} | {limit:,.10g} | {reached[what]:,.10g} |")
    return [*lines, ""]


def inclusive(design: Design, name: str, kept: dict[str, Counts]) -> Counts:
    """A kind with everything in it."""
    counts = Counter(kept[design.digest(name)])
    for below, times in design.children(name).items():
        counts += scaled(inclusive(design, below, kept), times)
    return counts


def write(targets: list[Target], designs: list[Design], kept: dict[str, Counts]) -> None:
    """Both files."""
    version = subprocess.run([YOSYS, "-V"], check=True, capture_output=True, text=True).stdout.split("(")[0]
    lines = [
        "# Resources: yosys estimate",
        "",
        f"Made by `make hw-syn` with {version.strip()}, `synth_xilinx -family xcup`. Nothing is placed or routed: clock frequency, routed area",
        "and power are unknown. Every kind of module (a module with its parameters) is synthesised by itself and counted as often as the",
        "elaborated design holds it, so nothing is optimised across modules. A BRAM is one of 36 Kbit; a LUT counts whatever its inputs; LUT as",
        "memory are the LUTs that distributed memory takes. Adders, folds and products of tiles (`mod_add`, `sparse_fold`, `tiled_mul`) are",
        "in the rows of what uses them.",
        "",
    ]
    state = {}
    for target, design in zip(targets, designs, strict=True):
        lines += page(target, design, kept)
        kinds = {design.digest(name): kept[design.digest(name)] for name, _, _ in design.walk({})}
        state[target.name] = {"digest": target.digest(), "kinds": kinds}
    (HERE / "estimate.md").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    RESULT.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def check(targets: list[Target], stored: Stored, spots: list[str]) -> None:
    """Whether what is kept was made from the sources as they are."""
    for target in targets:
        if target.name not in stored or stored[target.name]["digest"] != target.digest():
            sys.exit(f"estimate.md is older than the sources of {target.top}: run `make hw-syn`")
    design, kinds = targets[0].elaborated(), stored[targets[0].name]["kinds"]
    assert isinstance(kinds, dict)
    for name, kind in design.kinds.items():
        if kind.module in spots and kinds[design.digest(name)] != (found := primitives(design, name)):
            sys.exit(f"{kind.module} maps to {dict(found)}, estimate.json says {kinds[design.digest(name)]}")


def main() -> None:
    """Synthesises what has changed, or checks that nothing has."""
    file = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    targets = [Target(**entry) for entry in file["design"]]
    stored: Stored = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    if "--check" in sys.argv[1:]:
        check(targets, stored, file["spot_check"])
        return
    cache = HERE.parent / "build/synthesis"
    cache.mkdir(parents=True, exist_ok=True)
    kept = {
        digest: Counter(counts)
        for entry in stored.values()
        for digest, counts in dict(entry["kinds"]).items()
    }

    def made(work: tuple[Design, str]) -> None:
        design, name = work
        digest = design.digest(name)
        # What an interrupted run has made is not made again.
        path = cache / f"{digest}.json"
        if not path.exists():
            path.write_text(json.dumps(primitives(design, name)), encoding="utf-8")
            print(f"{design.kinds[name].module} {design.kinds[name].parameters.get('Width', '')}: {path.read_text()}", flush=True)
        kept[digest] = Counter(json.loads(path.read_text(encoding="utf-8")))

    designs = [target.elaborated() for target in targets]
    work = {
        design.digest(name): (design, name) for design in designs for name, _, _ in design.walk({})
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(made, [item for digest, item in work.items() if digest not in kept]))
    write(targets, designs, kept)


if __name__ == "__main__":
    main()
