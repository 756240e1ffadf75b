"""The files of a container and of a composition: checks with and without a builder."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from keywright.commands.models import serve

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "container"
CONTAINER, COMPOSE = FOLDER / "Containerfile", FOLDER / "compose.yaml"
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))


def composition() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return services


def arguments() -> list[str]:
    """Return the arguments of `keywright serve` in the composition."""
    (line,) = [line for line in CONTAINER.read_text().splitlines() if line.startswith("ENTRYPOINT")]
    entry = yaml.safe_load(line.removeprefix("ENTRYPOINT "))
    assert entry[:2] == ["keywright", "serve"]
    return [*entry[2:], *composition()["services"]["keywright"]["command"]]


def environment() -> dict[str, str]:
    """Return the variables that `example.env` sets."""
    lines = (FOLDER / "example.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.mark.skipif(HADOLINT is None, reason="there is no hadolint: make installs it")
def test_the_container_file_is_one(tmp_path: Path) -> None:
    assert HADOLINT is not None
    run = subprocess.run([HADOLINT, str(CONTAINER)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")
    # It would say so otherwise.
    spoiled = tmp_path / "Containerfile"
    spoiled.write_text(CONTAINER.read_text().replace("USER 10001", "USER root"))
    assert subprocess.run([HADOLINT, str(spoiled)], capture_output=True, check=False).returncode != 0


def test_the_image_command_accepts_its_arguments() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    serve.add_arguments(parser)
    options = parser.parse_args(arguments())
    assert options.folders == [Path("/model")]
    assert options.state == Path("/state")
    assert options.objects.startswith("s3://keywright/")
    assert options.records.startswith("postgresql://keywright@records")
    grace = composition()["services"]["keywright"]["stop_grace_period"]
    assert float(grace.removesuffix("s")) > options.drain


def test_the_composition_fits_together() -> None:
    described = composition()
    services, names = described["services"], set(described["volumes"])
    for service in services.values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source in names or source == "./model"
        # No image of an unknown version is used.
        assert "image" not in service or not service["image"].endswith(
            (":latest", service["image"].split(":")[0])
        )
    own = services["keywright"]
    assert set(own["depends_on"]) <= set(services)
    assert all(port.startswith("127.0.0.1:") for port in own["ports"])
    assert own["read_only"]
    assert own["cap_drop"] == ["ALL"]
    assert own["build"]["context"] == ".."
    assert (ROOT / own["build"]["dockerfile"]).is_file()
    # The bucket and the port are those of the other services.
    assert services["objects"]["volumes"] == ["objects:/buckets/keywright"]
    assert own["environment"]["AWS_ENDPOINT_URL"] == "http://objects:7070"
    assert services["records"]["environment"]["POSTGRES_USER"] == "keywright"
    # Every variable has a value in the example, and no password is in the file.
    words = COMPOSE.read_text().split("${")[1:]
    assert {word.split(":")[0].split("}")[0] for word in words} == set(environment())


def test_what_the_image_is_built_from_is_enough_for_cargo(tmp_path: Path) -> None:
    """Use the files that the builder gets, according to the ignore list."""
    kept: list[str] = []
    dropped: list[str] = []
    for line in (FOLDER / "Containerfile.dockerignore").read_text().split():
        (kept if line.startswith("!") else dropped).append(line.removeprefix("!").removeprefix("**/"))
    assert dropped[0] == "**"

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if any(fnmatch(name, pattern) for pattern in dropped[1:])}

    for name in kept:
        source, to = ROOT / name, tmp_path / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, to, ignore=ignored) if source.is_dir() else shutil.copy(source, to)
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("there is no cargo")
    command = [cargo, "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "python/keywright/serve/http/admin.css").is_file()
    assert not list(tmp_path.rglob("*.so"))
