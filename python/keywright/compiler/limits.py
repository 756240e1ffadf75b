"""Limits on a model during compilation, checked before any allocation of that size."""

import math
from collections.abc import Sequence

from keywright.errors.refusals.sizes import too_large
from keywright.program.arrays import shown_shape

MAX_MODEL_BYTES = 2 << 30
"""Maximum bytes of a model's file with its weights: the limit of ONNX's own format."""

MAX_ELEMENTS = 1 << 22
"""Maximum elements of one tensor: 128 full ciphertexts of the largest shipped ring."""

MAX_CONSTANTS = 1 << 27
"""Maximum elements of all constants that are computed while a model is read."""

MAX_ENTRIES = 1 << 24
"""Maximum entries of an explicit matrix: 4,096 by 4,096 weights take 9 s and 1.1 GB."""

MAX_PLAINTEXT_BYTES = 4 << 30
"""Maximum bytes of the diagonals of a program, in double precision, by default."""

MAX_STEPS = 1 << 26
"""Maximum diagonals, used or not, between all ciphertexts of two values."""


def require_elements(what: str, shape: Sequence[int]) -> None:
    """Refuse a tensor that is too large. Raises `RefusalError`."""
    require_at_most(f"{what} of shape {shown_shape(shape)}", "elements", math.prod(shape), MAX_ELEMENTS)


def require_at_most(what: str, unit: str, size: int, most: int, advice: str | None = None) -> None:
    """Refuse a size above a limit, with the advice for such models. Raises `RefusalError`."""
    if size > most:
        raise too_large(what, unit, size, most, advice)
