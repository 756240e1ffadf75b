"""Area of the client core in standard cells of ASAP7, a 7 nm kit under a BSD licence, by module.

`ASAP7=FOLDER` names a folder with the kit's liberty files of one corner, uncompressed (`*_RVT_TT_*.lib`: AO, OA,
INVBUF, SIMPLE, SEQ); they are not part of this repository. Memories are not mapped: their bits are counted, and
the page compares them with the area of bit cells. Nothing is placed: there is no wire, no clock tree, no macro.
`--check` fails if a source has changed since.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from device import Target
from hierarchy import HERE, YOSYS, needed, path_of
from place import copy, read

RESULT = HERE / "silicon.json"
PAGE = HERE / "silicon.md"
TOP = "client_core"
CORE = Target(TOP, TOP, {"LogN": 16}, "", {}, [], [])
# TSMC's cell of 7 nm (ISSCC 2017), in um2 a bit.
BIT = 0.027
PAPER = 0.22  # mm2
POLYNOMIALS = 3 * 60 << 16  # bits of the memories that the paper's core has, too
SCRIPT = """
{read}; hierarchy -top {top} -chparam LogN 16; rename -top {top}; synth -top {top} -run begin:fine;
opt -fast -full; techmap; opt -fast; dfflibmap {libraries} -dont_use *DFFLQN*;
abc {libraries} -dont_use *x1p* -dont_use *xp*; clean; tee -o stat.json stat {libraries} -json
"""
HEAD = """\
# Silicon: the client core in cells of 7 nm

Made by `ASAP7=... make hw-silicon` with {version}: `client_core` at N = 2^16, mapped to the cells of ASAP7 (RVT,
TT) by yosys and ABC, each kind of module alone. Nothing is placed: wires, a clock tree and filling are missing, and
there is no clock and no power. Memories are bits, not cells. The kit is an input; nothing of it is in this repository.

| module | units | area of one, um2 | area of all, um2 | flip-flops of all | memory bits of all |
|---|---:|---:|---:|---:|---:|
"""


def kinds(stat: dict[str, dict[str, object]]) -> list[tuple[str, int, float, int, int]]:
    """Of every module: units, area of one in um2, flip-flops and bits of memory of one, without modules below."""
    modules = {name.lstrip("\\"): module for name, module in stat.items()}
    units: Counter[str] = Counter({TOP: 1})
    order, seen = [TOP], 0
    while seen < len(order):  # a module after all that hold it
        name = order[seen]
        seen += 1
        cells = modules[name]["num_cells_by_type"]
        assert isinstance(cells, dict)
        for cell, number in cells.items():
            below = cell.lstrip("\\")
            if below in modules:
                units[below] += units[name] * number
                if below in order[seen:]:
                    order.remove(below)
                order.append(below)
    found = []
    for name in dict.fromkeys(order):
        cells, area = modules[name]["num_cells_by_type"], modules[name].get("area", 0.0)
        assert isinstance(cells, dict)
        assert isinstance(area, float | int)
        flops = sum(number for cell, number in cells.items() if re.search("DFF|DLL|DHL", cell))
        bits = modules[name].get("num_memory_bits", 0)
        assert isinstance(bits, int)
        found.append((name, units[name], float(area), flops, bits))
    return found


def page(kept: dict[str, object]) -> str:
    """The table of what is kept."""
    rows: Counter[str] = Counter()
    lines = [HEAD.format(version=kept["version"]).rstrip()]
    stored = kept["modules"]
    assert isinstance(stored, list)
    for module, units, area, flops, bits in stored:
        rows.update(area=units * area, flops=units * flops, bits=units * bits)
        lines.append(
            f"| `{module}` | {units} | {area:,.0f} | {units * area:,.0f} | {units * flops:,} | {units * bits:,} |"
        )
    lines += [f"| **sum** | | | **{rows['area']:,.0f}** | **{rows['flops']:,}** | **{rows['bits']:,}** |", ""]
    logic, cells, all_cells = rows["area"] / 1e6, POLYNOMIALS * BIT / 1e6, rows["bits"] * BIT / 1e6
    lines += [
        f"The logic is {logic:.3f} mm2. In the smallest published bit cell of 7 nm, {BIT} um2, all memory bits take",
        f"{all_cells:.3f} mm2, without decoders, sense amplifiers and filling. The paper's core has {PAPER} mm2 at 7 nm"
        " with its",
        f"memories. Three polynomials of 2^16 words of 60 bits are {POLYNOMIALS:,} bits: 3 x 2^16 x 60 x {BIT} um2 =",
        f"{cells:.3f} mm2, more than the whole core.",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Maps the core, or checks that the page is that of the sources."""
    if "--check" in sys.argv[1:]:
        kept = json.loads(RESULT.read_text(encoding="utf-8"))
        if kept["digest"] != CORE.digest() or page(kept) != PAGE.read_text(encoding="utf-8"):
            sys.exit("silicon.md is older than the sources of client_core: run `ASAP7=... make hw-silicon`")
        return
    kit = os.environ.get("ASAP7")
    if not kit:
        sys.exit(
            "ASAP7 is not set: it names a folder with the liberty files of ASAP7, see hardware/README.md"
        )
    files = sorted(Path(kit).glob("*_RVT_TT_*.lib"))
    if not files:
        sys.exit(f"{kit} has no file *_RVT_TT_*.lib: uncompress those of one corner into it")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
        for module in needed(TOP):
            for table in path_of(module).parent.glob("*.hex"):
                (folder / table.name).write_bytes(table.read_bytes())
        libraries = " ".join(f"-liberty {file.name}" for file in files)
        script = SCRIPT.format(read=read(copy(TOP, folder), "xcup"), top=TOP, libraries=libraries)
        command = [YOSYS, "-q", "-p", " ".join(script.split())]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"yosys: {done.stderr[-2000:]}")
        text = (folder / "stat.json").read_text(encoding="utf-8")
    stat = json.loads(text[text.index("{") :])["modules"]
    version = subprocess.run([YOSYS, "-V"], check=True, capture_output=True, text=True).stdout
    kept = {"digest": CORE.digest(), "version": version.split("(")[0].strip(), "modules": kinds(stat)}
    RESULT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(json.dumps(kept))), encoding="utf-8")


if __name__ == "__main__":
    main()
