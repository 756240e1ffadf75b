"""Area of the client core in standard cells of ASAP7, a 7 nm kit under a BSD licence, by module.

`ASAP7=FOLDER` names a folder with the kit's liberty files of one corner, uncompressed (`*_RVT_TT_*.lib`: AO,
OA, INVBUF, SIMPLE, SEQ); they are not part of this repository. Memories are not mapped: their bits are
counted, and the page compares them with the area of bit cells. Nothing is placed: there is no wire, no clock
tree, no macro. OpenSTA (the Debian package `opensta`) finds the slowest path of every block, without those
that begin or end in a memory. `--check` fails if a source has changed since.
"""

import json
import os
import re
import shutil
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
BLOCKS = [
    "mod_mul_sparse", "butterfly", "client_ntt_core", "client_twiddles", "client_ntt", "client_pass",
    "chacha_stream", "gaussian_sampler", "ternary_sampler", "uniform_sampler", "client_registers", TOP,
]  # fmt: skip
POLYNOMIALS = 3 * 60 << 16  # bits of the memories that the paper's core has, too
SCRIPT = """
{read}; hierarchy -top {top} -chparam LogN 16; rename -top {top}; proc; tee -o bits.json stat -json;
synth -top {top} -run begin:fine;
opt -fast -full; techmap; opt -fast; dfflibmap {libraries} -dont_use *DFFLQN*;
abc {libraries} -dont_use *x1p* -dont_use *xp*; clean; tee -o stat.json stat {libraries} -json;
delete t:$mem*; splitnets; opt_clean -purge; write_verilog -noattr -noexpr netlist.v
"""
# OpenSTA's: the slowest path of a block between its flip-flops, in ps as the kit is.
TIMING = """\
read_verilog {name}.v
link_design {name}
create_clock -name clk -period 1000 [get_ports clk_i]
puts "block {block}"
report_checks -path_delay max -format full
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
PATHS = """\
Paths are those of {timer}, from a flip-flop's clock to the data pin of another; the first flip-flop is one of
the cells. There are no wires, and no cell is a load: a netlist without buffers would otherwise be as slow as
its widest net. So these are depths of logic, and no clock follows from them. Paths that begin or end in a
memory are left out.
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


def base(name: str) -> str:
    """The module of a name that yosys gave to one with parameters."""
    match = re.match(r"(?:\$paramod(?:\$[0-9a-f]+)?\\)?(\w+)", name)
    assert match, name
    return match[1]


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
        before = rows.get(base(name), (0, 0.0, 0, 0, 0.0))
        count, memory = units(name), bits[name]["num_memory_bits"]
        rows[base(name)] = (
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
        "Blocks with all that is in them, one of each, and their slowest path between flip-flops:", "",
        "| block | area, um2 | cells of the path | their delay, ps |", "|---|---:|---:|---:|",
    ]  # fmt: skip
    for block in BLOCKS:
        cells, delay = kept["paths"][block]
        lines.append(f"| `{block}` | {modules[block][4]:,.0f} | {cells} | {delay:,.0f} |")
    lines += ["", PATHS.format(timer=kept["timer"])]
    logic, own, all_cells = area / 1e6, POLYNOMIALS * BIT / 1e6, bits * BIT / 1e6
    numbers = {"logic": logic, "all_cells": all_cells, "bit": BIT, "paper": PAPER, "polynomials": POLYNOMIALS}
    lines += [TAIL.format(**numbers, cells=own)]
    return "\n".join(lines)


