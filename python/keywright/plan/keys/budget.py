"""What a plan may take, and the refusal where none is within it."""

from dataclasses import dataclass

from keywright.plan.workload.workload import WorkloadError


@dataclass(frozen=True)
class Budget:
    """What a plan may take: exactly one of the two is given; the other one is minimised.

    Attributes:
        stored_bytes: most bytes of all keys.
        seconds: most predicted time.
    """

    stored_bytes: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Check that one is given.

        Raises:
            ValueError: none or both, or one that is no amount.
        """
        if (self.stored_bytes is None) == (self.seconds is None):
            raise ValueError("a budget is either bytes or seconds")
        if self.stored_bytes is not None and not self.stored_bytes >= 0:
            raise ValueError(f"a budget of {self.stored_bytes} bytes; it must be 0 or more")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"a budget of {self.seconds} seconds; it must be more than 0")


class InfeasibleBudgetError(WorkloadError):
    """No plan fits the budget."""
