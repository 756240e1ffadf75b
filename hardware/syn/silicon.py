"""Area of the client core in standard cells of ASAP7, a 7 nm kit under a BSD licence, by module.

`ASAP7=FOLDER` names a folder with the kit's liberty files of one corner, uncompressed (`*_RVT_TT_*.lib`: AO,
OA, INVBUF, SIMPLE, SEQ); they are not part of this repository. Memories are not mapped: their bits are
counted, and the page compares them with the area of bit cells. Nothing is placed: there is no wire, no clock
tree, no macro. `--check` fails if a source has changed since.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
BLOCKS = ["mod_mul_sparse", "butterfly", "client_ntt_core", "chacha_stream", "gaussian_sampler", TOP]
POLYNOMIALS = 3 * 60 << 16  # bits of the memories that the paper's core has, too
SCRIPT = """
{read}; hierarchy -top {top} -chparam LogN 16; rename -top {top}; proc; tee -o bits.json stat -json;
synth -top {top} -run begin:fine;
opt -fast -full; techmap; opt -fast; dfflibmap {libraries} -dont_use *DFFLQN*;
abc {libraries} -dont_use *x1p* -dont_use *xp*; clean; tee -o stat.json stat {libraries} -json
"""
HEAD = """\
# Silicon: the client core in cells of 7 nm

Made by `ASAP7=... make hw-silicon` with {version}: `client_core` at N = 2^16, mapped to the cells of ASAP7
(RVT, TT) by yosys and ABC, each kind of module alone. Nothing is placed: wires, a clock tree and filling are
missing, and there is no clock and no power. Memories are bits, not cells. The kit is an input; nothing of it
is in this repository.

Every module without what is in other rows, over all its units:

| module | units | area, um2 | flip-flops | memory bits |
|---|---:|---:|---:|---:|
"""
TAIL = """\
The logic is {logic:.3f} mm2. In the smallest published bit cell of 7 nm, {bit} um2, all memory bits take
{all_cells:.3f} mm2, without decoders, sense amplifiers and filling. The paper's core has {paper} mm2 at 7 nm
with its memories. Three polynomials of 2^16 words of 60 bits are {polynomials:,} bits:
3 x 2^16 x 60 x {bit} um2 = {cells:.3f} mm2, more than the whole core.
"""


# Of a module: units; areas, flip-flops and bits of memory over all its units, without modules below; of one
# unit, with what is below, its area.
Row = tuple[int, float, int, int, float]


def kinds(stat: dict[str, Any], bits: dict[str, Any]) -> dict[str, Row]:
    """Every module by its name, whatever its parameters."""
    stat, bits = ({name.lstrip("\\"): module for name, module in each.items()} for each in (stat, bits))
    below: dict[str, dict[str, int]] = {
        name: {
            cell.lstrip("\\"): n
            for cell, n in module["num_cells_by_type"].items()
            if cell.lstrip("\\") in stat
        }
        for name, module in stat.items()
    }

    def units(name: str) -> int:
        return (name == TOP) + sum(
            units(above) * under[name] for above, under in below.items() if name in under
        )

    rows: dict[str, Row] = {}
    for name, module in stat.items():
        own = module.get("area", 0.0) - sum(
            n * stat[cell].get("area", 0.0) for cell, n in below[name].items()
        )
        flops = sum(n for cell, n in module["num_cells_by_type"].items() if re.match("DFF|DLL|DHL", cell))
        base_name = re.match(r"(?:\$paramod(?:\$[0-9a-f]+)?\\)?(\w+)", name)
        assert base_name, name
        before = rows.get(base_name[1], (0, 0.0, 0, 0, 0.0))
        count, memory = units(name), bits[name]["num_memory_bits"]
        rows[base_name[1]] = (
            before[0] + count,
            before[1] + count * own,
            before[2] + count * flops,
            before[3] + count * memory,
            max(before[4], module.get("area", 0.0)),
        )
    return rows


def page(kept: dict[str, Any]) -> str:
    """The table of what is kept."""
    lines = [HEAD.format(version=kept["version"]).rstrip()]
    modules: dict[str, Row] = kept["modules"]
    for module, (units, area, flops, bits, _) in sorted(modules.items()):
        lines.append(f"| `{module}` | {units} | {area:,.0f} | {flops:,} | {bits:,} |")
    area = sum(row[1] for row in modules.values())
    flops, bits = sum(row[2] for row in modules.values()), sum(row[3] for row in modules.values())
    lines += [
        f"| **sum** | | **{area:,.0f}** | **{flops:,}** | **{bits:,}** |", "",
        "Blocks with all that is in them, one of each:", "", "| block | area, um2 |", "|---|---:|",
    ]  # fmt: skip
    lines += [f"| `{block}` | {modules[block][4]:,.0f} |" for block in BLOCKS]
    lines.append("")
    logic, own, all_cells = area / 1e6, POLYNOMIALS * BIT / 1e6, bits * BIT / 1e6
    numbers = {"logic": logic, "all_cells": all_cells, "bit": BIT, "paper": PAPER, "polynomials": POLYNOMIALS}
    lines += [TAIL.format(**numbers, cells=own)]
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
        texts = [(folder / f"{each}.json").read_text(encoding="utf-8") for each in ("stat", "bits")]
    stat, bits = (json.loads(text[text.index("{") :])["modules"] for text in texts)
    version = subprocess.run([YOSYS, "-V"], check=True, capture_output=True, text=True).stdout
    kept = {"digest": CORE.digest(), "version": version.split("(")[0].strip(), "modules": kinds(stat, bits)}
    RESULT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(json.dumps(kept))), encoding="utf-8")


if __name__ == "__main__":
    main()
