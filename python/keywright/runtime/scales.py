"""Scales of operands: sums of values at one level use spare levels to bring them to one scale."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from keywright._core import SCALE_TOLERANCE


class Scaled(Protocol):
    """Has a level and a scale."""

    @property
    def level(self) -> int:
        """See `keywright.Ciphertext.level`."""

    @property
    def scale(self) -> float:
        """See `keywright.Ciphertext.scale`."""


C = TypeVar("C", bound=Scaled)


@dataclass(frozen=True, eq=False)
class LevelDropped(Generic[C]):
    """A ciphertext dropped to a lower level, and the original: sums can use the levels between to match
    scales."""

    ciphertext: C
    source: C


def as_ciphertext(value: C | LevelDropped[C]) -> C:
    """Return the value at its level."""
    return value.ciphertext if isinstance(value, LevelDropped) else value


def level_dropped(value: C | LevelDropped[C], lowered: C) -> C | LevelDropped[C]:
    """Return the value after a drop to the level of ``lowered``."""
    source = value.source if isinstance(value, LevelDropped) else value
    return LevelDropped(lowered, source) if source.level > lowered.level else lowered


def at_one_scale(values: Sequence[C | LevelDropped[C]], set_scale: Callable[[C, int, float], C]) -> list[C]:
    """Bring values that were dropped to a lower level to the scale of those that were not.

    Args:
        set_scale: brings a ciphertext to a lower level and to a scale.
    """
    scale = next((v.scale for v in values if not isinstance(v, LevelDropped)), as_ciphertext(values[0]).scale)
    return [
        set_scale(v.source, v.ciphertext.level, scale)
        if isinstance(v, LevelDropped) and abs(v.ciphertext.scale / scale - 1.0) > SCALE_TOLERANCE
        else as_ciphertext(v)
        for v in values
    ]
