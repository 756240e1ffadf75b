"""Arguments that several commands share."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keywright as kw

from .fit import add_fit_arguments

Options = Mapping[str, Mapping[str, Any]]
"""Options with the arguments that `argparse` takes for each; a default other than nothing is added to the
help."""


def add_options(parser: argparse._ActionsContainer, options: Options) -> None:
    """Declare options."""
    for name, settings in options.items():
        default = settings.get("default")
        number = isinstance(default, int | float) and not isinstance(default, bool)
        shown = f"{default:g}" if number else default
        text = settings["help"] + (f" (default: {shown})" if shown else "")
        parser.add_argument(name, **{**settings, "help": text})


def add_model_arguments(
    parser: argparse.ArgumentParser, help_text: str = "ONNX model", *, required: bool = True
) -> None:
    """Declare the model arguments."""
    parser.add_argument("model", type=Path, nargs=None if required else "?", metavar="MODEL", help=help_text)
    add_fit_arguments(parser)


def add_force_argument(parser: argparse.ArgumentParser) -> None:
    """Declare --force."""
    parser.add_argument(
        "--force",
        action="store_true",
        help="encrypt samples even if they leave a range that the program is calibrated for; their "
        "results are wrong",
    )


def add_insecure_argument(parser: argparse.ArgumentParser) -> None:
    """Declare --insecure."""
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="accept parameters below 128 bits of security, for made-up data: anyone who chose them can read "
        "what is encrypted",
    )


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