def by_bits(module: str) -> str:
    """A module whose assignments to or from several signals are one to each bit: OpenSTA reads no others."""
    ranges = {
        part[3]: (int(part[1]), int(part[2]))
        for part in re.finditer(r"^  (?:input|output|wire) \[(\d+):(\d+)\] (\S+) ?;", module, re.M)
    }

    def bits(side: str) -> list[str]:
        each = []
        for item in side.strip("{ }").split(", "):
            if part := re.fullmatch(r"(\S+ ?)\[(\d+):(\d+)\]", item.strip()):
                each += [f"{part[1]}[{place}]" for place in range(int(part[2]), int(part[3]) - 1, -1)]
            elif item.strip() in ranges:
                high, low = ranges[item.strip()]
                each += [f"{item.strip()} [{place}]" for place in range(high, low - 1, -1)]
            elif part := re.fullmatch(r"(\d+)'h([0-9a-f]+)", item.strip()):
                each += [f"1'h{bit}" for bit in f"{int(part[2], 16):0{part[1]}b}"]
            else:
                each.append(item.strip())
        return each

    def assignments(line: re.Match[str]) -> str:
        pairs = zip(bits(line[1]), bits(line[2]), strict=True)
        return "\n".join(f"  assign {left} = {right};" for left, right in pairs)

    several = re.compile(r"^  assign (?=.*\{ )(\{ [^}]* \}|[^{}]*?) = (\{ [^}]* \}|[^{}]*);$", re.M)
    return several.sub(assignments, module)


def timed(netlist: Path, files: list[Path], names: list[str]) -> dict[str, tuple[int, float]]:
    """Of every block, the cells of its slowest path and their delay.

    OpenSTA links no top with a name like those of modules with parameters in yosys: they are numbered.
    """
    plain = {name: name if name.isidentifier() else f"kind{number}" for number, name in enumerate(names)}
    text = netlist.read_text(encoding="utf-8")
    for name, other in plain.items():
        text = text.replace(f"\\{name} ", f"{other} ")
    modules = {
        part[1]: by_bits(part[0]) for part in re.finditer(r"^module (\w+).*?^endmodule\n", text, re.M | re.S)
    }

    def closed(name: str) -> set[str]:
        below = set(re.findall(r"^  (\w+) ", modules[name], re.M)) & set(modules)
        return {name}.union(*map(closed, below))

    script = ""
    for file in files:
        unloaded = re.sub(r"(capacitance *: *)[\d.e+-]+", r"\g<1>0", file.read_text(encoding="utf-8"))
        unloaded = re.sub(r"\w*capacitance_range.*", "", unloaded)
        (netlist.parent / f"unloaded_{file.name}").write_text(unloaded, encoding="utf-8")
        script += f"read_liberty unloaded_{file.name}\n"
    for name, other in plain.items():
        if (block := base(name)) in BLOCKS:
            source = "".join(modules[each] for each in closed(other))
            (netlist.parent / f"{other}.v").write_text(source, encoding="utf-8")
            script += TIMING.format(name=other, block=block)
    netlist.with_suffix(".tcl").write_text(script, encoding="utf-8")
    command = ["sta", "-no_splash", "-exit", netlist.with_suffix(".tcl").name]
    done = subprocess.run(command, cwd=netlist.parent, capture_output=True, text=True, check=False)
    paths: dict[str, tuple[int, float]] = {}
    for report in done.stdout.split("block ")[1:]:
        block, _, path = report.partition("\n")
        cells = len(re.findall(r"[v^] \S+/(?!CLK|D\b)\w+ \(\w+_ASAP7_\w+\)", path))
        if arrival := re.search(r"([\d.]+) +data arrival time", path):
            paths[block] = cells, float(arrival[1])
    if done.returncode or set(paths) != set(BLOCKS):
        sys.exit(f"OpenSTA finds no path in {set(BLOCKS) - set(paths)}: {done.stderr[-2000:]}")
    return paths


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
    if not shutil.which("sta"):
        sys.exit("OpenSTA is not installed: on Debian it is the package opensta")
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
        paths = timed(folder / "netlist.v", files, [name.lstrip("\\") for name in stat])
    version = subprocess.run([YOSYS, "-V"], check=True, capture_output=True, text=True).stdout
    timer = subprocess.run(["sta", "-version"], check=True, capture_output=True, text=True).stdout
    kept = {
        "digest": CORE.digest(),
        "version": version.split("(")[0].strip(),
        "timer": f"OpenSTA {timer.split()[0]}",
        "modules": kinds(stat, bits),
        "paths": paths,
    }
    RESULT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(json.dumps(kept))), encoding="utf-8")


if __name__ == "__main__":
    main()
