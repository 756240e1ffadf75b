"""How errors of scores change the model's own outputs, behind the client's last steps."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from keywright.program.arrays import Vector
from keywright.program.client.jumps import LARGEST, Moved, moved, rows_to_look_at
from keywright.program.client.last_steps import ClientPart
from keywright.program.fit_report import AnswerDifference, Jumps

from .ranges import Labels


def labels_behind(part: ClientPart | None, exact: Vector, *, several: bool = False) -> Labels | None:
    """Return what gives the labels of scores; None if there are none, or if each is the index of the largest
    score.

    Args:
        part: the client's last steps.
        exact: scores of the model, (count, scores).
        several: whether the scores are of several labels or values, so that the largest is no label.
    """

    def labels(scores: Vector) -> NDArray[np.int64]:
        assert part is not None
        answers = part.run(np.nan_to_num(scores).reshape(-1, *part.shape)).values()
        each = [np.asarray(array).reshape(len(scores), -1) for array in answers if array.dtype.kind != "f"]
        rows = [tuple(row) for row in zip(*(array.tolist() for array in each), strict=True)]
        return np.asarray([known.setdefault(str(row), len(known)) for row in rows], np.int64)

    known: dict[str, int] = {}
    if part is None or not len(exact):
        return None
    own, largest = labels(exact), exact.argmax(axis=1)
    if len(own) != len(largest):
        return None  # no answer is a label
    pairs = len(set(zip(own.tolist(), largest.tolist(), strict=True)))
    return None if not several and pairs == len(known) == len(set(largest.tolist())) else labels


def largest_change(part: ClientPart, scores: Vector, exact: Vector) -> float | None:
    """Return the largest change of an output that is no label, behind the client's last steps; None if all
    are labels.

    Args:
        scores, exact: of the program and of the model, (count, scores).
    """
    own, true = (part.run(np.nan_to_num(each).reshape(-1, *part.shape)) for each in (scores, exact))
    floats = [name for name, array in true.items() if array.dtype.kind == "f" and array.size]
    with np.errstate(over="ignore", invalid="ignore"):
        changes = [np.abs(np.asarray(own[name], np.float64) - true[name]).max() for name in floats]
    return float(np.nan_to_num(changes, nan=LARGEST, posinf=LARGEST).max()) if floats else None


def answer_ranges(part: ClientPart, exact: Vector) -> dict[str, float]:
    """Return the range of each of the model's outputs that is no label and varies, by name.

    Args:
        exact: scores of the model, (count, scores).
    """
    differences, _ = answer_differences(part, exact, exact, None, 0.0)
    return {each.name: 2 * each.spread for each in differences if each.spread > 0}


def shares_of(differences: Iterable[AnswerDifference], ranges: Mapping[str, float]) -> dict[str, float]:
    """Return the change of each output as a share of its range, by name. Outputs that may jump at steps do
    not count: the number of such samples is stated instead."""
    counted = [each for each in differences if each.name in ranges and not each.jumps.near]
    return {each.name: each.largest_change / ranges[each.name] for each in counted}


def answer_differences(
    part: ClientPart | None, scores: Vector, exact: Vector, error: float | None, share: float
) -> tuple[tuple[AnswerDifference, ...], float | None]:
    """Return how each of the model's outputs that is no label differs, and the share of samples whose labels,
    its other outputs, are equal; None without labels.

    Args:
        part: the client's last steps; without any, there are no answers.
        scores, exact: of the program and of the model, (count, scores).
        error: allowed difference; None for a share of half the output's range.
        share: that share.
    """
    if part is None or not len(exact):
        return (), None
    own, true = (part.run(values.reshape(-1, *part.shape)) for values in (scores, exact))
    sizes = np.abs(np.nan_to_num(scores - exact)).max(axis=0)
    around = moved(part, exact[rows_to_look_at(part, exact, sizes)], sizes)
    results, equal = [], None
    for name, array in true.items():
        expected = np.asarray(array).reshape(len(exact), -1)
        given = np.asarray(own[name]).reshape(len(exact), -1)
        if array.dtype.kind != "f":
            same = (given == expected).all(axis=1)
            equal = same if equal is None else equal & same
        elif array.size:
            changes = np.abs(np.asarray(given, np.float64) - expected)
            spread = float(np.nan_to_num(np.ptp(expected, axis=0).max() / 2))
            change = float(np.nan_to_num(changes, nan=LARGEST, posinf=LARGEST).max())
            bound = share * spread if error is None else error
            results.append(AnswerDifference(name, change, spread, bound, jumps_of(around, name)))
    return tuple(results), None if equal is None else float(equal.mean())


def changed_answers(
    part: ClientPart, exact: Vector, errors: Vector, share: float
) -> tuple[AnswerDifference, ...]:
    """Return how each of the model's outputs that is no label may change if scores have errors.

    Args:
        exact: scores of the model, (count, scores), without too many rows: see `rows_to_look_at`.
        errors: the largest of each score, (scores,).
        share: of half an output's range above which a change is warned of.
    """
    around = moved(part, exact, errors)
    results = []
    for name, changes in around.changes.items():
        spread = around.half_ranges[name]
        results.append(
            AnswerDifference(name, float(changes.max()), spread, share * spread, jumps_of(around, name))
        )
    return tuple(results)


def jumps_of(around: Moved, name: str) -> Jumps:
    """Return what errors may do to an output at steps."""
    jumps = around.jumps.get(name, np.zeros(0))
    near = int((jumps > 0).sum())
    return Jumps(near, len(jumps), float(jumps.max(initial=0.0)), around.steps) if near else Jumps()
