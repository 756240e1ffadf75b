"""What clients compute before and after encryption, as JSON: in program files and in manifests.

Readers raise `ValueError`, which the readers of files and manifests turn into errors of their own.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._reading.records import number, text, whole
from keywright.program.arrays import Vector
from keywright.program.client.first_steps import MAX_NAME, FirstSteps
from keywright.program.client.joint_range import JointRange
from keywright.program.interface import ClientSteps, InputCodec, OutputCodec
from keywright.program.operands.binning import Binning
from keywright.program.operands.normalisation import Normalisation

MAX_VALUES = 1 << 24
"""Maximum number of values of a sample or result for which a client allocates memory."""


def codecs_to_json(entering: InputCodec, leaving: OutputCodec) -> dict[str, Any]:
    """Return an entry for each thing that clients compute of a model; most models have few."""
    steps, entry = entering.steps, dict[str, Any]()
    if steps.binning is not None:
        entry["binning"] = steps.binning.to_json()
    if steps.first is not None:
        entry["first_steps"] = steps.first.to_json()
    if steps.bits:
        entry["bits"] = steps.bits
    if steps.joint is not None:
        entry["joint_range"] = steps.joint.to_json()
    if leaving.image is not None:
        entry["output_image"] = leaving.image
    if steps.columns:
        entry["columns"] = steps.columns
    ends = {"input": entering.normalisation, "output": leaving.normalisation}
    if normalised := {end: each.to_json() for end, each in ends.items() if each is not None}:
        entry["normalised"] = normalised
    if leaving.client_part is not None:
        entry["client_part"] = leaving.client_part.to_json()
    return entry


def read_steps(entry: Mapping[str, Any]) -> ClientSteps:
    """Read what clients compute and check before they encrypt."""
    columns = read_list(entry.get("columns", []), "the names of columns")
    if "" in columns:
        raise ValueError("a column has no name")
    return ClientSteps(
        FirstSteps.read(entry["first_steps"]) if "first_steps" in entry else None,
        read_binning(entry["binning"]) if "binning" in entry else None,
        tuple(read_indices(entry.get("bits", []), "the features of 0 or 1", MAX_VALUES).tolist()),
        tuple(text(each, "the name of a column", MAX_NAME) for each in columns),
        JointRange.read(entry["joint_range"]) if "joint_range" in entry else None,
    )


def read_binning(entry: Mapping[str, Any]) -> Binning:
    """Read the step of trees that turns features into bits."""
    flags = entry["single"], entry["thresholds"]
    if not all(isinstance(flag, bool) for flag in flags):
        raise ValueError(f"the flags of the binning are {flags!r:.60}")
    features = whole(entry["features"], "the number of features", 1, MAX_VALUES)
    limits = entry.get("limits", {"features": [], "low": [], "high": []})
    columns, missing, limited = (
        read_indices(each, "the features of the binning", features - 1)
        for each in (entry["columns"], entry["missing"], limits["features"])
    )
    ends = np.stack([read_numbers(limits[end], "the limits of features") for end in ("low", "high")], axis=1)
    return Binning(
        features, columns, read_numbers(entry["edges"], "the edges"), missing, *flags, limited, ends
    )


def read_normalisation(entry: Mapping[str, Any], end: str, size: int) -> Normalisation | None:
    """Read the normalisation of the input or the output, of ``size`` elements; None if there is none."""
    if end not in (ends := entry.get("normalised", {})):
        return None
    offset, scale = (read_numbers(ends[end][part], f"the {end}'s {part}s") for part in ("offset", "scale"))
    if not (len(offset) == len(scale) and len(scale) in (1, size) and (scale > 0).all()):
        raise ValueError(
            f"the {end}'s normalisation has {len(offset)} offsets and {len(scale)} scales above 0 for {size} "
            "elements"
        )
    return Normalisation(offset, scale)


def read_interval(value: object, what: str = "inputs") -> tuple[float, float] | None:
    """Read the range of inputs, or of other values; None if unbounded."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"the range of {what} must be two numbers, got {value!r:.60}")
    low, high = (float(number(end, f"an end of the range of {what}")) for end in value)
    if not low < high:
        raise ValueError(f"{what} from {low} to {high} are not a range; the ends must be in order")
    return low, high


def read_divisor(value: object) -> float:
    """Read the power of two that inputs are divided by."""
    divisor = number(value, "the divisor of inputs")
    if not (divisor > 0 and math.frexp(divisor)[0] == 0.5):
        raise ValueError(f"inputs are divided by {divisor}, which is not a power of two")
    return float(divisor)


def read_list(value: object, what: str) -> list[Any]:
    """Return a list of at most `MAX_VALUES` entries."""
    if not isinstance(value, list) or len(value) > MAX_VALUES:
        raise ValueError(f"{what} are not a list of at most {MAX_VALUES} entries")
    return value


def read_numbers(value: object, what: str) -> Vector:
    """Read a list of finite numbers."""
    return np.asarray([number(each, what) for each in read_list(value, what)], np.float64)


def read_indices(value: object, what: str, most: int) -> NDArray[np.int64]:
    """Read a list of whole numbers from 0 to ``most``."""
    return np.asarray([whole(each, what, 0, most) for each in read_list(value, what)], np.int64)
