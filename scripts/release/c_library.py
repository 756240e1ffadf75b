"""The C library: header, shared library, static archive and pkg-config file, as a tar.gz for a platform."""

from pathlib import Path

from release.archive import write_archive
from release.checkout import Checkout

PLATFORMS = {
    "x86_64-unknown-linux-gnu": "x86_64-linux-gnu",
    "aarch64-unknown-linux-gnu": "aarch64-linux-gnu",
}
"""What rustc calls a platform, and what C compilers do."""

GLIBC = "2.28"
NAME = "keywright-client"
LIBRARY = "libkeywright_client"

PKG_CONFIG = """\
prefix=${{pcfiledir}}/../..
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: {name}
Description: Thin client of private inference with Keywright
URL: https://github.com/keywright/keywright
Version: {version}
Libs: -L${{libdir}} -lkeywright_client
Libs.private: -lpthread -ldl -lm
Cflags: -I${{includedir}}
"""


def interface(version: str) -> str:
    """The part of a version that changes with the binary interface: the minor version too, before 1.0."""
    major, minor, _ = version.split(".", 2)
    return major if major != "0" else f"{major}.{minor}"


def build_c_library(checkout: Checkout, out: Path, target: str) -> None:
    """Write the archive of a platform."""
    checkout.run(
        *("cargo-zigbuild", "zigbuild", "--locked", "--profile", "dist", "--package", "keywright-capi"),
        *("--lib", "--target", f"{target}.{GLIBC}"),
    )
    built, version = checkout.target / target / "dist", checkout.version
    crate, top = checkout.folder / "crates" / "capi", f"{NAME}-{version}-{PLATFORMS[target]}"
    configuration = checkout.target / f"{NAME}.pc"
    configuration.write_text(PKG_CONFIG.format(name=NAME, version=version), encoding="ascii")
    shared = f"{LIBRARY}.so.{version}"
    files = {
        "LICENSE": checkout.folder / "LICENSE",
        "include/keywright_client.h": crate / "include" / "keywright_client.h",
        f"lib/{LIBRARY}.a": built / "libkeywright_capi.a",
        f"lib/{shared}": built / "libkeywright_capi.so",
        f"lib/pkgconfig/{NAME}.pc": configuration,
        "share/doc/keywright-client/client.c": crate / "examples" / "client.c",
    }
    links = {f"lib/{LIBRARY}.so.{interface(version)}": shared, f"lib/{LIBRARY}.so": shared}
    write_archive(
        out / f"{top}.tar.gz",
        {f"{top}/{name}": path for name, path in files.items()},
        {f"{top}/{name}": to for name, to in links.items()},
        checkout.epoch,
    )
