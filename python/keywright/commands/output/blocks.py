"""Pictures in characters: a grey image, and bytes that look like noise."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SHADES, ASCII_SHADES = " ░▒▓█", " .:oO@"


def shaded(image: NDArray[np.float64], shades: str) -> list[str]:
    """Return an image of values in [0, 1] as lines, two characters a pixel."""
    levels = np.clip((image * len(shades)).astype(int), 0, len(shades) - 1)
    return ["".join(2 * shades[level] for level in row) for row in levels.tolist()]


def beside(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """Return two columns of lines as one."""
    width, height = max(map(len, left)), max(len(left), len(right))
    padded = [[*column, *[""] * (height - len(column))] for column in (left, right)]
    return [f"{a:<{width + 4}}{b}".rstrip() for a, b in zip(*padded, strict=True)]
