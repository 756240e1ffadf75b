"""What errors of scores change behind the client's last steps: labels, values, and values that jump because a
step such as Floor or a comparison takes another value."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright.program.arrays import Vector

from .last_steps import ClientPart

MOST_ROWS, FEW_ROWS = 4096, 32
"""Samples that are looked at, of last steps that take many at once and of others."""

SLOW_ROWS = frozenset(["SVMClassifier"])
"""Operators that take samples together, and compute each by itself."""

CHUNK = 256
"""Samples that go through the last steps at a time."""

HALVINGS, JUMP = 20, 2.0**-8
"""How often the way to the place where a step takes another value is halved. There, a value jumps if it
changes by more than this share of its change on the whole way. Of a line, 2^-HALVINGS is left; of a
softmax that saturates within a thousandth of the way, still less than that share."""

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Moved:
    """What errors change behind the last steps, for each of some samples.

    Attributes:
        labels: which samples have an output that is no floating-point number and changes, (count,).
        changes: the largest change of each other output, by name, (count,).
        jumps: the part of it that is a jump, by name, (count,).
        half_ranges: half the range of each of these outputs, by name, without errors.
        steps: operators that take another value where something jumps.
    """

    labels: NDArray[np.bool_]
    changes: dict[str, Vector]
    jumps: dict[str, Vector]
    half_ranges: dict[str, float]
    steps: tuple[str, ...]


def rows_to_look_at(part: ClientPart, scores: Vector, errors: ArrayLike) -> NDArray[np.int64]:
    """Return the samples to look at: some evenly spread, and the first of those whose scores change their
    signs or their order within the errors.

    Args:
        scores, errors: as for `moved`.
    """
    count, sizes = len(scores), np.broadcast_to(np.asarray(errors, np.float64), scores.shape)
    most = MOST_ROWS if part.keeps_rows_apart and SLOW_ROWS.isdisjoint(part.operators) else FEW_ROWS
    spread = np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
    close = np.any(np.abs(scores) <= sizes, axis=1)
    close |= np.any(np.diff(np.sort(scores, axis=1), axis=1) <= 2 * sizes.max(axis=1, keepdims=True), axis=1)
    return np.union1d(spread, np.flatnonzero(close)[:most])


def moved(part: ClientPart, scores: Vector, errors: ArrayLike) -> Moved:
    """Return what changes if scores change by up to their errors: all in one direction, and any two of a
    sample in opposite ones.

    Args:
        scores: (count, scores).
        errors: their sizes; broadcast to the scores.
    """
    sizes = np.broadcast_to(np.asarray(errors, np.float64), scores.shape)
    own = _run(part, scores)
    floats = [name for name in part.names if own[name].dtype.kind == "f" and own[name].size]
    labels = np.zeros(len(scores), np.bool_)
    changes, jumps = ({name: np.zeros(len(scores)) for name in floats} for _ in range(2))
    steps: dict[str, None] = {}
    for signs in _directions(scores.shape[1]):
        other = _run(part, scores + signs * sizes)
        for name in part.names:
            if name not in changes:
                labels |= _differ(own[name], other[name])
            else:
                changes[name] = np.maximum(changes[name], _apart(own[name], other[name]))
        for name in part.equalities:  # which no change meets exactly
            met = _differ(own[name], other[name])
            labels |= met & (len(floats) < len(part.names))
            for each in floats:
                jumps[each][met] = np.maximum(jumps[each][met], np.ptp(own[each]))
                steps.update({"Equal": None} if met.any() else {})
        flipped = {name: _differ(own[name], other[name]) for name in part.deciding}
        rows = np.flatnonzero(np.any([*flipped.values(), np.zeros(len(scores), np.bool_)], axis=0))
        if not len(rows) or not floats:
            continue
        across = _jumps(part, scores[rows], (signs * sizes)[rows])
        for name in floats:
            jumps[name][rows] = np.maximum(jumps[name][rows], across[name])
        jumping = rows[np.any([across[name] > 0 for name in floats], axis=0)]
        steps.update({part.deciding[name]: None for name, each in flipped.items() if each[jumping].any()})
    halves = {name: float(np.nan_to_num(np.ptp(own[name], axis=0).max() / 2)) for name in floats}
    return Moved(labels, changes, jumps, halves, tuple(steps))


def within(
    part: ClientPart, scores: Vector, errors: ArrayLike, bounds: Mapping[str, float]
) -> NDArray[np.int64]:
    """Return the samples of which an output may jump, or change by more than its bound, if scores change by
    up to their errors.

    Args:
        scores, errors: as for `moved`; the samples that `rows_to_look_at` chooses are looked at.
        bounds: by the name of the output; those without one count only if they jump.
    """
    sizes = np.broadcast_to(np.asarray(errors, np.float64), scores.shape)
    rows = rows_to_look_at(part, scores, sizes)
    outcome = moved(part, scores[rows], sizes[rows])
    close = np.zeros(len(rows), np.bool_)
    for name, jumps in outcome.jumps.items():
        close |= (jumps > 0) | ~(outcome.changes[name] <= bounds.get(name, math.inf))
    return np.asarray(rows[close], np.int64)


def _jumps(part: ClientPart, scores: Vector, way: Vector) -> dict[str, Vector]:
    """Return by how much outputs jump at the first place on the way where a step takes another value."""
    start, near, far = _run(part, scores), np.zeros(len(scores)), np.ones(len(scores))
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        values = _run(part, scores + middle[:, None] * way)
        other = np.any([_differ(start[name], values[name]) for name in part.deciding], axis=0)
        near, far = np.where(other, near, middle), np.where(other, middle, far)
    before, behind = (_run(part, scores + each[:, None] * way) for each in (near, far))
    end, across = _run(part, scores + way), {}
    for name in part.names:
        if start[name].dtype.kind == "f":
            jump, whole = _apart(before[name], behind[name]), _apart(start[name], end[name])
            across[name] = np.where(jump > JUMP * whole, jump, 0.0)
    return across


def _run(part: ClientPart, scores: Vector) -> dict[str, NDArray[np.generic]]:
    """Return the outputs and the values of steps that decide, by name, each (count, values)."""
    shaped = scores.reshape(-1, *part.shape)
    parts = [part.run_all(shaped[start : start + CHUNK]) for start in range(0, len(shaped), CHUNK)]
    return {
        name: np.concatenate([each[name] for each in parts]).reshape(len(scores), -1) for name in parts[0]
    }


def _differ(own: NDArray[np.generic], other: NDArray[np.generic]) -> NDArray[np.bool_]:
    return np.asarray((own != other).any(axis=1), np.bool_)


def _apart(own: NDArray[np.generic], other: NDArray[np.generic]) -> Vector:
    with np.errstate(all="ignore"):
        changes = np.abs(np.asarray(other, np.float64) - np.asarray(own, np.float64))
    # Infinite on both sides is no change.
    known = np.nan_to_num(np.where(own == other, 0.0, changes), nan=LARGEST, posinf=LARGEST)
    return np.asarray(known.max(axis=1, initial=0.0), np.float64)


def _directions(count: int) -> Iterator[Vector]:
    """Yield signs of scores: all alike, and such that any two scores have opposite ones in some."""
    numbers = np.arange(count)
    for bit in range(-1, (count - 1).bit_length()):
        signs = np.ones(count) if bit < 0 else np.where(numbers >> bit & 1, 1.0, -1.0)
        yield signs
        yield -signs
