"""The register map of client_core in SystemVerilog, C and Markdown, from rtl/client_registers.toml."""

import tomllib
from typing import Any

from output import HARDWARE, finish

SOURCE = "rtl/client_registers.toml"
BY = f"Made by hardware/generate/registers.py from {SOURCE}."


def camel(name: str) -> str:
    """SHORT_FRAME to ShortFrame."""
    return "".join(word.capitalize() for word in name.split("_"))


def package(registers: list[dict[str, Any]]) -> str:
    """Offsets, counts and field positions as constants."""
    lines = [f"// {BY}", "package client_registers_pkg;"]
    for register in registers:
        name = camel(register["name"])
        lines.append(f"  localparam logic [6:0] {name} = 7'h{register['offset']:02x};")
        if "count" in register:
            lines.append(f"  localparam int unsigned {name}Words = {register['count']};")
        lines += [f"  localparam int unsigned {name}{camel(field['name'])} = {field['low']};"
                  for field in register.get("fields", [])]  # fmt: skip
    errors = next(register["fields"] for register in registers if register["name"] == "ERROR")
    lines.append(f"  localparam int unsigned ErrorBits = {len(errors)};")
    return "\n".join([*lines, "endpackage", ""])


def header(registers: list[dict[str, Any]]) -> str:
    """Offsets and masks for a driver."""
    lines = [f"/* {BY} */", "#ifndef KEYWRIGHT_CLIENT_CORE_H", "#define KEYWRIGHT_CLIENT_CORE_H", ""]
    for register in registers:
        prefix = f"KWCC_{register['name']}"
        argument, step = ("(i)", " + 4 * (i)") if "count" in register else ("", "")
        lines.append(
            f"#define {prefix}{argument} (0x{register['offset']:02X}u{step}) /* {register['text']} */"
        )
        for field in register.get("fields", []):
            mask = (1 << field["width"]) - 1 << field["low"]
            lines.append(f"#define {prefix}_{field['name']} 0x{mask:X}u /* {field['text']} */")
    return "\n".join([*lines, "", "#endif", ""])


def page(registers: list[dict[str, Any]]) -> str:
    """A table for people."""
    lines = [
        "# Registers of the client core",
        "",
        f"{BY} 32-bit words, AXI4-Lite; any other address, a read of a write-only register and a write to a",
        "read-only one answer SLVERR.",
        "",
        "| offset | register | access | bits | meaning |",
        "|---|---|---|---|---|",
    ]
    for register in registers:
        start, count = register["offset"], register.get("count", 1)
        where = f"0x{start:02X}" + (f"-0x{start + 4 * (count - 1):02X}" if count > 1 else "")
        lines.append(f"| {where} | {register['name']} | {register['access']} | | {register['text']} |")
        for field in register.get("fields", []):
            high = field["low"] + field["width"] - 1
            bits = f"{high}:{field['low']}" if field["width"] > 1 else str(high)
            lines.append(f"| | {field['name']} | | {bits} | {field['text']} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Writes or checks the three files."""
    registers = tomllib.loads((HARDWARE / SOURCE).read_text(encoding="utf-8"))["register"]
    finish("rtl/client_registers_pkg.sv", package(registers))
    finish("host/client_core.h", header(registers))
    finish("doc/client_registers.md", page(registers))


if __name__ == "__main__":
    main()
