"""The register maps in SystemVerilog, C and Markdown, from rtl/*/*_registers.toml."""

import tomllib
from dataclasses import dataclass
from typing import Any

from output import HARDWARE, finish


@dataclass(frozen=True)
class Map:
    """What a register map is called: its room, its files, its C header and the prefix in that, its title."""

    room: str
    name: str
    header: str
    prefix: str
    title: str

    @property
    def by(self) -> str:
        """Where its files come from."""
        return f"Made by hardware/generate/registers.py from rtl/{self.room}/{self.name}.toml."


MAPS = [
    Map("client", "client_registers", "client_core", "KWCC", "the client core"),
    Map("key_switch", "key_switch_registers", "key_switch", "KWKS", "the key switch"),
]


def camel(name: str) -> str:
    """SHORT_FRAME to ShortFrame."""
    return "".join(word.capitalize() for word in name.split("_"))


def package(names: Map, registers: list[dict[str, Any]]) -> str:
    """Offsets, counts and field positions as constants."""
    lines = [f"// {names.by}", f"package {names.name}_pkg;"]
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


def header(names: Map, registers: list[dict[str, Any]]) -> str:
    """Offsets and masks for a driver."""
    guard = f"KEYWRIGHT_{names.header.upper()}_H"
    lines = [f"/* {names.by} */", f"#ifndef {guard}", f"#define {guard}", ""]
    for register in registers:
        prefix = f"{names.prefix}_{register['name']}"
        argument, step = ("(i)", " + 4 * (i)") if "count" in register else ("", "")
        lines.append(
            f"#define {prefix}{argument} (0x{register['offset']:02X}u{step}) /* {register['text']} */"
        )
        for field in register.get("fields", []):
            mask = (1 << field["width"]) - 1 << field["low"]
            lines.append(f"#define {prefix}_{field['name']} 0x{mask:X}u /* {field['text']} */")
    return "\n".join([*lines, "", "#endif", ""])


def page(names: Map, registers: list[dict[str, Any]]) -> str:
    """A table for people."""
    lines = [
        f"# Registers of {names.title}",
        "",
        f"{names.by} 32-bit words, AXI4-Lite; any other address, a read of a write-only",
        "register and a write to a read-only one answer SLVERR.",
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
    """Writes or checks the three files of every map."""
    for names in MAPS:
        source = HARDWARE / f"rtl/{names.room}/{names.name}.toml"
        registers = tomllib.loads(source.read_text(encoding="utf-8"))["register"]
        finish(f"rtl/{names.room}/{names.name}_pkg.sv", package(names, registers))
        finish(f"host/{names.header}.h", header(names, registers))
        finish(f"doc/{names.name}.md", page(names, registers))


if __name__ == "__main__":
    main()
