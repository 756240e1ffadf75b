import json
from collections.abc import Callable
from typing import Any

import pytest
from harness.programs.schedule import Measurement
from harness.record import parse


@pytest.fixture
def line() -> Callable[..., str]:
    """Return a line of a program's output with some fields changed."""

    def line(**changes: Any) -> str:
        fields = {
            "library": "lattigo",
            "version": "v6.2.0",
            "work": "rotate",
            "log_n": 16,
            "level": 26,
            "alpha": 5,
            "threads": 1,
            "backend": "go",
            "median_s": 0.25,
            "min_s": 0.2,
            "max_s": 0.3,
            "runs": 5,
            "bytes": 1024,
            "checked": True,
            "peak_rss_bytes": 4096,
        }
        return json.dumps({**fields, **changes})

    return line


@pytest.fixture
def measured(line: Callable[..., str]) -> Callable[..., Measurement]:
    """Return a measurement of 2^16, alpha 5."""

    def measured(
        target: str, turn: int, median_s: float, work: str = "rotate", level: int = 26
    ) -> Measurement:
        return Measurement(target, turn, parse(line(work=work, level=level, median_s=median_s)))

    return measured
