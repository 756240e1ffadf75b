"""The workflow files: every step calls make, nothing unpinned is run, and what they name exists."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from release import publish
from release.checkout import ROOT

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def steps(path: Path) -> list[dict[str, Any]]:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_every_step_calls_make(path: Path) -> None:
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    for command in commands:
        called = re.fullmatch(r'make ([a-z-]+)((?: [A-Z_]+=(?:[\w/.-]+|"\$[A-Z_]+"))*)', command)
        assert called is not None, command
        assert re.search(rf"^{called[1]}:", MAKEFILE, re.MULTILINE), f"there is no recipe {called[1]}"
        for name in re.findall(r"([A-Z_]+)=", called[2]):
            assert re.search(rf"\$\({name}\)|^{name} \?=", MAKEFILE, re.MULTILINE), f"no recipe takes {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_actions_are_pinned_by_digest(path: Path) -> None:
    """A tag can be moved; the comment says which it was."""
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for line in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_tests_run_on_every_system_and_python() -> None:
    matrix = yaml.safe_load((FOLDER / "test.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert matrix["python"][0] == oldest.removeprefix(">=")
    minors = [int(version.partition(".")[2]) for version in matrix["python"]]
    assert minors == list(range(11, 16))
    systems = {*matrix["system"], *(combination["system"] for combination in matrix["include"])}
    assert {system.partition("-")[0] for system in systems} == {"ubuntu", "macos", "windows"}


def test_tests_run_once_in_a_bare_environment() -> None:
    """One failed where TERM was dumb."""
    jobs = yaml.safe_load((FOLDER / "test.yml").read_text())["jobs"].values()
    bare = [job for job in jobs if job.get("env", {}).get("TERM") == "dumb"]
    assert [step["run"] for job in bare for step in job["steps"] if "run" in step] == ["make test-lowest"]


def test_what_is_built_elsewhere_uses_the_same_maturin() -> None:
    (built,) = [step for step in steps(FOLDER / "release.yml") if "maturin-action" in str(step.get("uses"))]
    pinned = re.search(r"^maturin==(\S+)", (ROOT / "requirements/dist.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert built["with"]["maturin-version"] == f"v{pinned[1]}"


def test_only_the_job_that_publishes_may_ask_registries_for_trust() -> None:
    workflow = yaml.safe_load((FOLDER / "release.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    trusted = {name for name, job in workflow["jobs"].items() if "id-token" in job.get("permissions", {})}
    assert trusted == {"publish"}
    job = workflow["jobs"]["publish"]
    assert job["environment"] == "release"
    assert job["if"] == "github.event_name == 'push'"
    assert set(job["needs"]) == workflow["jobs"].keys() - {"publish"}
    named = {
        step["run"].partition("REGISTRY=")[2] for step in job["steps"] if "publish" in step.get("run", "")
    }
    assert named == set(publish.REGISTRIES)
    assert "secrets." not in (FOLDER / "release.yml").read_text()


def test_registries_get_their_files(tmp_path: Path) -> None:
    for name in (
        "keywright-0.1.0-cp311-abi3-win_amd64.whl", "keywright-0.1.0.tar.gz", "keywright-client-0.1.0.tgz",
        "keywright-client-0.1.0-x86_64-linux-gnu.tar.gz", "keywright-0.1.0.cdx.json",
    ):  # fmt: skip
        (tmp_path / name).touch()
    pypi = publish.command("pypi", tmp_path, dry_run=False)
    assert [Path(word).name for word in pypi if word.startswith(str(tmp_path))] == [
        "keywright-0.1.0-cp311-abi3-win_amd64.whl",
        "keywright-0.1.0.tar.gz",
    ]
    assert pypi[2:4] == ["--trusted-publishing", "always"]
    assert publish.command("npm", tmp_path, dry_run=True)[2:] == [
        str(tmp_path / "keywright-client-0.1.0.tgz"), "--provenance", "--access", "public", "--dry-run",
    ]  # fmt: skip
    assert "--workspace" in publish.command("crates", tmp_path, dry_run=True)
    with pytest.raises(SystemExit, match="make dist"):
        publish.command("npm", tmp_path / "none", dry_run=False)


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="there is no actionlint")
def test_actionlint_finds_nothing() -> None:
    run = subprocess.run(["actionlint", *map(str, FILES)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")
