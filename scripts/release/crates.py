"""Crates as crates.io gets them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from release.checkout import ROOT, Checkout


def workspace(folder: Path = ROOT) -> list[dict[str, Any]]:
    """The packages of the workspace, as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    packages: list[dict[str, Any]] = json.loads(run.stdout)["packages"]
    return packages


def published(packages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that a registry gets, each after what it depends on.

    A dependency for tests alone counts only if it has a version: cargo leaves out the others.
    """
    left = {package["name"]: package for package in packages if package["publish"] != []}
    order: list[dict[str, Any]] = []
    while left:
        ready = [
            package
            for package in left.values()
            if not any(
                dependency["name"] in left and dependency["req"] != "*"
                for dependency in package["dependencies"]
            )
        ]
        if not ready:
            raise ValueError(f"these depend on each other: {', '.join(sorted(left))}")
        order += [left.pop(name) for name in sorted(package["name"] for package in ready)]
    return order


def build_crates(checkout: Checkout, out: Path) -> None:
    """Pack the crates, compile each from its package, and do all that publishing does but the upload."""
    shutil.rmtree(checkout.target / "package", ignore_errors=True)
    checkout.run("cargo", "publish", "--dry-run", "--locked", "--workspace")
    names = [
        f"{package['name']}-{package['version']}.crate" for package in published(workspace(checkout.folder))
    ]
    for name in names:
        archives = [checkout.target / "package" / name, checkout.target / "package" / "tmp-crate" / name]
        shutil.copy(next(path for path in archives if path.exists()), out)
