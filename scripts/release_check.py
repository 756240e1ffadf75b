"""The check-list of a release: what has to be true before a tag is made.

    make release-check             # before the tag
    make release-check TAG=v1.2.3  # the tag is of this commit and names this version

Every line says what was checked. The exit status is 1 if something is not as it should be. The recipe runs
`make test-full` first; `.ci/run` has to have passed for this commit.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from release.archive import SUMS, digest, read_sums
from release.wheels import PLATFORMS

ROOT = Path(__file__).resolve().parents[1]
FILES = Path("target") / "packages" / "files"


class Wrong(Exception):
    """Something is not as a release needs it."""


def git(root: Path, *arguments: str) -> str:
    """What git prints."""
    run = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def version(root: Path) -> str:
    """The version of all packages."""
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    version: str = manifest["workspace"]["package"]["version"]
    return version


def clean(root: Path) -> str:
    """The commit is all there is."""
    changed = git(root, "status", "--porcelain")
    if changed:
        raise Wrong(f"commit or remove these first:\n{changed}")
    return f"commit {git(root, 'rev-parse', 'HEAD')[:12]}, nothing else"


def one_version(root: Path) -> str:
    """Packages that state the version themselves state this one."""
    expected = version(root)
    stated = {
        "web/client/package.json": json.loads((root / "web/client/package.json").read_text())["version"]
    }
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    for name, dependency in manifest["workspace"]["dependencies"].items():
        if name.startswith("keywright-") and "version" in dependency:
            stated[f"Cargo.toml, {name}"] = dependency["version"]
    others = {place: version_there for place, version_there in stated.items() if version_there != expected}
    if others:
        raise Wrong(f"the version is {expected}, but not in {others}")
    return f"{expected}, everywhere"


def changelog(root: Path) -> str:
    """The changelog has an entry with a date, and nothing that is not released yet."""
    text, expected = (root / "CHANGELOG.md").read_text(encoding="utf-8"), version(root)
    if re.search(rf"^## \[{re.escape(expected)}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE) is None:
        raise Wrong(f"CHANGELOG.md has no line `## [{expected}] - YYYY-MM-DD`")
    waiting = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if waiting is not None and waiting[1].strip():
        raise Wrong(f"CHANGELOG.md has changes under Unreleased: move them to {expected}")
    return f"an entry for {expected}"


def golden_files(root: Path) -> str:
    """There are files of this version's formats, and those of earlier releases are what they were."""
    folder, expected = root / "vectors" / "releases", version(root)
    if not (folder / expected / SUMS).is_file():
        raise Wrong(f"{folder / expected} has no {SUMS}: run `python scripts/golden_files.py`")
    for tag in git(root, "tag", "--list", "v*").split():
        released = f"vectors/releases/{tag.removeprefix('v')}"
        if tag.removeprefix("v") != expected and git(root, "diff", "--name-only", tag, "--", released):
            raise Wrong(f"files of {tag} in {released} are not those of its tag: restore them")
    return ", ".join(sorted(path.name for path in folder.iterdir() if path.is_dir()))


def packages(root: Path) -> str:
    """`make dist` built everything from this version, and the digests are right."""
    folder, expected = root / FILES, version(root)
    if not (folder / SUMS).is_file():
        raise Wrong(f"{folder} has no {SUMS}: run `make dist`, `make dist-again` and `make dist-test`")
    digests = {path.name: digest(path) for path in folder.iterdir() if path.name != SUMS}
    if read_sums(folder) != digests:
        raise Wrong(f"{SUMS} is not of the files in {folder}: run `make dist`")
    needed = [
        f"keywright-{expected}.tar.gz",
        f"keywright-{expected}.cdx.json",
        f"keywright-ring-{expected}.crate",
    ]
    needed += [f"keywright-client-{expected}.tgz", f"keywright-client-{expected}-x86_64-linux-gnu.tar.gz"]
    for target, tag in PLATFORMS.items():
        needed.append(f"keywright-{expected}-cp311-abi3-{tag}_{target.partition('-')[0]}.whl")
    missing = sorted(set(needed) - digests.keys())
    if missing:
        raise Wrong(f"{folder} lacks {', '.join(missing)}")
    return f"{len(digests)} files"


CHECKS: dict[str, Callable[[Path], str]] = {
    "tree": clean,
    "version": one_version,
    "changelog": changelog,
    "golden files": golden_files,
    "packages": packages,
}


def check_tag(root: Path, tag: str) -> str:
    """A tag names the version, and is of this commit."""
    if tag != f"v{version(root)}":
        raise Wrong(f"the tag of {version(root)} is v{version(root)}, not {tag}")
    if git(root, "rev-list", "-n1", tag) != git(root, "rev-parse", "HEAD"):
        raise Wrong(f"{tag} is no tag of this commit")
    return tag


def main() -> int:
    """Returns 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Go through the check-list of a release.")
    parser.add_argument("tag", nargs="?", help="the tag, if there is one")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    options = parser.parse_args()
    checks = dict(CHECKS)
    if options.tag is not None:
        checks["tag"] = lambda root: check_tag(root, options.tag)
    wrong = 0
    for name, check in checks.items():
        try:
            print(f"{name}: {check(options.root)}")
        except Wrong as reason:
            wrong += 1
            print(f"{name}: WRONG: {reason}")
    if wrong:
        print(f"{wrong} of {len(checks)} checks found something", file=sys.stderr)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
