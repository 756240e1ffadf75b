"""The check-list of a release finds what is missing, one thing at a time."""

import json
import subprocess
from pathlib import Path

import pytest
import release_check
from release.archive import write_sums
from release.wheels import PLATFORMS

MANIFEST = """\
[workspace.package]
version = "1.2.0"

[workspace.dependencies]
keywright-ring = { path = "crates/ring", version = "1.2.0" }
"""


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that is ready for a release of 1.2.0, with 1.1.0 behind it."""
    root = tmp_path / "checkout"
    for folder in ("web/client", "vectors/releases/1.1.0", "target/packages/files"):
        (root / folder).mkdir(parents=True)
    (root / ".gitignore").write_text("/target\n")
    (root / "Cargo.toml").write_text(MANIFEST)
    (root / "web/client/package.json").write_text(json.dumps({"version": "1.2.0"}))
    (root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2027-01-31\n\n* All.\n"
    )
    (root / "vectors/releases/1.1.0/file").write_text("old")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "1.1.0")
    git(root, "tag", "v1.1.0")
    (root / "vectors/releases/1.2.0").mkdir()
    (root / "vectors/releases/1.2.0/SHA256SUMS").write_text("")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "1.2.0")
    files = root / "target/packages/files"
    names = ["keywright-1.2.0.tar.gz", "keywright-1.2.0.cdx.json", "keywright-ring-1.2.0.crate"]
    names += ["keywright-client-1.2.0.tgz", "keywright-client-1.2.0-x86_64-linux-gnu.tar.gz"]
    for target, tag in PLATFORMS.items():
        names.append(f"keywright-1.2.0-cp311-abi3-{tag}_{target.partition('-')[0]}.whl")
    for name in names:
        (files / name).touch()
    write_sums(files)
    return root


def wrong(root: Path) -> set[str]:
    """The checks that find something."""
    kinds = set()
    for name, check in release_check.CHECKS.items():
        try:
            check(root)
        except release_check.Wrong:
            kinds.add(name)
    return kinds


def test_a_checkout_that_is_ready_passes(checkout: Path) -> None:
    assert wrong(checkout) == set()
    git(checkout, "tag", "v1.2.0")
    assert release_check.check_tag(checkout, "v1.2.0") == "v1.2.0"


@pytest.mark.parametrize(
    ("name", "text", "problems"),
    [
        ("new", "text", {"tree"}),
        ("web/client/package.json", json.dumps({"version": "1.1.0"}), {"version"}),
        ("Cargo.toml", MANIFEST.replace('"1.2.0" }', '"1.1.0" }'), {"version"}),
        ("CHANGELOG.md", "## [1.1.0] - 2026-12-01\n", {"changelog"}),
        ("CHANGELOG.md", "## [Unreleased]\n\n* One more.\n\n## [1.2.0] - 2027-01-31\n", {"changelog"}),
        ("vectors/releases/1.1.0/file", "new", {"golden files"}),
        ("target/packages/files/keywright-1.2.0.tar.gz", "changed", {"packages"}),
    ],
)
def test_what_is_missing_is_found(checkout: Path, name: str, text: str, problems: set[str]) -> None:
    (checkout / name).write_text(text)
    assert problems <= wrong(checkout) <= problems | {"tree"}


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("vectors/releases/1.2.0/SHA256SUMS", "golden files"),
        ("target/packages/files/SHA256SUMS", "packages"),
        ("target/packages/files/keywright-1.2.0-cp311-abi3-musllinux_1_2_aarch64.whl", "packages"),
    ],
)
def test_files_that_are_missing_are_found(checkout: Path, name: str, problems: str) -> None:
    (checkout / name).unlink()
    if name.endswith(".whl"):
        write_sums(checkout / "target/packages/files")
    assert wrong(checkout) - {"tree"} == {problems}


def test_a_tag_names_the_version_and_the_commit(checkout: Path) -> None:
    for tag in ("v1.1.0", "v1.2.0", "1.2.0"):
        with pytest.raises(release_check.Wrong):
            release_check.check_tag(checkout, tag)
