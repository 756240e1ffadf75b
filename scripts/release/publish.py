"""Hand the files of a release to a registry, which trusts the workflow that runs this.

make publish REGISTRY=pypi    # or crates, npm; DRY_RUN=1 does all but the upload
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from release.build import FILES
from release.checkout import ROOT

REGISTRIES = ("pypi", "crates", "npm")


def command(registry: str, files: Path, *, dry_run: bool) -> list[str]:
    """What hands the files to a registry.

    Raises:
        SystemExit: there are no files for it.
    """
    dry = ["--dry-run"] if dry_run else []
    if registry == "crates":
        return ["cargo", "publish", "--locked", "--workspace", *dry]
    if registry == "npm":
        (package,) = matching(files, "keywright-client-*.tgz")
        return ["npm", "publish", str(package), "--provenance", "--access", "public", *dry]
    uv = str(Path(sys.executable).with_name("uv"))
    # The C library is a tar.gz too.
    packages = [*matching(files, "keywright-*.whl"), *matching(files, "keywright-[0-9]*.tar.gz")]
    trusted = ["--trusted-publishing", "never" if dry_run else "always"]
    return [uv, "publish", *trusted, *dry, *map(str, packages)]


def matching(files: Path, pattern: str) -> list[Path]:
    """The files of a pattern, in order.

    Raises:
        SystemExit: there are none.
    """
    paths = sorted(files.glob(pattern))
    if not paths:
        raise SystemExit(f"{files} has no {pattern}: `make dist` builds it")
    return paths


def main() -> int:
    """Returns the status of what hands them over."""
    parser = argparse.ArgumentParser(description="Publish the packages of a release.")
    parser.add_argument("registry", choices=REGISTRIES)
    parser.add_argument("--files", type=Path, default=FILES)
    parser.add_argument("--dry-run", action="store_true", help="do all but the upload")
    options = parser.parse_args()
    run = command(options.registry, options.files, dry_run=options.dry_run)
    if shutil.which(run[0]) is None:
        print(f"{run[0]} is missing, which uploads to {options.registry}", file=sys.stderr)
        return 1
    print("$", *run, flush=True)
    return subprocess.run(run, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
