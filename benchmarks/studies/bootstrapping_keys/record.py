"""The record: a line for each case, written as it is measured, so that a run can be interrupted and
resumed."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.record import BadRecord

from studies.bootstrapping_keys.cases import Case


@dataclass(frozen=True)
class Result:
    """The program's output for a case."""

    case: Case
    raw: dict[str, Any]

    @property
    def seconds(self) -> float:
        """Median time on a processor of a bootstrap."""
        times: list[float] = self.raw["processor_seconds"]
        return statistics.median(times)

    @property
    def wall(self) -> float:
        """The same by the clock on the wall."""
        times: list[float] = self.raw["seconds"]
        return statistics.median(times)

    @property
    def rounds(self) -> int:
        """How often the program was run; cases of all rounds take turns."""
        rounds: int = self.raw.get("rounds", 1)
        return rounds

    @property
    def alpha(self) -> int | str:
        """Primes per digit: a number where it is static."""
        alpha: int | str = self.raw["alpha"]
        return alpha

    def stage(self, name: str) -> float:
        """Mean time of a stage on a processor; 0 if not measured, or too short for the system's clock."""
        stages: dict[str, float] = self.raw.get("stage_processor_seconds", {})
        return stages.get(name, 0.0)


FIELDS = ("alpha", "special", "rotation_keys", "formula_bytes", "key_bytes", "step_bytes")
TIMED_FIELDS = ("processor_seconds", "seconds", "worst_bits", "checked")


def result(case: Case, raw: Any) -> Result:
    """A result with every field that the tables need.

    Raises:
        BadRecord: a field is missing, or the result was wrong.
    """
    if not isinstance(raw, dict):
        raise BadRecord(f"not a JSON object: {str(raw)[:80]!r}")
    for name in FIELDS + (TIMED_FIELDS if case.timed else ()):
        if name not in raw:
            raise BadRecord(f"no field {name!r} for {case}")
    if case.timed and raw["checked"] is not True:
        raise BadRecord(f"the result of {case} is not within its bound")
    if case.timed and not all(seconds > 0 for seconds in raw["processor_seconds"]):
        raise BadRecord(f"times of {case} are not positive: {raw['processor_seconds']}")
    return Result(case, raw)


def together(first: Result, second: Result) -> Result:
    """The runs of two rounds of a case, in turn: the same places of two cases are of the same round."""
    raw = {**second.raw, "rounds": first.rounds + second.rounds}
    for name in ("processor_seconds", "seconds"):
        raw[name] = [*first.raw[name], *second.raw[name]]
    share = first.rounds / raw["rounds"]
    raw["stage_processor_seconds"] = {
        name: share * first.stage(name) + (1 - share) * second.stage(name)
        for name in second.raw.get("stage_processor_seconds", {})
    }
    return Result(first.case, raw)


def read(path: Path) -> dict[Case, Result]:
    """What a record holds, lines of the same timed case together; nothing if there is none.

    Raises:
        BadRecord: a line that is no result.
    """
    if not path.exists():
        return {}
    results: dict[Case, Result] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            fields = json.loads(line)
            case = Case(**fields.pop("case"))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadRecord(f"{path}:{number}: {error}") from error
        measurement = result(case, fields)
        results[case] = (
            together(results[case], measurement) if case in results and case.timed else measurement
        )
    return results


def line(result: Result) -> str:
    """The line of a record."""
    return json.dumps({"case": asdict(result.case), **result.raw})
