"""Reads the fit report and the ranges of values from program files, and checks every entry."""

from collections.abc import Mapping
from typing import Any

from keywright._reading.records import read_record
from keywright.errors.engine import FormatError
from keywright.program.fit_report import FitReport
from keywright.program.instructions import ValueRange

MAX_SLOTS = 1 << 17


def read_range(entry: list[Any]) -> ValueRange:
    """Read a range of values.

    Raises:
        ValueError: an entry has another type, or an end is above the other.
    """
    ends = "low", "high", "model_low", "model_high"
    result = read_record(ValueRange, entry, "a range", signed=ends)
    if not (result.low < result.high and result.model_low < result.model_high):
        raise FormatError(
            f"a range goes from {result.low} to {result.high}, from {result.model_low} to "
            f"{result.model_high}; its ends must be in order",
            code="program",
        )
    if any(not 0 <= slot < MAX_SLOTS for slot in result.slots):
        raise FormatError(f"the slots of a range must be from 0 to {MAX_SLOTS - 1}", code="program")
    return result


def read_report(entry: Mapping[str, Any]) -> FitReport:
    """Read the result of `FitReport.to_json`.

    Raises:
        ValueError: an entry has another type, or is out of range.
        KeyError: it is missing.
    """
    whole = {**entry, "outputs": entry, "export": entry}
    report = read_record(FitReport, whole, "a fit report", signed=("low", "high"))
    samples, held_out, escaped = report.samples, report.held_out, report.escaped
    if samples < 1 or held_out > samples or escaped > held_out:
        raise FormatError(
            f"{escaped} escaped of {held_out} held out of {samples} samples: these "
            "counts contradict each other",
            code="program",
        )
    return report
