"""Checks that every valid and ready signal of the tops is one of registers alone.

yosys elaborates the tops at N = 2^10, and this follows each signal back through all modules to registers and
ports. A path from a port is an error: two blocks that are joined could then wait for each other in one
cycle, and their delays would add up.
"""

import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "syn"))

from hierarchy import needed, path_of, write_tables, yosys

TOPS = ("client_core", "key_switch_pair")
PARAMETERS = {"LogN": 10}
SIGNALS = re.compile(r"\w+(valid|ready)_o")
# What keeps a value: what goes into it matters in a later cycle. A read of a memory passes its address on.
KEEPS = re.compile(r"\$_.*(DFF|LATCH).*|\$(a|s|al|ald)?(dff|dffsr)c?e?|\$a?dlatch.*|\$memwr.*")

Bit = int
Module = dict[str, Any]


def elaborated(top: str) -> dict[str, Module]:
    """The modules of a top, single bits where gates work on those."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        modules = needed(top)
        for module in modules:
            (folder / path_of(module).name).write_bytes(path_of(module).read_bytes())
        if "twiddle_generator" in modules:
            write_tables(folder, PARAMETERS)
        choose = "".join(f" -chparam {key} {value}" for key, value in PARAMETERS.items())
        files = " ".join(f"{module}.sv" for module in modules)
        yosys(
            f"read_verilog -sv -DSYNTHESIS -defer {files}; hierarchy -check -top {top}{choose};"
            f" rename -top {top}; proc; simplemap; write_json design.json; tee -o stat.json stat -json",
            folder,
        )
        text = (folder / "design.json").read_text(encoding="utf-8")
    design: dict[str, Module] = json.loads(text)["modules"]
    return design


class Paths:
    """The paths without a register through the modules of a design."""

    def __init__(self, design: dict[str, Module]) -> None:
        self.design = design
        self.drivers = {name: self._drivers(module) for name, module in design.items()}

    def _drivers(self, module: Module) -> dict[Bit, tuple[str, str, int]]:
        """Of every bit that a cell drives: the cell, its port, the place in that."""
        return {
            bit: (name, port, place)
            for name, cell in module["cells"].items()
            for port, bits in cell["connections"].items()
            if cell["port_directions"].get(port) != "input"
            for place, bit in enumerate(bits)
            if isinstance(bit, int)
        }

    @cache  # noqa: B019  (one object a design)
    def inputs(self, name: str, port: str, place: int) -> frozenset[tuple[str, int]]:
        """Bits of a module's input ports from which a path leads to a bit of an output port."""
        module = self.design[name]
        ports = {
            bit: (each, number)
            for each, about in module["ports"].items()
            if about["direction"] == "input"
            for number, bit in enumerate(about["bits"])
        }
        sources: set[tuple[str, int]] = set()
        waiting, seen = [module["ports"][port]["bits"][place]], set[Bit]()
        while waiting:
            bit = waiting.pop()
            if bit in seen or not isinstance(bit, int):
                continue
            seen.add(bit)
            if bit in ports:
                sources.add(ports[bit])
            elif bit in self.drivers[name]:
                waiting += self._before(name, *self.drivers[name][bit])
        return frozenset(sources)

    def _before(self, name: str, cell_name: str, port: str, place: int) -> list[Bit]:
        """The bits that a cell's output follows in the same cycle."""
        cell = self.design[name]["cells"][cell_name]
        connections = cell["connections"]
        if cell["type"] in self.design:
            return [connections[each][number] for each, number in self.inputs(cell["type"], port, place)]
        if KEEPS.fullmatch(cell["type"]):
            return []
        return [
            bit
            for each, bits in connections.items()
            if cell["port_directions"][each] == "input" and each not in ("CLK", "EN")
            for bit in bits
        ]


def faults(top: str) -> list[str]:
    """What is wrong with a top."""
    design = elaborated(top)
    paths = Paths(design)
    signals = {
        port: about["bits"]
        for port, about in design[top]["ports"].items()
        if about["direction"] == "output" and SIGNALS.fullmatch(port)
    }
    if not signals:
        return [f"{top} has no valid or ready signal"]
    return [
        f"{top}: {port} depends on {', '.join(sorted({each for each, _ in inputs}))} in the same cycle"
        for port, bits in signals.items()
        if (inputs := frozenset().union(*(paths.inputs(top, port, place) for place in range(len(bits)))))
    ]


def main() -> None:
    """Exits with 1 if a signal has a path from a port."""
    wrong = [fault for top in TOPS for fault in faults(top)]
    print("\n".join([*wrong, f"handshakes: {len(TOPS)} tops"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
