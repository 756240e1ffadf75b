"""The bill of materials: every Rust crate that is linked into what a release hands out, as CycloneDX.

It comes from `cargo metadata` and `Cargo.lock`. The lists that maturin and cargo-cyclonedx write name folders
of the machine, so two builds would differ.
"""

import json
import subprocess
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release.checkout import Checkout

SHIPPED = ("keywright-python", "keywright-capi", "keywright-client-wasm")
"""Crates that become a wheel, the C library and the npm package."""


def reached(metadata: dict[str, Any]) -> list[str]:
    """Identifiers of the packages that are linked into what is shipped, on any platform."""
    edges = {
        node["id"]: [
            edge["pkg"] for edge in node["deps"] if any(kind["kind"] is None for kind in edge["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    left = [package["id"] for package in metadata["packages"] if package["name"] in SHIPPED]
    seen: set[str] = set()
    while left:
        if (identifier := left.pop()) not in seen:
            seen.add(identifier)
            left += edges[identifier]
    return sorted(seen)


def document(metadata: dict[str, Any], lock: dict[str, Any], version: str, epoch: int) -> dict[str, Any]:
    """The bill of materials from what cargo says and what its lock file holds."""
    checksums = {(crate["name"], crate["version"]): crate.get("checksum") for crate in lock["package"]}
    packages = {package["id"]: package for package in metadata["packages"]}

    def reference(identifier: str) -> str:
        package = packages[identifier]
        return f"pkg:cargo/{package['name']}@{package['version']}"

    shipped = reached(metadata)
    components = []
    for identifier in shipped:
        package = packages[identifier]
        checksum = checksums[package["name"], package["version"]]
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": reference(identifier),
            "name": package["name"],
            "version": package["version"],
            "purl": reference(identifier),
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        }
        if checksum is not None:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    edges = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    own = f"pkg:pypi/keywright@{version}"
    roots = sorted(reference(crate) for crate in shipped if packages[crate]["name"] in SHIPPED)
    dependencies = [{"ref": own, "dependsOn": roots}]
    for identifier in shipped:
        needed = {edge["pkg"] for edge in edges[identifier]} & set(shipped)
        dependencies.append(
            {"ref": reference(identifier), "dependsOn": sorted(reference(crate) for crate in needed)}
        )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": "keywright",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": sorted(components, key=lambda component: str(component["bom-ref"])),
        "dependencies": sorted(dependencies, key=lambda dependency: str(dependency["ref"])),
    }


def write_bill_of_materials(checkout: Checkout, path: Path) -> None:
    """Write the bill of materials of a checkout."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    run = subprocess.run(command, cwd=checkout.folder, capture_output=True, text=True, check=True)
    lock = tomllib.loads((checkout.folder / "Cargo.lock").read_text(encoding="utf-8"))
    bill = document(json.loads(run.stdout), lock, checkout.version, checkout.epoch)
    path.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", encoding="utf-8")
