"""What registries ask of the packages, and the parts of a release's build that need no build."""

import json
import re
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from release import archive, build, c_library, crates, materials
from release.checkout import ROOT

PACKAGES = crates.workspace()
PUBLISHED = crates.published(PACKAGES)
CATEGORIES = {"cryptography", "embedded", "encoding", "mathematics", "no-std"}
"""Of crates.io, which refuses others."""


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def test_libraries_are_published_and_adapters_are_not() -> None:
    names = {package["name"] for package in PUBLISHED}
    assert {"keywright-ring", "keywright-ckks", "keywright-client"} <= names
    assert not names & {"keywright-python", "keywright-capi", "keywright-ring-testing", "keywright-fuzz"}


@pytest.mark.parametrize("package", PUBLISHED, ids=lambda package: str(package["name"]))
def test_a_crate_has_what_registries_show(package: dict[str, Any]) -> None:
    folder = Path(package["manifest_path"]).parent
    assert 10 < len(package["description"]) < 200
    assert package["license"] == "Apache-2.0"
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert package["repository"].startswith("https://")
    assert package["rust_version"]
    assert 1 <= len(package["keywords"]) <= 5
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{0,19}", word) for word in package["keywords"])
    assert package["categories"]
    assert set(package["categories"]) <= CATEGORIES
    text = (folder / package["readme"]).read_text(encoding="utf-8")
    assert text.startswith(f"# {package['name']}\n")
    assert package["metadata"]["docs"]["rs"]["targets"] == ["x86_64-unknown-linux-gnu"]
    # Documentation of what is not for use is not on the first page of a search.
    assert package["metadata"]["docs"]["rs"].get("all-features", False) == (
        "insecure" not in package["features"]
    )


def test_a_crate_is_published_after_what_it_needs() -> None:
    order = [package["name"] for package in PUBLISHED]
    assert order.index("keywright-ring") == 0
    for package in PUBLISHED:
        for dependency in package["dependencies"]:
            if dependency.get("path") is None:
                continue
            if dependency["req"] == "*":
                assert dependency["kind"] == "dev", (
                    f"{package['name']} needs a version of {dependency['name']}"
                )
            else:
                assert order.index(dependency["name"]) < order.index(package["name"])


def test_circles_are_named() -> None:
    def package(name: str, needs: str) -> dict[str, Any]:
        return {"name": name, "publish": None, "dependencies": [{"name": needs, "req": "^1"}]}

    with pytest.raises(ValueError, match="a, b"):
        crates.published([package("a", "b"), package("b", "a")])


def test_there_is_one_version() -> None:
    version = toml("Cargo.toml")["workspace"]["package"]["version"]
    members = toml("Cargo.toml")["workspace"]["dependencies"]
    own = {name: member for name, member in members.items() if name.startswith("keywright-")}
    assert {member.get("version", version) for member in own.values()} == {version}
    assert {package["version"] for package in PACKAGES} == {version}
    assert "version" in toml("pyproject.toml")["project"]["dynamic"]
    assert json.loads((ROOT / "web/client/package.json").read_text())["version"] == version


def test_the_npm_package_says_where_it_comes_from() -> None:
    """The registry compares the repository with the one of the workflow that publishes."""
    content = json.loads((ROOT / "web/client/package.json").read_text())
    project = toml("pyproject.toml")["project"]
    assert content["repository"]["url"] == f"git+{project['urls']['Repository']}.git"
    assert content["repository"]["directory"] == "web/client"
    assert content["license"] == project["license"]
    assert content["keywords"]


def test_archives_depend_on_contents_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"
    source = tmp_path / "file"
    source.write_text("text")
    archive.write_archive(one, {"top/b": source, "top/a": source}, {"top/link": "b"}, 1000)
    copy = tmp_path / "copy"
    copy.write_text("text")
    copy.chmod(0o600)
    archive.write_archive(other, {"top/a": copy, "top/b": copy}, {"top/link": "b"}, 1000)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as packed:
        assert packed.getnames() == ["top/a", "top/b", "top/link"]
        assert packed.getmember("top/link").linkname == "b"
        assert {entry.mtime for entry in packed} == {1000}
    sums = archive.write_sums(tmp_path)
    assert build.differences(sums, sums) == []
    source.write_text("other text")
    changed = archive.write_sums(tmp_path)
    assert build.differences(sums, changed) == ["file"]
    copy.unlink()
    assert build.differences(changed, archive.write_sums(tmp_path)) == ["copy"]


@pytest.mark.parametrize(("version", "expected"), [("0.1.0", "0.1"), ("0.12.3", "0.12"), ("1.4.2", "1")])
def test_the_interface_of_the_c_library(version: str, expected: str) -> None:
    assert c_library.interface(version) == expected


def test_the_bill_of_materials_is_what_is_linked() -> None:
    def package(name: str, version: str) -> dict[str, Any]:
        return {"id": f"{name}#{version}", "name": name, "version": version, "license": "MIT/Apache-2.0"}

    def edge(name: str, kind: str | None) -> dict[str, Any]:
        return {"pkg": name, "dep_kinds": [{"kind": kind, "target": None}]}

    metadata = {
        "packages": [
            package("keywright-python", "0.1.0"), package("linked", "2.0.0"),
            package("tested", "3.0.0"), package("built", "4.0.0"),
        ],
        "resolve": {
            "nodes": [
                {
                    "id": "keywright-python#0.1.0",
                    "deps": [
                        edge("linked#2.0.0", None), edge("tested#3.0.0", "dev"), edge("built#4.0.0", "build"),
                    ],
                },
                *({"id": name, "deps": []} for name in ("linked#2.0.0", "tested#3.0.0", "built#4.0.0")),
            ]
        },
    }  # fmt: skip
    lock = {
        "package": [
            {"name": "keywright-python", "version": "0.1.0"},
            {"name": "linked", "version": "2.0.0", "checksum": "ab" * 32},
        ]
    }
    document = materials.document(metadata, lock, "0.1.0", 0)
    assert [component["name"] for component in document["components"]] == ["keywright-python", "linked"]
    assert document["components"][1]["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert document["components"][1]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert document["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    needs = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    assert needs["pkg:pypi/keywright@0.1.0"] == ["pkg:cargo/keywright-python@0.1.0"]
    assert needs["pkg:cargo/keywright-python@0.1.0"] == ["pkg:cargo/linked@2.0.0"]
    assert "/" not in "".join(
        component["bom-ref"].removeprefix("pkg:cargo/") for component in document["components"]
    )
