"""The fields of a manifest's JSON, each checked as it is read; a wrong one raises `FormatError`."""

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from keywright.errors.engine import FormatError
from keywright.program.client.first_steps import MAX_NAME, FirstSteps
from keywright.program.client.joint_range import JointRange
from keywright.program.client.last_steps import ClientPart
from keywright.program.interface import ClientSteps
from keywright.program.operands.binning import Binning
from keywright.program.operands.normalisation import Normalisation

MAX_VALUES = 1 << 24
"""Maximum number of values of a sample or result for which a client allocates memory."""


def read_client_part(entry: Mapping[str, Any], size: int) -> ClientPart | None:
    """Return the client's part of the model behind outputs of ``size`` values; None if there is none."""
    if "client_part" not in entry:
        return None
    try:
        return ClientPart.read(entry["client_part"], size)
    except FormatError as error:
        raise FormatError(
            f"the client's part of the manifest cannot be used: {error}", code="manifest"
        ) from error


def read_object(value: object, what: str) -> Mapping[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise FormatError(f"{what} is not a JSON object", code="manifest")
    return value


def read_list(entry: Mapping[str, Any], name: str, what: str) -> list[object]:
    """Return a list of an object, of at most `MAX_VALUES` entries."""
    value = entry.get(name)
    if not isinstance(value, list) or len(value) > MAX_VALUES:
        raise FormatError(f"{what} has no list {name!r} of at most {MAX_VALUES} entries", code="manifest")
    return value


def read_number(value: object, what: str, low: int, high: int) -> int:
    """Return an integer from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise FormatError(
            f"{what} must be an integer from {low} to {high}, got {value!r:.60}", code="manifest"
        )
    return value


def read_positive(entry: Mapping[str, Any], name: str) -> float:
    """Return a finite number above 0."""
    value = entry.get(name)
    if not isinstance(value, float) or not 0.0 < value < float("inf"):
        raise FormatError(f"{name} must be a finite number above 0, got {value!r:.60}", code="manifest")
    return value


def read_range(entry: Mapping[str, Any], name: str = "input_range") -> tuple[float, float] | None:
    """Return the range of the inputs, or of other values; None if they are unbounded."""
    ends = entry.get(name)
    if ends is None:
        return None
    if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, float) for end in ends):
        raise FormatError(f"{name} must be two numbers with a point, got {ends!r:.60}", code="manifest")
    low, high = ends
    if not -math.inf < low < high < math.inf:
        raise FormatError(f"{name} is from {low} to {high}", code="manifest")
    return low, high


def read_divisor(entry: Mapping[str, Any]) -> float:
    """Return the power of two that inputs are divided by."""
    value = read_positive(entry, "divisor")
    if math.frexp(value)[0] != 0.5:
        raise FormatError(f"divisor must be a power of two, got {value}", code="manifest")
    return value


def read_normalisation(entry: Mapping[str, Any], end: str) -> Normalisation | None:
    """Return the normalisation of the input or the output; None if there is none."""
    ends = entry.get("normalised", {})
    if not isinstance(ends, dict) or end not in ends:
        return None
    parts = [read_object(ends[end], "a normalisation").get(part) for part in ("offset", "scale")]
    for part in parts:
        if not isinstance(part, list) or not all(isinstance(each, float) for each in part):
            raise FormatError(
                f"the {end}'s normalisation must be lists of numbers with a point", code="manifest"
            )
    offset, scale = (np.asarray(part, np.float64) for part in parts)
    sound = len(offset) == len(scale) > 0 and np.isfinite([*offset, *scale]).all() and (scale > 0).all()
    if not sound:
        raise FormatError(
            f"the {end}'s normalisation has offsets or scales that no value has", code="manifest"
        )
    return Normalisation(offset, scale)


def read_binning(entry: Mapping[str, Any]) -> Binning | None:
    """Return the client's first step; None if there is none."""
    if "binning" not in entry:
        return None
    step = read_object(entry["binning"], "the first step")
    lists = [read_list(step, name, "the first step") for name in ("columns", "edges", "missing")]
    single, thresholds = step.get("single"), step.get("thresholds")
    if not (isinstance(single, bool) and isinstance(thresholds, bool)) or not all(
        isinstance(e, float) for e in lists[1]
    ):
        raise FormatError(
            "the first step has flags that are not true or false, or edges without a point", code="manifest"
        )
    features = read_number(step.get("features"), "features", 1, MAX_VALUES)
    columns, missing = (
        np.asarray([read_number(each, "a feature", 0, features - 1) for each in result], np.int64)
        for result in (lists[0], lists[2])
    )
    limits = read_object(step.get("limits", {"features": [], "low": [], "high": []}), "the limits")
    limited = [
        read_number(each, "a feature", 0, features - 1)
        for each in read_list(limits, "features", "the limits")
    ]
    ends = [read_list(limits, name, "the limits") for name in ("low", "high")]
    if not all(isinstance(each, float) for end in ends for each in end):
        raise FormatError("the limits of the first step are not numbers with a point", code="manifest")
    try:
        return Binning(
            features,
            columns,
            np.asarray(lists[1], np.float64),
            missing,
            single,
            thresholds,
            np.asarray(limited, np.int64),
            np.asarray(ends, np.float64).T,
        )
    except ValueError as error:
        raise FormatError(f"the first step: {error}", code="manifest") from error


def read_bits(entry: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers of the features that have to be 0 or 1; most models have none."""
    if "bits" not in entry:
        return ()
    numbers = read_list(entry, "bits", "the manifest")
    return tuple(read_number(each, "a feature", 0, MAX_VALUES) for each in numbers)


def read_first_steps(entry: Mapping[str, Any]) -> FirstSteps | None:
    """Return what the client computes before its step of binning; None if there is nothing."""
    if "first_steps" not in entry:
        return None
    try:
        return FirstSteps.read(entry["first_steps"])
    except FormatError as error:
        raise FormatError(
            f"the first steps of the manifest cannot be used: {error}", code="manifest"
        ) from error


def read_columns(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the columns of samples; many models have none."""
    names = read_list(entry, "columns", "the manifest") if "columns" in entry else []
    texts = tuple(name for name in names if isinstance(name, str) and 0 < len(name) <= MAX_NAME)
    if len(texts) != len(names):
        raise FormatError(f"names of columns are not texts of 1 to {MAX_NAME} characters", code="manifest")
    return texts


def read_steps(entry: Mapping[str, Any]) -> ClientSteps:
    """Return what the client computes and checks before it encrypts."""
    first, binning, bits = read_first_steps(entry), read_binning(entry), read_bits(entry)
    try:
        joint = JointRange.read(entry["joint_range"], "manifest") if "joint_range" in entry else None
        return ClientSteps(first, binning, bits, read_columns(entry), joint)
    except ValueError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the manifest's steps of the client: {error}", code="manifest") from error


def read_text(entry: Mapping[str, Any], name: str) -> str:
    """Return printable text."""
    value = entry.get(name)
    if not isinstance(value, str) or len(value) > 200 or not value.isprintable():
        raise FormatError(f"{name} must be text of at most 200 printable characters", code="manifest")
    return value


def read_scale(entry: Mapping[str, Any]) -> int:
    """Return the scale, in decimal digits."""
    text = read_text(entry, "scale")
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) > 0):
        raise FormatError(
            f"scale must be an integer above 0 in decimal digits, got {text!r:.60}", code="manifest"
        )
    return int(text)


def read_bytes(entry: Mapping[str, Any], name: str) -> bytes:
    """Return bytes that are stored in base64."""
    try:
        return base64.b64decode(entry.get(name, ""), validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise FormatError(f"{name} is not base64", code="manifest") from error
