"""Crates depend on nothing outside of `crates/`, and no wheel has the insecure scheme."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CRATES = ROOT / "crates"


def manifest(path: Path) -> dict[str, Any]:
    """A parsed TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def dependencies(crate: dict[str, Any]) -> dict[str, Any]:
    """Those of a crate, for any target, with those of its tests and its build."""
    tables = [crate, *crate.get("target", {}).values()]
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    return {name: found for table in tables for kind in kinds for name, found in table.get(kind, {}).items()}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in CRATES.glob("*/Cargo.toml")))
def test_a_crate_depends_on_no_folder_outside_of_crates(name: str) -> None:
    shared = manifest(ROOT / "Cargo.toml")["workspace"]["dependencies"]
    for dependency, found in dependencies(manifest(CRATES / name / "Cargo.toml")).items():
        inherited = isinstance(found, dict) and found.get("workspace", False)
        base, entry = (ROOT, shared[dependency]) if inherited else (CRATES / name, found)
        if isinstance(entry, dict) and "path" in entry:
            assert (base / entry["path"]).resolve().is_relative_to(CRATES), dependency


@pytest.mark.parametrize("name", ["pool", "python"])
def test_the_insecure_scheme_is_a_feature_that_nothing_turns_on(name: str) -> None:
    crate = manifest(CRATES / name / "Cargo.toml")
    features = crate["features"]
    assert "insecure" in features
    assert set(features) == {"insecure"}, (
        "a feature that turns another on, or a default one, is looked at here"
    )
    for dependency, found in crate["dependencies"].items():
        asked = found.get("features", []) if isinstance(found, dict) else []
        assert "insecure" not in asked, dependency


def test_a_wheel_has_no_insecure_scheme() -> None:
    maturin = manifest(ROOT / "pyproject.toml")["tool"]["maturin"]
    assert maturin["manifest-path"] == "crates/python/Cargo.toml"
    assert not {"features", "all-features", "cargo-extra-args"} & set(maturin)
    for crate in CRATES.glob("*/Cargo.toml"):
        found = manifest(crate).get("dependencies", {}).get("keywright-pool")
        assert found in (None, {"workspace": True}), crate
    shared = manifest(ROOT / "Cargo.toml")["workspace"]["dependencies"]["keywright-pool"]
    assert "features" not in shared
