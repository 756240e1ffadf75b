"""What the compiler knows of a bootstrapping."""

from dataclasses import dataclass

from keywright._core import BootstrapperPlan
from keywright.nn.errors import InvalidBootstrapError

DEFAULT_BOOTSTRAP_PRESET = "N16_QP1732_L9_S45_real"
"""Where none is named: costs are predicted for its parameters, and a model that is too deep for every preset
without bootstraps is bootstrapped with it."""


@dataclass(frozen=True)
class Bootstrap:
    """A way to give a ciphertext new levels, and what it costs.

    Attributes:
        slots: slots of the ciphertexts that it takes; values with more repeat after so many.
        input_level: lowest level of its operand.
        output_level: level of its result.
        seconds: measured time; None takes the cost table's.
        preset: which of `keywright.bootstrap_presets()` it is, for who runs a program that was stored.
        input_log_n: log2 of the degree of the smaller ring that its operand is in; 0 for that of its result.

    Raises:
        InvalidBootstrapError: no level is gained, slots are no power of two, or the time is not positive.
    """

    slots: int
    input_level: int
    output_level: int
    seconds: float | None = None
    preset: str = ""
    input_log_n: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.input_level < self.output_level:
            raise InvalidBootstrapError(
                f"a bootstrap from level {self.input_level} to {self.output_level} gains no level"
            )
        if self.slots < 1 or self.slots & (self.slots - 1):
            raise InvalidBootstrapError(f"a bootstrap of {self.slots} slots; they must be a power of two")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise InvalidBootstrapError(
                f"a bootstrap of {self.seconds} seconds; they must be finite and above 0"
            )

    @staticmethod
    def of(plan: BootstrapperPlan, seconds: float | None = None, *, preset: str = "") -> "Bootstrap":
        """What a plan offers, with its measured time and its name if there are any."""
        return Bootstrap(plan.slots, plan.input_level, plan.output_level, seconds, preset)
