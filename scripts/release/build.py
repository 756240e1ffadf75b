"""Build all that a release hands out, from the last commit, into target/packages/files.

    make dist
    make dist-again    # once more, from another folder: every file has to be the same

Wheels, crates and libraries depend on the commit, on the tools that requirements/dist.txt pins, and on the
versions of Rust and Node. Paths and times of the machine are in none of them.
"""

import argparse
import shutil
import sys
from pathlib import Path

from release import c_library, wheels
from release.archive import SUMS, write_sums
from release.c_library import build_c_library
from release.checkout import ROOT, check_out, require_targets
from release.crates import build_crates
from release.materials import write_bill_of_materials
from release.npm import build_npm_package
from release.wheels import build_source, build_wheel, document_stub

PACKAGES = ROOT / "target" / "packages"
FILES = PACKAGES / "files"
AGAIN = PACKAGES / "files-again"
PARTS = ("source", "wheels", "crates", "c", "npm")


def build(revision: str, source: Path, out: Path, parts: list[str], targets: list[str]) -> str:
    """Build parts of a commit from a clean checkout in `source` into `out`; returns the digests."""
    if {"wheels", "c"} & set(parts):
        require_targets(targets)
    checkout = check_out(source, revision)
    if set(parts) == set(PARTS):
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    materials = out / f"keywright-{checkout.version}.cdx.json"
    write_bill_of_materials(checkout, materials)
    # It downloads from npm, so a machine that cannot do that stops before the hour of compiling.
    if "npm" in parts:
        build_npm_package(checkout, out)
    if {"source", "wheels"} & set(parts):
        document_stub(checkout)
    if "source" in parts:
        build_source(checkout, out)
    if "wheels" in parts:
        for target in filter(targets.__contains__, wheels.PLATFORMS):
            build_wheel(checkout, out, target, materials)
    if "c" in parts:
        for target in filter(targets.__contains__, c_library.PLATFORMS):
            build_c_library(checkout, out, target)
    if "crates" in parts:
        build_crates(checkout, out)
    return write_sums(out)


def differences(first: str, second: str) -> list[str]:
    """Names of the files whose digests differ, or that only one of two lists has."""
    one, other = (dict(line.split()[::-1] for line in text.splitlines()) for text in (first, second))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def main() -> int:
    """Returns 1 if a second build differs from the first."""
    parser = argparse.ArgumentParser(description="Build the packages of a release.")
    parser.add_argument("--again", action="store_true", help="build once more elsewhere, and compare")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--targets", nargs="+", choices=wheels.PLATFORMS, default=list(wheels.PLATFORMS))
    parser.add_argument("--commit", default="HEAD", help="what to build; the last commit by default")
    options = parser.parse_args()
    if not options.again:
        print(build(options.commit, PACKAGES / "source", FILES, options.parts, options.targets), end="")
        return 0
    first = (FILES / SUMS).read_text(encoding="ascii")
    second = build(
        options.commit, PACKAGES / "again" / "another-source", AGAIN, options.parts, options.targets
    )
    names = {line.split()[1] for line in second.splitlines()}
    if set(options.parts) != set(PARTS) or set(options.targets) != set(wheels.PLATFORMS):
        first = "\n".join(line for line in first.splitlines() if line.split()[1] in names)
    differing = differences(first, second)
    if differing:
        print("these files differ between two builds:", *differing, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{len(names)} files are the same in two builds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
