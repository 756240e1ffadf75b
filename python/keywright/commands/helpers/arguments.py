"""Arguments that several commands take."""

import argparse
from pathlib import Path

import keywright as kw


def add_model_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare what is compiled."""
    parser.add_argument("--model", type=Path, required=required, help="ONNX model")
    parser.add_argument(
        "--calibration",
        type=Path,
        help="typical inputs, on which ranges are measured: .npy, an image or a folder of images",
    )


def add_preset_argument(parser: argparse.ArgumentParser) -> None:
    """Declare what it is compiled for."""
    parser.add_argument(
        "--preset",
        choices=[*kw.presets(), *kw.bootstrap_presets()],
        help="parameters; the smallest deep enough by default, with bootstraps if none is",
    )
