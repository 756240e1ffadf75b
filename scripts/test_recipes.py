"""Every recipe of the Makefile and of a release installs what it needs, or says in a line what is missing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from release import build, wheels
from release.checkout import require_targets

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
CARGO_TARGETS = [
    path.parents[1].relative_to(ROOT).as_posix()
    for path in (ROOT / "embedded").glob("*/.cargo/config.toml")
    if re.search(r"^target = ", path.read_text(encoding="utf-8"), re.MULTILINE)
]
"""Folders in which cargo builds for another target without being told."""

RULE = re.compile(r"^([^\t#:=\n]+):(?!=)([^\n]*)\n((?:\t[^\n]*\n)+)", re.MULTILINE)
HOST = "$$host"
"""The machine's own target, which every installation of Rust has."""


def variables() -> dict[str, str]:
    return dict(re.findall(r"^(\w+) :?= *(.*)$", MAKEFILE, re.MULTILINE))


def expanded(text: str) -> str:
    """Text with the values of variables that name prerequisites."""
    return re.sub(r"\$\((\w+_NEEDS)\)", lambda match: variables()[match[1]], text)


def crossing() -> dict[str, tuple[str, str]]:
    """Rules that compile for another target: prerequisites and recipe, by goal."""
    rules = {}
    for goal, needs, recipe in RULE.findall(MAKEFILE):
        named = set(re.findall(r"--target[ =](\S+)", recipe)) - {HOST}
        inside = any(f"cd {folder} " in recipe and "cargo " in recipe for folder in CARGO_TARGETS)
        if named or inside:
            rules[goal.strip()] = (expanded(needs.partition("##")[0]), recipe)
    return rules


def test_the_rules_that_cross_are_all_seen() -> None:
    assert {"bare-%", "bare-full", "cortex-m4-c", "cortex-a7", "neon-test", "$(PAGE)/.built"} <= set(
        crossing()
    )


@pytest.mark.parametrize("goal", sorted(crossing()))
def test_a_recipe_for_another_target_installs_its_library(goal: str) -> None:
    needs, recipe = crossing()[goal]
    assert "rust-for-" in needs or re.search(r"\$\(MAKE\) .*rust-for-", recipe), (
        f"{goal} compiles for another target: add rust-for-TARGET to its prerequisites"
    )


def programs(folder: Path, **scripts: str) -> dict[str, str]:
    """An environment with these programs and those of the system that `make` itself needs."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(folder)}


def make(goal: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", goal]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


RUSTUP = 'echo "$@" >> "$HOME/calls"\nif [ "$2" = list ]; then echo installed-target; fi'


@pytest.mark.parametrize(("target", "added"), [("missing-target", True), ("installed-target", False)])
def test_a_target_is_added_once(tmp_path: Path, target: str, added: bool) -> None:
    run = make(f"rust-for-{target}", programs(tmp_path, rustup=RUSTUP))
    assert run.returncode == 0, run.stderr
    assert (f"target add {target}" in (tmp_path / "calls").read_text()) == added


def test_a_missing_program_is_one_line_with_its_package(tmp_path: Path) -> None:
    run = make("needs-no-such-program.some-package", programs(tmp_path))
    assert run.returncode != 0
    assert run.stdout == "no-such-program is missing: Debian has it in the package some-package\n"


def test_a_release_adds_its_targets_before_it_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in programs(tmp_path, rustup=RUSTUP).items():
        monkeypatch.setenv(name, value)
    require_targets(["installed-target", "missing-target"])
    assert (tmp_path / "calls").read_text().splitlines()[1:] == ["target add missing-target"]
    assert capfd.readouterr().out == "$ rustup target add missing-target\n"
    programs(tmp_path, rustup='[ "$2" = list ]')
    with pytest.raises(SystemExit, match="rustup target add missing-target; without it"):
        require_targets(["missing-target"])
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(SystemExit, match="rustup is missing"):
        require_targets(["missing-target"])


def test_every_target_of_a_release_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def refuse(*arguments: object) -> None:
        raise RuntimeError("the checkout comes after the targets")

    monkeypatch.setattr(build, "require_targets", asked.extend)
    monkeypatch.setattr(build, "check_out", refuse)
    with pytest.raises(RuntimeError, match="after the targets"):
        build.build("HEAD", tmp_path, tmp_path, ["wheels"], list(wheels.PLATFORMS))
    assert asked == list(wheels.PLATFORMS)
