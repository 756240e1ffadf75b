"""Install what `make dist` built in clean environments, and use it.

    make dist-test

A trial for which the machine lacks something says SKIPPED and what. The exit status is 1 if a trial failed.
"""

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from release.archive import SUMS, digest, read_sums
from release.build import FILES, PACKAGES
from release.installed.arm import try_arm_wheel
from release.installed.c_library import try_arm_c_library, try_c_library
from release.installed.crates import try_crates
from release.installed.extras import try_extras
from release.installed.materials import try_materials
from release.installed.musl import try_musl
from release.installed.npm import try_npm_package
from release.installed.tags import try_tags
from release.installed.trial import Failed, Skipped
from release.installed.wheel import try_source, try_wheel


def try_sums(files: Path, _scratch: Path) -> None:
    """The files are those of SHA256SUMS, and there are no others."""
    if not (files / SUMS).is_file():
        raise Failed(f"{files} has no {SUMS}")
    listed = read_sums(files)
    sums = {path.name: digest(path) for path in files.iterdir() if path.name != SUMS}
    if listed != sums:
        raise Failed(f"{SUMS} is not of these files: {listed.items() ^ sums.items()}")
    print(f"{len(sums)} files")


TRIALS: dict[str, Callable[[Path, Path], None]] = {
    "sums": try_sums,
    "tags": try_tags,
    "materials": try_materials,
    "wheel": try_wheel,
    "crates": try_crates,
    "npm": try_npm_package,
    "c": try_c_library,
    "arm-c": try_arm_c_library,
    "arm-wheel": try_arm_wheel,
    "musl": try_musl,
    "source": try_source,
    "extras": try_extras,
}


def main() -> int:
    """Returns 1 if a trial failed."""
    parser = argparse.ArgumentParser(description="Try the packages of a release.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"trials to run: {', '.join(TRIALS)}")
    parser.add_argument("--files", type=Path, default=FILES, help="what `make dist` built")
    options = parser.parse_args()
    unknown = sorted({*options.names} - {*TRIALS})
    if unknown:
        parser.error(f"there is no trial {', '.join(unknown)}: choose from {', '.join(TRIALS)}")
    files = options.files.resolve()
    if not files.is_dir():
        print(f"there is no {files}: run `make dist` first", file=sys.stderr)
        return 1
    outcomes: dict[str, str] = {}
    for name in options.names or TRIALS:
        print(f"== {name}", flush=True)
        scratch = PACKAGES / "trials" / name
        try:
            TRIALS[name](files, scratch)
            outcomes[name] = "passed"
        except Skipped as reason:
            outcomes[name] = f"SKIPPED: {reason}"
        except Failed as reason:
            print(reason, file=sys.stderr)
            outcomes[name] = "FAILED"
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print("", *(f"{name}: {outcome}" for name, outcome in outcomes.items()), sep="\n")
    return int("FAILED" in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
