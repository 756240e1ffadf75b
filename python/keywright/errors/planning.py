"""The exceptions of planning keys."""

from .engine import KeywrightError


class WorkloadError(KeywrightError, ValueError):
    """A workload or plan that is malformed, or too large to be planned exactly.

    * ``workload``: the message states the place.
    * ``columns``: the integer program has too many columns.

    What to do: correct the workload, or plan it again from the program; plan large ones without exact
    solutions.
    """

    code = "workload"


class InfeasibleBudgetError(WorkloadError):
    """No plan fits the budget (``plan_budget``).

    What to do: allow as much as the message states.
    """

    code = "plan_budget"
