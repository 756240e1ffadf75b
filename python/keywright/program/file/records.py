"""Reads the fit report and the ranges of values from program files, and checks every entry."""

import math
from collections.abc import Mapping
from typing import Any

from keywright._reading.records import number, whole
from keywright.errors.engine import FormatError
from keywright.program.fit_report import (
    AnswerDifference,
    ExportDifferences,
    FitReport,
    FittedActivation,
    OutputDifference,
)
from keywright.program.instructions import ValueRange

MAX_ACTIVATIONS = 1 << 14
MAX_ANSWERS = 1 << 8
MAX_TEXT = 1 << 12
MAX_REMARKS = 16
MAX_SLOTS = 1 << 17


def read_range(
    result: object,
    name: object,
    low: object,
    high: object,
    model_low: object,
    model_high: object,
    slots: object = (),
) -> ValueRange:
    """Read a range of values.

    Raises:
        FormatError: an entry has another type, or an end is above the other.
    """
    ends = [number(value, "an end of a range") for value in (low, high, model_low, model_high)]
    if not (ends[0] < ends[1] and ends[2] < ends[3]):
        raise FormatError(
            f"a range goes from {ends[0]} to {ends[1]}, from {ends[2]} to {ends[3]}; "
            "its ends must be in order",
            code="program",
        )
    if not isinstance(slots, list | tuple) or len(slots) > MAX_SLOTS:
        raise FormatError(f"the slots of a range are not a list of at most {MAX_SLOTS}", code="program")
    used = tuple(whole(slot, "a slot of a range") for slot in slots)
    if any(not 0 <= slot < MAX_SLOTS for slot in used):
        raise FormatError(f"the slots of a range must be from 0 to {MAX_SLOTS - 1}", code="program")
    return ValueRange(
        whole(result, "a result"),
        _text(name, "the name of a range"),
        ends[0],
        ends[1],
        ends[2],
        ends[3],
        used,
    )


def read_input_range(value: object, what: str = "inputs") -> tuple[float, float] | None:
    """Read the range of inputs, or of other values, of a program; None if unbounded.

    Raises:
        FormatError: it is not a pair of numbers in order.
    """
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise FormatError(f"the range of {what} must be two numbers, got {value!r:.60}", code="program")
    low, high = (number(end, f"an end of the range of {what}") for end in value)
    if not low < high:
        raise FormatError(
            f"{what} from {low} to {high} are not a range; the ends must be in order", code="program"
        )
    return low, high


def read_input_scale(value: object) -> float:
    """Read the divisor of inputs, a power of two.

    Raises:
        FormatError: it is not a power of two.
    """
    scale = number(value, "input_scale")
    if not (0 < scale < math.inf and math.frexp(scale)[0] == 0.5):
        raise FormatError(f"inputs are divided by {scale}, which is not a power of two", code="program")
    return scale


def read_report(entry: Mapping[str, Any]) -> FitReport:
    """Read a fit report.

    Raises:
        FormatError: an entry is missing, has another type, or is out of range.
    """
    activations = entry["activations"]
    if not isinstance(activations, list) or len(activations) > MAX_ACTIVATIONS:
        raise FormatError(
            f"a fit report needs a list of at most {MAX_ACTIVATIONS} activations", code="program"
        )
    samples, held_out, escaped = (_count(entry, name) for name in ("samples", "held_out", "escaped"))
    if samples < 1 or held_out > samples or escaped > held_out:
        raise FormatError(
            f"{escaped} escaped of {held_out} held out of {samples} samples: these "
            "counts contradict each other",
            code="program",
        )
    remarks = entry.get("remarks", [])
    if not isinstance(remarks, list) or len(remarks) > MAX_REMARKS:
        raise FormatError(f"a fit report needs a list of at most {MAX_REMARKS} remarks", code="program")
    return FitReport(
        activations=tuple(_activation(**fitted) for fitted in activations),
        samples=samples,
        held_out=held_out,
        escaped=escaped,
        outputs=_difference(entry),
        bins=_count(entry, "bins") if "bins" in entry else 0,
        export=ExportDifferences(
            _difference(entry["rounding"]) if "rounding" in entry else None,
            _answers(entry.get("estimator", [])),
        ),
        remarks=tuple(_text(remark, "a remark") for remark in remarks),
    )


def _answers(entries: object) -> tuple[AnswerDifference, ...]:
    if not isinstance(entries, list) or len(entries) > MAX_ANSWERS:
        raise FormatError(f"a fit report needs a list of at most {MAX_ANSWERS} outputs", code="program")
    return tuple(
        AnswerDifference(
            _text(entry["name"], "an output's name"),
            _least(entry["largest_change"], "largest_change"),
            _least(entry["spread"], "spread"),
            _least(entry["bound"], "bound"),
        )
        for entry in entries
    )


def _difference(entry: Mapping[str, Any]) -> OutputDifference:
    agreement = entry["agreement"]
    return OutputDifference(
        _least(entry["largest_change"], "largest_change"),
        _least(entry["mean_change"], "mean_change"),
        _least(entry["largest_output"], "largest_output"),
        None if agreement is None else _least(agreement, "agreement"),
        _least(entry.get("spread", 0.0), "spread"),
        _least(entry.get("share", 0.0), "share"),
        _answers(entry.get("answers", [])),
    )


def _activation(
    label: object,
    method: object,
    degrees: object,
    low: object,
    high: object,
    max_error: object,
    rms_error: object,
) -> FittedActivation:
    if not isinstance(degrees, list) or len(degrees) > MAX_TEXT:
        raise FormatError("the degrees of an activation are not a short list", code="program")
    return FittedActivation(
        _text(label, "the label of an activation"),
        _text(method, "the method of an activation"),
        tuple(whole(degree, "a degree") for degree in degrees),
        number(low, "low"),
        number(high, "high"),
        _least(max_error, "max_error"),
        _least(rms_error, "rms_error"),
    )


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise FormatError(f"{what} must be text of at most {MAX_TEXT} characters", code="program")
    return value


def _count(entry: Mapping[str, Any], name: str) -> int:
    value = whole(entry[name], name)
    if value < 0:
        raise FormatError(f"{name} must be at least 0, got {value}", code="program")
    return value


def _least(value: object, what: str) -> float:
    result = number(value, what)
    if result < 0:
        raise FormatError(f"{what} must be at least 0, got {result}", code="program")
    return result
