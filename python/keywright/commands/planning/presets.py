"""List the named parameter sets.

For a set with bootstraps, the levels are those left after a bootstrap. Every key has at least 128 bits of
classical security, as `keywright security` estimates it.
"""

import argparse

import keywright as kw
from keywright.commands.terminal import Column, Terminal, Value
from keywright.model import BOOTSTRAP_PRESETS, DEEP_PRESETS

COLUMNS = [
    Column("preset", "preset"),
    Column("log_n", "log2 N", "number"),
    Column("levels", "levels", "number"),
    Column("slots", "slots", "number"),
    Column("log_scale", "log2 scale", "number"),
    Column("modulus_bits", "log2 QP", "number"),
    Column("values", "values"),
]

EXAMPLE = "keywright presets --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: this command has none of its own."""


def run(options: argparse.Namespace, terminal: Terminal) -> None:
    """Print the table."""
    plain: list[dict[str, Value]] = []
    for name in kw.Parameters.presets():
        parameters = kw.Parameters.preset(name)
        plain.append(_row(name, parameters) | {"levels": parameters.max_level, "values": "complex"})
    deep: list[dict[str, Value]] = []
    for name in kw.BootstrapperPlan.presets():
        plan = kw.BootstrapperPlan.preset(name)
        deep.append(
            _row(name, plan.parameters)
            | {"bootstraps": True, "levels": plan.levels_left, "slots": plan.slots, "values": plan.values}
        )
    terminal.table(COLUMNS, plain, title="Without bootstraps")
    terminal.text("")
    terminal.table(COLUMNS, deep, title="With bootstraps: the levels are those after one")
    terminal.text(
        "\nA name has log2 N, log2 of the modulus of the largest key (QP), the levels and log2\n"
        "of the scale (S). The column log2 QP counts all primes: more than the name does if no\n"
        "key has every prime.\n"
        "\nWithout --preset, a model gets the smallest set with enough levels. A model that\n"
        "needs bootstraps gets the faster of\n"
        f"  {', '.join(DEEP_PRESETS)}\n"
        "and a model for thin clients the first that fits of\n"
        f"  {', '.join(BOOTSTRAP_PRESETS)}"
    )


def _row(name: str, parameters: kw.Parameters) -> dict[str, Value]:
    return {
        "preset": name,
        "bootstraps": False,
        "log_n": parameters.log_n,
        "slots": parameters.max_slots,
        "log_scale": parameters.log_scale,
        "modulus_bits": round(parameters.log_qp),
    }
