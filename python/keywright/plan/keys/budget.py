"""The budget of a plan, and the refusal if no plan fits it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """The budget of a plan. Exactly one of the two is given; the other quantity is minimised.

    Attributes:
        stored_bytes: maximum bytes of all keys.
        seconds: maximum predicted time.
    """

    stored_bytes: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Check that exactly one is given.

        Raises:
            ValueError: none or both are given, or a value is out of range.
        """
        if (self.stored_bytes is None) == (self.seconds is None):
            raise ValueError(
                f"stored_bytes={self.stored_bytes}, seconds={self.seconds}; give either bytes or seconds"
            )
        if self.stored_bytes is not None and not self.stored_bytes >= 0:
            raise ValueError(f"a budget of {self.stored_bytes} bytes is not possible; it must be 0 or more")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"a budget of {self.seconds} seconds is not possible; it must be more than 0")
