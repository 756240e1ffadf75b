"""The C library, found by pkg-config: shared and static, for this machine and, emulated, for 64-bit ARM."""

import platform
import tarfile
from pathlib import Path

from release.checkout import ROOT
from release.installed.trial import environment, fresh, need, one, run


def parameters(path: Path) -> None:
    """Write parameters as a server hands them out: those of the known answers."""
    lines = (ROOT / "vectors" / "browser.txt").read_text(encoding="ascii").splitlines()
    path.write_bytes(bytes.fromhex(dict(line.split(" ", 1) for line in lines)["client"]))


def compile_and_run(
    archive: Path, scratch: Path, compiler: str, emulator: tuple[str, ...], pkg_config: str
) -> None:
    """Compile the example that the archive has in both ways and run it."""
    with tarfile.open(archive) as packed:
        packed.extractall(fresh(scratch), filter="data")
    top = scratch / archive.name.removesuffix(".tar.gz")
    parameters(scratch / "parameters")
    clean = environment(extra={"PKG_CONFIG_PATH": str(top / "lib" / "pkgconfig"), "PKG_CONFIG_LIBDIR": ""})

    def flags(*options: str) -> list[str]:
        return run("pkg-config", *options, "keywright-client", cwd=scratch, env=clean).split()

    example = top / "share" / "doc" / "keywright-client" / "client.c"
    for way, linked in (("shared", []), ("static", ["-static"])):
        program = scratch / way
        libraries = flags("--cflags", "--libs", *(["--static"] if linked else []))
        run(compiler, "-std=c11", *linked, example, *libraries, "-o", program, cwd=scratch, env=clean)
        with_library = clean | {pkg_config: str(top / "lib")}
        print(f"{way}:", run(*emulator, program, "parameters", cwd=scratch, env=with_library), end="")


def try_c_library(files: Path, scratch: Path) -> None:
    """Compile and run the example on this machine."""
    need("cc", "pkg-config")
    archive = one(files, f"keywright-client-*-{platform.machine()}-linux-gnu.tar.gz")
    compile_and_run(archive, scratch, "cc", (), "LD_LIBRARY_PATH")


def try_arm_c_library(files: Path, scratch: Path) -> None:
    """Compile the example for 64-bit ARM and run it in the emulator."""
    need("aarch64-linux-gnu-gcc", "pkg-config", "qemu-aarch64")
    archive = one(files, "keywright-client-*-aarch64-linux-gnu.tar.gz")
    top = archive.name.removesuffix(".tar.gz")
    emulator = (
        "qemu-aarch64",
        "-L",
        "/usr/aarch64-linux-gnu",
        "-E",
        f"LD_LIBRARY_PATH={scratch / top / 'lib'}",
    )
    compile_and_run(archive, scratch, "aarch64-linux-gnu-gcc", emulator, "QEMU_SEES_NOTHING_OF_THIS")
