"""Piecewise linear functions: affine maps, ReLU, |x| and clipping, closed under composition."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from keywright.program.arrays import Vector

Function = Callable[[Vector], Vector]


@dataclass(frozen=True)
class PiecewiseLinear:
    """x -> slope x + offset + sum of bend \\|x - place\\| over the kinks.

    Attributes:
        slope, offset: of the line.
        kinks: places and bends, by ascending place; without them the function is affine.
    """

    slope: float = 1.0
    offset: float = 0.0
    kinks: tuple[tuple[float, float], ...] = ()

    def __call__(self, x: Vector) -> Vector:
        """Evaluate the function."""
        result = self.slope * np.asarray(x, np.float64) + self.offset
        for place, bend in self.kinks:
            result = result + bend * np.abs(x - place)
        return result

    def slope_at(self, x: float) -> float:
        """Return the slope at a place that is no kink."""
        return self.slope + sum(bend if x > place else -bend for place, bend in self.kinks)

    @staticmethod
    def through(places: tuple[float, ...], slopes: tuple[float, ...], value: float) -> "PiecewiseLinear":
        """Return the continuous function with these slopes, one more than places where they change, and this
        value at the first place."""
        bends = [(after - before) / 2 for before, after in pairwise(slopes)]
        kinks = tuple((place, bend) for place, bend in zip(places, bends, strict=True) if bend)
        slope = (slopes[0] + slopes[-1]) / 2
        first = PiecewiseLinear(slope, 0.0, kinks)
        return PiecewiseLinear(slope, value - float(first(np.asarray(places[0]))), kinks)


def composed(outer: Function, inner: Function) -> Function:
    """Return ``outer`` of ``inner``: piecewise linear if both are."""
    if isinstance(outer, PiecewiseLinear) and isinstance(inner, PiecewiseLinear):
        a, b = inner.slope, inner.offset
        if not inner.kinks and a:
            kinks = sorted(((place - b) / a, bend * abs(a)) for place, bend in outer.kinks)
            return PiecewiseLinear(outer.slope * a, outer.slope * b + outer.offset, tuple(kinks))
        if not outer.kinks:
            kinks = [(place, outer.slope * bend) for place, bend in inner.kinks]
            return PiecewiseLinear(outer.slope * a, outer.slope * b + outer.offset, tuple(kinks))
        if inner.kinks:
            return _composed_pieces(outer, inner)
    return lambda x: outer(inner(x))


def _composed_pieces(outer: PiecewiseLinear, inner: PiecewiseLinear) -> PiecewiseLinear:
    """Compose two piecewise linear functions. Kinks are those of ``inner`` and the places where it crosses
    one of ``outer``."""
    corners = [place for place, _ in inner.kinks]
    members = set(corners)
    for low, high in pairwise([-math.inf, *corners, math.inf]):
        inside = _inside(low, high)
        value, slope = float(inner(np.asarray(inside))), inner.slope_at(inside)
        crossings = (inside + (place - value) / slope for place, _ in outer.kinks if slope)
        members.update(place for place in crossings if low < place < high)
    places = tuple(sorted(members))
    insides = [_inside(low, high) for low, high in pairwise([-math.inf, *places, math.inf])]
    slopes = tuple(inner.slope_at(x) * outer.slope_at(float(inner(np.asarray(x)))) for x in insides)
    return PiecewiseLinear.through(places, slopes, float(outer(inner(np.asarray(places[0])))))


def _inside(low: float, high: float) -> float:
    """Return a place between two; one may be infinite."""
    if math.isinf(low):
        return high - 1.0
    return low + 1.0 if math.isinf(high) else (low + high) / 2


def summed(left: Function, right: Function) -> Function:
    """Return the sum of two functions of one value."""
    if isinstance(left, PiecewiseLinear) and isinstance(right, PiecewiseLinear):
        kinks = dict(left.kinks)
        for place, bend in right.kinks:
            kinks[place] = kinks.get(place, 0.0) + bend
        slope, offset = left.slope + right.slope, left.offset + right.offset
        return PiecewiseLinear(slope, offset, tuple(sorted((p, b) for p, b in kinks.items() if b)))
    return lambda x: left(x) + right(x)
