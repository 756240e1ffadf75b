"""A clean checkout of a commit, and the environment in which everything of a release is built."""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target" / "tools" / "dist" / "bin"
"""Programs of requirements/dist.txt: maturin, cargo-zigbuild, auditwheel. Zig is a module of their Python."""

UNWANTED = ("CARGO_", "MATURIN_", "PYO3_", "PYTHON", "RUST", "VIRTUAL_ENV")
"""Prefixes of variables that would change what is built."""

WANTED = ("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN")


@dataclass(frozen=True)
class Checkout:
    """A commit, in a folder that has nothing else."""

    folder: Path
    commit: str
    epoch: int
    """Seconds of the commit: the time of every file in every archive."""

    @property
    def version(self) -> str:
        """The version, which `Cargo.toml` states for all packages."""
        manifest = tomllib.loads((self.folder / "Cargo.toml").read_text(encoding="utf-8"))
        version: str = manifest["workspace"]["package"]["version"]
        return version

    @property
    def target(self) -> Path:
        """Where cargo builds."""
        return self.folder / "target"

    @property
    def flags(self) -> str:
        """Flags of rustc that take the paths of this machine out of what is built."""
        cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).resolve()
        sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        # The last that fits is used.
        names = {sysroot.stdout.strip(): "/rust", str(cargo): "/cargo", str(self.folder): "/keywright"}
        return " ".join(f"--remap-path-prefix={path}={name}" for path, name in names.items())

    def environment(self) -> dict[str, str]:
        """Variables for a build that depends on the commit and on the versions of the tools alone."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in WANTED or not name.startswith(UNWANTED)
        }
        return kept | {
            "CARGO_INCREMENTAL": "0",
            "CARGO_TARGET_DIR": str(self.target),
            "LC_ALL": "C.UTF-8",
            "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",
            "RUSTFLAGS": self.flags,
            "SOURCE_DATE_EPOCH": str(self.epoch),
            "TZ": "UTC",
        }

    def run(self, *command: str, extra: Mapping[str, str] | None = None) -> None:
        """Run a command in the checkout and show it.

        Raises:
            SystemExit: it failed.
        """
        print("$", *command, flush=True)
        environment = self.environment() | dict(extra or {})
        if subprocess.run(command, cwd=self.folder, env=environment, check=False).returncode != 0:
            raise SystemExit(f"this failed: {' '.join(command)}")


def require_targets(targets: Iterable[str]) -> None:
    """Install Rust's standard library for those targets that lack it.

    Raises:
        SystemExit: rustup is missing, or cannot install it.
    """
    if shutil.which("rustup") is None:
        raise SystemExit(f"rustup is missing, which adds the targets {', '.join(targets)}: https://rustup.rs")
    listed = subprocess.run(
        ["rustup", "target", "list", "--installed"], capture_output=True, text=True, check=True
    )
    for target in sorted(set(targets) - set(listed.stdout.split())):
        command = ["rustup", "target", "add", target]
        print("$", *command, flush=True)
        if subprocess.run(command, check=False).returncode != 0:
            raise SystemExit(f"this failed: {' '.join(command)}; without it, leave {target} out of TARGETS")


def git(*arguments: str, folder: Path = ROOT) -> str:
    """What git prints."""
    run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def check_out(folder: Path, revision: str) -> Checkout:
    """A clone of a commit. What cargo built in the folder before is kept.

    Uncommitted changes are not part of it, and a line says so.
    """
    if git("status", "--porcelain", "--untracked-files=no"):
        print("The packages are those of a commit: there are changes that are not committed.")
    commit = git("rev-parse", f"{revision}^{{commit}}")
    if not (folder / ".git").is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        git("clone", "--quiet", "--no-checkout", str(ROOT), str(folder))
    git("fetch", "--quiet", str(ROOT), commit, folder=folder)
    git("checkout", "--quiet", "--force", "--detach", commit, folder=folder)
    # Ignored files, which are built, stay; a release has none of them: archives are made from lists.
    git("clean", "--quiet", "--force", "-d", folder=folder)
    epoch = int(git("show", "--no-patch", "--format=%ct", commit, folder=folder))
    return Checkout(folder.resolve(), commit, epoch)
