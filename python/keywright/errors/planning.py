"""The exceptions of planning keys and of calibrating their costs."""

from .engine import KeywrightError


class WorkloadError(KeywrightError, ValueError):
    """A malformed workload or plan; the message states the place."""


class InfeasibleBudgetError(WorkloadError):
    """No plan fits the budget."""


class TooManyColumnsError(KeywrightError):
    """The integer program has too many columns."""


class CalibrationError(KeywrightError, ValueError):
    """A malformed calibration file, one from another machine, or a measured program with a wrong result
    (``wrong_result``).

    Attributes:
        found: a description of its machine; None if the file is malformed.
        expected: this machine.
    """

    found: str | None = None
    expected: str | None = None
