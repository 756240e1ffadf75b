"""Wheels and the source distribution of the Python package."""

import subprocess
import sys
from pathlib import Path

from release.checkout import ROOT, Checkout

PLATFORMS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_28",
    "aarch64-unknown-linux-gnu": "manylinux_2_28",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-musl": "musllinux_1_2",
}
"""What rustc calls a platform, and the oldest C library that its wheel runs with."""

LIMIT = 4_000_000
"""Bytes that a wheel may have."""


def document_stub(checkout: Checkout) -> None:
    """Put the documentation of the built engine into the stub of a checkout, where editors look for it.

    Raises:
        SystemExit: the engine was not built.
    """
    stub = checkout.folder / "python" / "keywright" / "_core.pyi"
    program = ROOT / "scripts" / "stub_docstrings.py"
    subprocess.run([sys.executable, str(program), str(stub)], check=True)


def build_source(checkout: Checkout, out: Path) -> None:
    """Write the source distribution: what `pip` builds from where there is no wheel."""
    checkout.run("maturin", "sdist", "--out", str(out))


def build_wheel(checkout: Checkout, out: Path, target: str, materials: Path) -> None:
    """Write the wheel of a platform, with its bill of materials. Zig links, for the platform's C library.

    Raises:
        SystemExit: the build failed, or the wheel is too large.
    """
    checkout.run(
        *("maturin", "build", "--locked", "--zig", "--target", target),
        *("--compatibility", PLATFORMS[target], "--out", str(out)),
        *("--sbom-include", str(materials)),
    )
    (wheel,) = out.glob(f"keywright-{checkout.version}-*-{PLATFORMS[target]}_{target.partition('-')[0]}.whl")
    if wheel.stat().st_size > LIMIT:
        size = f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {LIMIT:,}"
        raise SystemExit(f"{size}: see what is new in it with `unzip -v`")
