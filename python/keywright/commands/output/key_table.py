"""Compares the keys of a program with common key sets that could serve it."""

import keywright as kw
from keywright.commands.terminal import Column
from keywright.model import Model


def key_columns() -> list[Column]:
    """Columns of a table of key sets."""
    return [
        Column("set", "evaluation keys"),
        Column("keys", "keys", "number"),
        Column("bytes", "bytes", "bytes"),
        Column("unseeded_bytes", "without seeds", "bytes"),
    ]


def key_table(compiled: Model) -> list[dict[str, str | int]]:
    """Compare the program's keys with two common sets at the highest level, each with the relinearization
    key.

    Power-of-two: rotations by every power of two below the number of slots; other rotations are composed of
    these. All required: every rotation of the program, as in libraries whose keys have no level.
    """
    program, parameters = compiled.program, compiled.parameters
    steps = [key.step for key in program.required_keys if key.kind == "rotation"]
    powers = [1 << k for k in range(program.slots.bit_length() - 1)]
    top = kw.KeySpec.relinearization(parameters)

    def row(name: str, specs: list[kw.KeySpec]) -> dict[str, str | int]:
        return {
            "set": name,
            "keys": len(specs),
            "bytes": sum(spec.bytes for spec in specs),
            "unseeded_bytes": sum(spec.unseeded_bytes for spec in specs),
        }

    return [
        row("this program, as planned", compiled.specs),
        row("all required, at the top level", [top] * (len(steps) + 1)),
        row("powers of two, at the top level", [top] * (len(powers) + 1)),
    ]
