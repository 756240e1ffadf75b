"""Plants the faults of faults.toml one at a time, and reports which of them the tests catch.

All faults of all modules are in one copy of the sources, build/faulty/rtl, where each is chosen by its
number at run time (`+fault=N`): an expression `x` becomes `(fault_pkg::chosen == N ? (y) : (x))`. So a
model is compiled once for all its faults, in a run without one, which must pass. A fault whose test fails is
caught; one whose test passes survives, and the program exits with 1. Words as arguments choose faults by
module or by file of tests.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

HARDWARE = Path(__file__).parents[1]
FAULTY = HARDWARE / "build/faulty"
PACKAGE = """\
package fault_pkg;
  function automatic int unsigned number();
    number = 0;
    if (!$value$plusargs("fault=%d", number)) number = 0;
  endfunction
  int unsigned chosen = number();
endpackage
"""


@dataclass(frozen=True)
class Fault:
    """A fault: its module, the expression before and after, what finds it, what it is.

    `before` occurs once in the module; where that needs more than the expression, `<<|` and `|>>` enclose it.
    """

    module: str
    before: str
    after: str
    test: str
    what: str
    only: str = ""

    def planted(self, text: str, number: int) -> str:
        """The module's text with it."""
        left, expression, right = "", self.before, ""
        if "<<|" in self.before:
            left, rest = self.before.split("<<|")
            expression, right = rest.split("|>>")
        times = text.count(left + expression + right)
        if times != 1:
            sys.exit(f"{self.module}: {self.before!r} occurs {times} times")
        choice = f"(fault_pkg::chosen == {number} ? ({self.after}) : ({expression}))"
        return text.replace(left + expression + right, left + choice + right)


def plant(faults: list[Fault]) -> None:
    """Writes the sources with all faults; a source that is as it was keeps its time."""
    rooms = FAULTY / "rtl"
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((HARDWARE / "rtl").glob("*/*.sv"))}
    modules = {path.stem for path in texts if not path.stem.endswith("_pkg")}
    if without := modules - {fault.module for fault in faults}:
        sys.exit(f"faults.toml has no fault in {', '.join(sorted(without))}")
    for number, fault in enumerate(faults, 1):
        path = next(path for path in texts if path.stem == fault.module)
        texts[path] = fault.planted(texts[path], number)
    expected = {rooms / path.parent.name / path.name: text for path, text in texts.items()}
    # Packages are compiled in the order of their names.
    expected[rooms / "arithmetic/a_fault_pkg.sv"] = PACKAGE
    for old in set(rooms.glob("*/*.sv")) - set(expected):
        old.unlink()
    for path, text in expected.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in (HARDWARE / "rtl").glob("*/*.toml"):
        shutil.copy(path, rooms / path.parent.name / path.name)


def run(test: str, number: int, only: str = "") -> bool:
    """Whether a test passes with a fault."""
    pytest = Path(sys.executable).parent / "pytest"
    done = subprocess.run(
        [pytest, "--confcutdir=hardware", f"hardware/dv/{test}", "-q", "-m", "", "-p", "no:cacheprovider"],
        cwd=HARDWARE.parent, capture_output=True, text=True, check=False,
        env={**os.environ, "HARDWARE_FAULT": str(number), "HARDWARE_ONLY": only},
    )  # fmt: skip
    # A failure shows the command of the simulation, if it came so far.
    if done.returncode and (done.returncode != 1 or f"+fault={number}" not in done.stdout):
        sys.exit(f"{test} with fault {number} does not run:\n{done.stdout[-3000:]}")
    return done.returncode == 0


def main() -> None:
    """Reports every fault; exits with 1 if one survives."""
    entries = tomllib.loads((HARDWARE / "dv/faults.toml").read_text(encoding="utf-8"))["fault"]
    faults = [Fault(**entry) for entry in entries]
    plant(faults)
    words = set(sys.argv[1:])
    chosen = [
        (number, fault)
        for number, fault in enumerate(faults, 1)
        if not words or words & {fault.module, fault.test.partition(".")[0]}
    ]
    survivors = 0
    for test in dict.fromkeys(fault.test for _, fault in chosen):
        if not run(test, 0):
            sys.exit(f"{test} fails without a fault")
        for number, fault in chosen:
            if fault.test == test:
                passed = run(test, number, fault.only)
                survivors += passed
                print(f"{'SURVIVED' if passed else 'caught'}: {fault.module}, {fault.what}", flush=True)
    print(
        f"{len(chosen)} faults in {len({fault.module for _, fault in chosen})} modules, {survivors} survive"
    )
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
