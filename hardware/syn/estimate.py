"""Resources of the designs of targets.toml on Xilinx devices, as yosys maps them.

An estimate: yosys maps to the primitives of the family, but places and routes nothing and knows no timing.
Every kind of module is synthesised by itself (hierarchy.py) and kept in estimate.json with a digest of what
it was made from; kinds that differ only in what is below them are synthesised once. Sums are printed to
estimate.md. `--check` fails if a source has changed since; with `--again`, as in the second lane, also if a
kind of `spot_check`, synthesised again, is not what is kept: without a change, only another yosys differs.
Names of modules as arguments synthesise their designs alone, and keep what the page says of the others;
JOBS=3 does so in three processes.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from device import COLUMNS, FREE, Counts, Target
from hierarchy import HERE, YOSYS, Design, yosys
from page import HEAD, Page

RESULT = HERE / "estimate.json"
CACHE = HERE.parent / "build/synthesis"
# Characters of RTLIL that are synthesised in one run: a run by itself takes ten seconds.
RUN = 100_000

# By design: a digest of its sources, and what each of its kinds needs, by the digest of that.
Stored = dict[str, dict[str, str | dict[str, dict[str, float]]]]


def primitives(design: Design, names: list[str]) -> list[Counts]:
    """Synthesises kinds side by side: what each needs, without what the kinds below it do."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "units.il").write_text(design.units(names), encoding="utf-8")
        synthesis = f"synth_xilinx -family {design.family} -top top -flatten -noiopad -noclkbuf"
        text = yosys(f"read_rtlil units.il; {synthesis}; tee -o stat.json stat -json", Path(folder))
    modules = {name.lstrip("\\"): module for name, module in json.loads(text)["modules"].items()}
    return [by_column(design, name, modules[f"unit{i}"]["num_cells_by_type"]) for i, name in enumerate(names)]


def by_column(design: Design, name: str, cells: dict[str, int]) -> Counts:
    """The cells of a kind."""
    counts: Counts = Counter()
    below = {kind.lstrip("\\") for kind in design.children(name)}
    for cell, number in cells.items():
        if cell.lstrip("\\") in below or FREE.fullmatch(cell):
            continue
        columns = [column for column, shares in COLUMNS.items() if cell in shares]
        if not columns:
            sys.exit(f"{design.kinds[name].module} maps to {number} {cell}, which no column counts")
        counts[columns[0]] += number * COLUMNS[columns[0]][cell]  # type: ignore[assignment]
    return counts


def kinds_of(stored: Stored, target: Target) -> dict[str, Counts]:
    """What is kept of a design's kinds."""
    kinds = stored.get(target.name, {}).get("kinds", {})
    assert isinstance(kinds, dict)
    return {digest: Counter(counts) for digest, counts in kinds.items()}


def missing(
    design: Design, kept: dict[str, Counts], shapes: dict[str, Counts]
) -> list[tuple[Design, list[str]]]:
    """Runs that make what is not kept, the largest first.

    What an interrupted run has made is kept, too, and what was made for a kind of the same shape.
    """
    runs: list[tuple[Design, list[str]]] = []
    size = RUN
    kinds = {design.digest(name): name for name, _, _ in design.walk({})}
    for digest, name in sorted(kinds.items(), key=lambda item: -len(design.kinds[item[1]].body)):
        path = CACHE / f"{digest}.json"
        if path.exists():
            kept[digest] = Counter(json.loads(path.read_text(encoding="utf-8")))
        if digest not in kept and (shape := design.shape(name)) in shapes:
            kept[digest] = shapes[shape]
        if digest in kept:
            continue
        length = len(design.kinds[name].body)
        if size + length > RUN:
            runs.append((design, []))
            size = 0
        size += length
        runs[-1][1].append(name)
    return runs


def current(stored: Stored, target: Target) -> bool:
    """Whether what is kept of a design was made from the sources as they are."""
    return stored.get(target.name, {}).get("digest") == target.digest()


def section(target: Target) -> list[str]:
    """What the page says of a design."""
    text = (HERE / "estimate.md").read_text(encoding="utf-8")
    body = text.partition(f"\n## {target.name}\n")[2].partition("\n## ")[0]
    return ["", f"## {target.name}", *body.rstrip("\n").split("\n")]


def check(targets: list[Target], stored: Stored, spots: list[str]) -> None:
    """Exits with 1 unless what is kept is current, and what is synthesised again is the same."""
    for target in targets:
        if target.name not in stored:
            print(f"no estimate of {target.top} yet: `make hw-syn` makes it")
        elif not current(stored, target):
            sys.exit(f"estimate.md is older than the sources of {target.top}: run `make hw-syn`")
    if not spots:
        return
    design, kept = targets[0].elaborated(), kinds_of(stored, targets[0])
    names = [name for name, _, _ in design.walk({}) if design.kinds[name].module in spots]
    for name, primitive in zip(names, primitives(design, names), strict=True):
        if kept[design.digest(name)] != primitive:
            sys.exit(f"{design.kinds[name].module} maps to {dict(primitive)}, not to what estimate.json says")


def main() -> None:
    """Synthesises what has changed, or checks that nothing has."""
    file = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    targets = [Target.read(entry) for entry in file["design"]]
    stored: Stored = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    if "--check" in sys.argv[1:]:
        check(targets, stored, file["spot_check"] if "--again" in sys.argv[1:] else [])
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = {digest: counts for target in targets for digest, counts in kinds_of(stored, target).items()}

    def make(run: tuple[Design, list[str]]) -> None:
        design, names = run
        for name, counts in zip(names, primitives(design, names), strict=True):
            kind, digest = design.kinds[name], design.digest(name)
            print(f"{kind.module} {kind.parameters.get('Width', '')}: {dict(counts)}", flush=True)
            kept[digest] = counts
            (CACHE / f"{digest}.json").write_text(json.dumps(counts), encoding="utf-8")

    version = subprocess.run([YOSYS, "-V"], check=True, capture_output=True, text=True).stdout
    lines = [HEAD.format(version=version.split("(")[0].strip()).rstrip()]
    state: dict[str, object] = {}
    shapes: dict[str, Counts] = {}
    for target in targets:
        if sys.argv[1:] and target.top not in sys.argv[1:]:
            if current(stored, target):
                lines += section(target)
                state[target.name] = stored[target.name]
            else:
                lines += ["", f"## {target.name}", "", "Not synthesised as it is now."]
            continue
        design = target.elaborated()
        with ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
            list(pool.map(make, missing(design, kept, shapes)))
        shapes |= {design.shape(name): kept[design.digest(name)] for name, _, _ in design.walk({})}
        lines += Page(target, design, kept).lines()
        digests = {design.digest(name) for name, _, _ in design.walk({})}
        kinds = {digest: kept[digest] for digest in digests}
        state[target.name] = {"digest": target.digest(), "kinds": kinds}
    (HERE / "estimate.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    RESULT.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
