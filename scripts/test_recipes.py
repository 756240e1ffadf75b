"""Every recipe of the Makefile and of a release installs what it needs, or says in a line what is missing."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import full_tools
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

RULE = re.compile(r"^([^\t#:=\n]+):(?!=)([^\n]*)\n((?:\t[^\n]*\n)*)", re.MULTILINE)
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


SUBSTITUTION = re.compile(r"\$\$\(([^()]*)\)")
"""What the shell runs inside another command."""

VARIABLE = re.compile(r"\$\([^()]*\)")
"""A variable of make without another in its name."""

BEGIN = {"&&", "||", ";", "|", "(", "{", "!", "if", "then", "elif", "else", "do"}
"""Words of the shell after which a command begins."""

BASE = {
    *("awk", "cat", "cd", "command", "cp", "echo", "exit", "export", "for", "grep", "mkdir", "rm", "test"),
    *("[", "touch", "uname", "}", ")", "fi", "done", ";;"),
}
"""Words of the shell, and programs that every system with `make` has."""

CARGO = {"cargo", "rustc"}
MADE = "@"
"""What stands for a variable of make: a program that another rule makes begins with one, or with a folder."""


def rules() -> dict[str, tuple[list[str], str]]:
    """Every rule: its prerequisites, and the recipe with the values of its variables."""
    known = {}
    for goals, needs, recipe in RULE.findall(MAKEFILE):
        if goals.startswith("."):
            continue
        words = [word for word in expanded(needs.partition("##")[0]).split() if word != "|"]
        for name in ("FUZZ", "CT_WATCHED"):
            recipe = recipe.replace(f"$({name})", variables()[name])
        known[goals.strip()] = (words, recipe)
    return known


def words(line: str) -> list[str]:
    """The words and operators of a line of shell, with `MADE` for variables of make."""
    while VARIABLE.search(line):
        line = VARIABLE.sub(MADE, line)
    lexer = shlex.shlex(line.replace("$$", "$"), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def programs_of(recipe: str) -> set[str]:
    """The programs that the lines of a recipe start."""
    started = {"cargo"} if "$(BIN)/maturin" in recipe else set()
    for line in recipe.splitlines():
        inner = SUBSTITUTION.findall(line)
        for part in (SUBSTITUTION.sub(MADE, line), *inner):
            begins = True
            for word in words(part.strip().lstrip("@")):
                if begins and re.match(r"\w+=|-u$|PYO3_PYTHON$|env$", word):
                    continue
                if begins and word not in BEGIN:
                    started.add(word)
                begins = word in BEGIN or word.startswith(";")
    return {word for word in started - BASE if "/" not in word and not word.startswith((MADE, "$"))}


def needed(goal: str, known: dict[str, tuple[list[str], str]]) -> set[str]:
    """All prerequisites of a goal, and theirs."""
    reached: set[str] = set()
    left = [goal]
    while left:
        name = left.pop()
        rule = known.get(name) or next(
            (
                rule
                for pattern, rule in known.items()
                if "%" in pattern and re.fullmatch(re.escape(pattern).replace("%", ".+"), name)
            ),
            ([], ""),
        )
        left += [word for word in rule[0] if word not in reached]
        reached |= set(rule[0])
    return reached


@pytest.mark.parametrize("goal", sorted(rules()))
def test_a_recipe_has_the_programs_that_it_starts(goal: str) -> None:
    """Each is asked for before it is used: by a prerequisite `needs-PROGRAM`, or in the recipe itself."""
    known = rules()
    recipe = known[goal][1]
    before = needed(goal, known)
    missing = set()
    for program in programs_of(recipe):
        asked = any(word == f"needs-{program}" or word.startswith(f"needs-{program}.") for word in before)
        asked |= program in CARGO and "needs-rust" in before
        asked |= program == "npm" and "web/node_modules/.installed" in before
        asked |= re.search(rf"command -v {re.escape(program)}\b", recipe) is not None
        missing |= set() if asked else {program}
    assert not missing, f"{goal} starts {', '.join(sorted(missing))}: add needs-PROGRAM to its prerequisites"


@pytest.mark.parametrize("goal", variables()["FULL"].split())
def test_the_second_lane_leaves_nothing_out(goal: str) -> None:
    """A missing program is an error of its goal; `scripts/full_tools.py` names all of them at the start."""
    known = rules()
    assert "skipped" not in known[goal][1].lower()
    asked = {word[6:].partition(".")[0] for word in needed(goal, known) if re.match(r"needs-[^%]+\.", word)}
    assert asked <= {*full_tools.TOOLS, *full_tools.OTHERS}


ENVIRONMENTS = {
    "$(BIN)/": {"$(VENV)/.installed", "$(VENV)/.made", "build", "tested", "built"},
    "$(HARDWARE_BIN)/": {"$(HARDWARE_VENV)/.installed", "built"},
    "target/full/": {"target/full/boosters/.installed", "$(RAY_EXTRAS:%=target/full/%/.installed)"},
    "$(DENY) ": {"$(DENY)"},
    "$(BINDGEN) ": {"$(BINDGEN)"},
}
"""What programs begin with that other rules make, with the goals that make them."""


@pytest.mark.parametrize("begin", ENVIRONMENTS)
def test_recipes_make_the_environments_that_they_use(begin: str) -> None:
    known = rules()
    missing = set()
    for goal, (needs, recipe) in known.items():
        choices = set(re.findall(r"\$\(if [^,]*,,([^)\s]+)", " ".join(needs)))
        before = needed(goal, known) | choices | {goal}
        missing |= {goal} if begin in recipe and not before & ENVIRONMENTS[begin] else set()
    assert not missing


def test_programs_of_recipes_are_seen() -> None:
    recipe = '\t@if ! command -v npm > /dev/null; then echo "no npm"; else X=1 node --test a; fi\n'
    assert programs_of(recipe) == {"node"}
    assert programs_of("\tA=1 cargo build && $(BIN)/x | grep y || ! valgrind z\n") == {"cargo", "valgrind"}
    assert programs_of("\thost=$$(rustc --print host-tuple) && $(PYTHON) -m venv x\n") == {"rustc"}
    assert {"cargo", "npm", "cc", "valgrind"} <= set().union(
        *(programs_of(recipe) for _, recipe in rules().values())
    )


@pytest.mark.parametrize("goal", ["needs-rust", "dist", "demo", "rust-test", "web"])
def test_without_rust_a_recipe_ends_with_one_line(goal: str, tmp_path: Path) -> None:
    """Nothing is downloaded before: no environment of Python, no packages of npm."""
    environment = programs(tmp_path, cc="exit 0", git="exit 0", npm="exit 1")
    run = make(goal, environment | {"PATH": str(tmp_path)})
    assert run.returncode != 0
    assert run.stdout == "cargo is missing: rustup installs it, https://rustup.rs\n"


@pytest.mark.parametrize(
    ("cargo", "line"),
    [
        ("exit 1", "cargo has no toolchain: run rustup default stable"),
        ('echo "cargo 1.63.0 (abc 2022-07-05)"', "cargo 1.63.0 (abc 2022-07-05) is older than 1."),
    ],
)
def test_a_rust_that_cannot_build_is_one_line(cargo: str, line: str, tmp_path: Path) -> None:
    run = make("needs-rust", programs(tmp_path, cc="exit 0", cargo=cargo))
    assert run.returncode != 0
    assert run.stdout.startswith(line)
    assert run.stdout.count("\n") == 1


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
    command = [shutil.which("make") or "make", "--no-print-directory", goal]
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
