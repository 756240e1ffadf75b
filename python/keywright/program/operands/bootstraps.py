"""The compiler's description of a bootstrapping."""

from dataclasses import dataclass

from keywright._core import BootstrapperPlan
from keywright.errors import ParameterError

DEFAULT_BOOTSTRAP_PRESET = "N16_QP1732_L9_S45_real"
"""The default preset: costs are predicted for its parameters, and a model that is too deep for every preset
without bootstraps is bootstrapped with it."""

LARGEST = 1.0
"""What every bootstrap of a program states of its operand: the largest absolute value. The compiler brings
values of calibration data below it, clients refuse samples that leave it, and ciphertexts declare it."""


@dataclass(frozen=True)
class Bootstrap:
    """A bootstrapping with its levels and its cost.

    Attributes:
        slots: slots of its input; values with more slots repeat after that many.
        input_level: lowest level of its operand.
        output_level: level of its result.
        seconds: measured time; None uses the cost table.
        preset: its name in `keywright.BootstrapperPlan.presets()`, for running a stored program.
        input_log_n: log2 of the degree of the smaller ring of its operand; 0 for that of its result.
        pairs: whether it also takes two ciphertexts at once, in less than twice the time.

    Raises:
        ParameterError: no level is gained, slots are not a power of two, or the time is not positive.
    """

    slots: int
    input_level: int
    output_level: int
    seconds: float | None = None
    preset: str = ""
    input_log_n: int = 0
    pairs: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.input_level < self.output_level:
            raise ParameterError(
                f"a bootstrap from level {self.input_level} to {self.output_level} gains no level",
                code="bootstrap",
            )
        if self.slots < 1 or self.slots & (self.slots - 1):
            raise ParameterError(
                f"a bootstrap has {self.slots} slots; they must be a power of two", code="bootstrap"
            )
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise ParameterError(
                f"a bootstrap takes {self.seconds} seconds; they must be finite and above 0", code="bootstrap"
            )

    @staticmethod
    def of(plan: BootstrapperPlan, seconds: float | None = None, *, preset: str = "") -> "Bootstrap":
        """Return the description of a plan, with its measured time and its name if there are any."""
        levels, pairs = (plan.input_level, plan.output_level), plan.values == "pair"
        return Bootstrap(plan.slots, *levels, seconds, preset, pairs=pairs)
