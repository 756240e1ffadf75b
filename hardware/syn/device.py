"""The designs of targets.toml, and the primitives that are counted."""

import hashlib
import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hierarchy import DEVICE_DEFINES, Design, needed, source, write_tables

# LUTs that a primitive of distributed memory takes (UltraScale Architecture Libraries Guide, UG974).
MEMORY_LUTS = {
    "RAM32M16": 8, "RAM32M": 4, "RAM64M8": 8, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4,
    "RAM256X1D": 8, "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8,
    "RAM32X16DR8": 8, "RAM64X8SW": 8, "SRL16E": 1, "SRLC32E": 1,
}  # fmt: skip
# Primitives by column, and how much of it each is: two half block memories are one.
COLUMNS = {
    "LUT": {f"LUT{n}": 1.0 for n in range(1, 7)},
    "LUT as memory": {name: float(luts) for name, luts in MEMORY_LUTS.items()},
    "FF": dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), 1.0),
    "DSP": {"DSP48E1": 1.0, "DSP48E2": 1.0},
    "BRAM": {"RAMB36E1": 1.0, "RAMB18E1": 0.5, "RAMB36E2": 1.0, "RAMB18E2": 0.5},
    "URAM": {"URAM288": 1.0},
}
# Primitives of no column: carries and wide multiplexers come with LUTs, inverters go into them.
FREE = re.compile(r"CARRY[48]|MUXF[789]|INV|VCC|GND|\$scopeinfo")

Counts = Counter[str]


@dataclass
class Group:
    """A part of a design: what is below some of its modules."""

    name: str
    modules: list[str]


@dataclass
class Comparison:
    """Groups of a design beside figures of a paper."""

    name: str
    groups: list[str]
    paper: dict[str, float]


@dataclass
class Target:
    """A design."""

    name: str
    top: str
    parameters: dict[str, int]
    paper: str
    limits: dict[str, float]
    blocks: list[str]
    group: list[Group]
    family: str = "xcup"
    cycles: int = 0
    compare: list[Comparison] = field(default_factory=list)

    @classmethod
    def read(cls, entry: dict[str, object]) -> "Target":
        """From a table of targets.toml."""
        target = cls(**entry)  # type: ignore[arg-type]
        target.group = [Group(**group) for group in target.group]  # type: ignore[arg-type]
        target.compare = [Comparison(**comparison) for comparison in target.compare]  # type: ignore[arg-type]
        return target

    def elaborated(self) -> Design:
        """Its hierarchy."""
        return Design(self.top, self.parameters, self.family)

    def digest(self) -> str:
        """Of all sources, of the parameters, the family and the tables."""
        state = hashlib.sha256(json.dumps([self.top, self.parameters], sort_keys=True).encode())
        state.update(" ".join(DEVICE_DEFINES[self.family]).encode())
        modules = needed(self.top)
        for module in modules:
            state.update(source(module).encode())
        if "twiddle_generator" in modules:
            with tempfile.TemporaryDirectory() as folder:
                write_tables(Path(folder), self.parameters)
                for path in sorted(Path(folder).iterdir()):
                    state.update(path.read_bytes())
        return state.hexdigest()[:16]


def scaled(counts: Counts, times: float) -> Counts:
    """Counts, `times` times."""
    return Counter({column: times * number for column, number in counts.items()})
