"""The extensions of the wheels for musl, loaded by musl's own dynamic linker, emulated where it has to be.

They are loaded, and their constructors run; no function of them is called. Debian has musl but no Python for
it, and there are no wheels of onnx for musl. So a program stands in for Python: it has every symbol of Python
that the extension needs. All others have to be musl's, and are looked up when the extension is loaded.
"""

import platform
import zipfile
from pathlib import Path

from release.checkout import TOOLS
from release.installed.debian import ARCHITECTURES, unpack
from release.installed.trial import Skipped, environment, fresh, need, one, run

EXTENSION = "keywright/_core.abi3.so"

UNDEFINED = """\
import sys
from elftools.elf.elffile import ELFFile
symbols = ELFFile(open(sys.argv[1], "rb")).get_section_by_name(".dynsym").iter_symbols()
print(*sorted(symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name))
"""
"""Prints the symbols that an extension needs of others."""

PROGRAM = """\
#include <dlfcn.h>
#include <stdio.h>
{symbols}
int main(int count, char **arguments) {{
    void *extension = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (extension == NULL || dlsym(extension, "PyInit__core") == NULL) {{
        fprintf(stderr, "%s\\n", dlerror());
        return 1;
    }}
    puts("loaded");
    return 0;
}}
"""


def try_musl(files: Path, scratch: Path) -> None:
    """Load the extension of each wheel for musl."""
    if not (TOOLS / "auditwheel").exists():
        raise Skipped("there is no zig: `make dist` installs it")
    fresh(scratch)
    for machine in ARCHITECTURES:
        load(one(files, f"keywright-*-musllinux_*_{machine}.whl"), scratch / machine, machine)


def load(wheel: Path, scratch: Path, machine: str) -> None:
    """Load the extension of the wheel for a processor."""
    emulator = () if platform.machine() == machine else (f"qemu-{machine}",)
    need(*emulator)
    root = unpack(fresh(scratch), machine, "musl")
    with zipfile.ZipFile(wheel) as archive:
        extension = archive.extract(EXTENSION, scratch)
    clean = environment()
    needed = run(TOOLS / "python", "-c", UNDEFINED, extension, cwd=scratch, env=clean).split()
    of_python = [name for name in needed if name.startswith(("Py", "_Py"))]
    symbols = "\n".join(f"void {name}(void) {{}}" for name in of_python)
    (scratch / "load.c").write_text(PROGRAM.format(symbols=symbols), encoding="ascii")
    flags = ("-O2", "-target", f"{machine}-linux-musl", "-dynamic", "-rdynamic")
    run(TOOLS / "python", "-m", "ziglang", "cc", *flags, "load.c", "-o", "load", cwd=scratch, env=clean)
    (linker,) = root.rglob("libc.so")
    run(*emulator, linker, scratch / "load", extension, cwd=scratch, env=clean)
    others = len(needed) - len(of_python)
    print(f"{wheel.name}: loads, with {len(of_python)} symbols of Python and {others} others")
