"""Arguments that several commands share."""

import argparse
from pathlib import Path
from typing import Any

import keywright as kw

from .fit import add_fit_arguments

SHARED: dict[str, dict[str, Any]] = {
    "--force": {
        "action": "store_true",
        "help": "encrypt samples even if they leave a range that the program is calibrated for; their "
        "results can be wrong",
    },
    "--insecure": {
        "action": "store_true",
        "help": "accept parameters below 128 bits of security, for made-up data: anyone who chose them can "
        "read what is encrypted",
    },
    "--memory": {
        "metavar": "SIZE",
        "help": "memory budget of this process, e.g. 8GB: keys, diagonals, ciphertexts and everything else "
        "(default: as much as makes it fast, within 80 %% of the free memory)",
    },
    "--key-memory": {
        "metavar": "SIZE",
        "help": "budget of keys in memory, e.g. 2GB: other keys are read or derived from master keys before "
        "each use and evicted after it (default: all keys, or as many as --memory leaves room for)",
    },
}
"""Options of several commands, with the arguments that `argparse` takes for each."""


def add_shared(parser: argparse._ActionsContainer, *names: str) -> None:
    """Declare some of the options that commands share."""
    for name in names:
        parser.add_argument(name, **SHARED[name])


def add_model_arguments(
    parser: argparse.ArgumentParser, help_text: str = "ONNX model", *, required: bool = True
) -> None:
    """Declare the model arguments."""
    parser.add_argument("model", type=Path, nargs=None if required else "?", metavar="MODEL", help=help_text)
    add_fit_arguments(parser)


def add_batch_argument(parser: argparse._ActionsContainer, *, automatic: bool = False) -> None:
    """Declare --batch."""
    chosen = ", or auto (default): the number that minimises the predicted time of all samples"
    parser.add_argument(
        "--batch",
        metavar="N",
        type=_batch_or_auto if automatic else _batch,
        help="number of samples that share ciphertexts, a power of "
        f"two{chosen if automatic else ' (default: 1)'}",
    )


def _batch_or_auto(text: str) -> int | None:
    return None if text == "auto" else _batch(text)


def _batch(text: str) -> int:
    if not text.isascii() or not text.isdigit() or (number := int(text)) < 1 or number & (number - 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a power of two; write 1, 2, 4 or 128, for example")
    return number


def add_preset_argument(
    parser: argparse._ActionsContainer,
    help_text: str = "parameters, one of keywright presets (default: the smallest that is deep enough; "
    "if none is, one with bootstraps)",
) -> None:
    """Declare --preset."""
    parser.add_argument(
        "--preset",
        choices=[*kw.Parameters.presets(), *kw.BootstrapperPlan.presets()],
        metavar="PRESET",
        help=help_text,
    )
