"""The rotation lists of the three published networks in `lists/`, and the programs that they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from keywright.plan import Workload
from published import convfhe, fhe_mp_cnn, lowmemory

FOLDER = Path(__file__).parent / "lists"


@cache
def read(name: str) -> Mapping[str, Any]:
    """A list, parsed: "convfhe_resnet", "fhe_mp_cnn_resnet20" or "lowmemory_fhe_resnet20"."""
    data: Mapping[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return data


@cache
def workloads() -> Mapping[str, Workload]:
    """Every program of the lists, by setting or experiment, FHE-MP-CNN by its name. Settings that differ in
    no key switch are one program: the first."""
    theirs, low = read("convfhe_resnet"), read("lowmemory_fhe_resnet20")
    out = {"FHE-MP-CNN": fhe_mp_cnn.convert(read("fhe_mp_cnn_resnet20"))}
    for setting in theirs["settings"]:
        workload = convfhe.convert(theirs, setting)
        if not any(workload.groups == other.groups for other in out.values()):
            out[setting] = workload
    for experiment in low["experiments"]:
        out[experiment] = lowmemory.convert(low, experiment)
    return out
