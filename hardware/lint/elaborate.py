"""Elaborates the tops with slang, a second and strict front end: no warning is allowed."""

import sys
from pathlib import Path

from pyslang.driver import Driver

RTL = Path(__file__).parents[1] / "rtl"
TOPS = ("client_core", "key_switch", "key_switch_pair", "ntt_pipe")
# -Werror makes warnings errors. Widths and signs are what -Wall of Verilator checks, with its waivers.
OPTIONS = (
    "-Wextra -Werror -Wno-useless-cast -Wno-case-redundant-default -Wno-shadow-hierarchy --error-limit 40"
)


def elaborated(top: str) -> bool:
    """Whether slang elaborates a top without an error or a warning; what it says goes to the terminal."""
    packages = sorted(RTL.glob("*/*_pkg.sv"))
    rooms = " ".join(f"-y {room}" for room in sorted(RTL.iterdir()))
    driver = Driver()
    driver.addStandardArgs()
    files = " ".join(map(str, [*packages, next(RTL.glob(f"*/{top}.sv"))]))
    if not driver.parseCommandLine(f"slang --top {top} --libext .sv {rooms} {OPTIONS} {files}"):
        return False
    return driver.processOptions() and driver.parseAllSources() and driver.runFullCompilation(quiet=True)


def main() -> None:
    """Exits with 1 if a top does not pass."""
    good = [elaborated(top) for top in TOPS]
    print(f"slang: {len(TOPS)} tops")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
