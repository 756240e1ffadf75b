"""Types of the arrays of a program."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Vector = NDArray[np.float64]


def shown_shape(shape: Sequence[int]) -> str:
    """Format a shape; long ones are truncated."""
    sizes = [str(size) for size in shape[:8]] + (["..."] if len(shape) > 8 else [])
    return f"({', '.join(sizes)})"
