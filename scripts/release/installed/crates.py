"""The packed crates, as dependencies of a workspace that is not this one."""

import os
import tarfile
from pathlib import Path

from release.installed.trial import Skipped, environment, fresh, need, run

MANIFEST = """\
[package]
name = "keywright-trial"
version = "0.0.0"
edition = "2024"

[dependencies]
{dependencies}

[patch.crates-io]
{patches}

[workspace]
"""

USED = ("keywright-ckks", "keywright-ring", "keywright-rlwe")
"""What the example `encrypt` of keywright-ckks names."""


def try_crates(files: Path, scratch: Path) -> None:
    """Run an example of the packed crates, which stand in for those that no registry has yet."""
    need("cargo")
    packed = sorted(files.glob("*.crate"))
    if not packed:
        raise Skipped("`make dist` did not build the crates")
    folders: dict[str, Path] = {}
    fresh(scratch)
    for path in packed:
        with tarfile.open(path) as archive:
            archive.extractall(scratch, filter="data")
        folders[path.name.rsplit("-", 1)[0]] = scratch / path.name.removesuffix(".crate")
    versions = {name: folder.name.rsplit("-", 1)[1] for name, folder in folders.items()}
    trial = fresh(scratch / "trial")
    dependencies = "\n".join(f'{name} = "={versions[name]}"' for name in USED)
    patches = "\n".join(f'{name} = {{ path = "{folder}" }}' for name, folder in folders.items())
    manifest = MANIFEST.format(dependencies=dependencies, patches=patches)
    (trial / "Cargo.toml").write_text(manifest, encoding="utf-8")
    (trial / "src").mkdir()
    example = folders["keywright-ckks"] / "examples" / "encrypt.rs"
    (trial / "src" / "main.rs").write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    clean = environment(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin")
    print(run("cargo", "run", "--quiet", "--release", cwd=trial, env=clean), end="")
