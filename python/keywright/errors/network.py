"""The exceptions of compiling, checking, storing and running networks."""

import math
from collections.abc import Sequence
from typing import Any, Self

from .engine import KeywrightError

NOTHING_SHOWN = (
    "a mask hides all elements of a row, such as all tokens of a sentence, and the softmax of nothing is not "
    "defined; leave at least one"
)

NO_SUM = 1e-6
"""A sum of exponentials that is smaller than this share of the least calibrated one has no term."""


class RefusalError(KeywrightError):
    """One reason why a model cannot be compiled; raised together with all others in `ModelRefusedError`.

    * ``model``: the model contradicts itself: shapes that do not fit, values that nothing computes,
      non-finite weights.
    * ``operator``, ``attribute``, ``dynamic_shape``, ``batch``: an operator, one of its options, or a
      dimension without an encrypted form.
    * ``export``: an estimator has no encrypted form, or the exporter of a library cannot write the model.
    * ``depth``, ``placement``: more levels than are available, or no bootstrap that can follow a layer.
    * ``size``, ``diagonals``: a part exceeds a limit of the compiler; nothing of that size was allocated.
    * ``activations``, ``ranges``: calibration data are missing, for the ranges of activations or of values
      that are bootstrapped.
    * ``domain``: calibration data leave the domain of a function, such as a logarithm.
    * ``method``, ``activation``: the requested method does not suit the function, or the model has no such
      function.
    * ``accuracy``, ``overflow``, ``labels``: polynomials do not follow the model as closely as required.
    * ``precision``: encryption would add an error that is large compared with the outputs.
    * ``client``: a part for clients that breaks the rules for their parts.
    * ``mask``: a constant that hides elements only in part, or large negative numbers of an input.

    What to do: change the model as the message says, give calibration data (calibration=), or require less
    (accuracy=, error=, noise=).

    Attributes:
        details: numbers and names of this case, each of which is also an attribute.
        needed, available: levels that the network consumes, and that there are (``depth``, ``ranges``).
        size, allowed: of the part, and the limit (``size``).
    """

    code = "model"
    needed: int
    available: int
    size: int
    allowed: float

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message, code=code, **details)
        self.details = details


class ModelRefusedError(ExceptionGroup[RefusalError], KeywrightError):
    """The model cannot be compiled (``refused``). Its ``exceptions`` are all the reasons.

    What to do: as for each `RefusalError` among them; `codes` are their codes.
    """

    code = "refused"

    def __new__(cls, reasons: Sequence[RefusalError]) -> Self:
        lines = "".join(f"\n  - {reason}" for reason in reasons)
        return super().__new__(cls, f"the model cannot be compiled:{lines}\n", reasons)

    def __init__(self, reasons: Sequence[RefusalError]) -> None:
        """See `ModelRefusedError.exceptions` for the reasons."""

    @property
    def reasons(self) -> list[RefusalError]:
        """All reasons, in order."""
        return [reason for reason in self.exceptions if isinstance(reason, RefusalError)]

    @property
    def codes(self) -> set[str]:
        """Codes of all reasons."""
        return {reason.code for reason in self.reasons}


class OutOfRangeError(KeywrightError):
    """A sample drives a value out of the range that the program is calibrated for: its result would be wrong
    (``out_of_range``).

    What to do: check the sample's scale, or compile with calibration data that cover it.

    Attributes:
        layer: the layer that takes the value.
        value: the value furthest outside.
        low, high: the range.
    """

    code = "out_of_range"

    def __init__(
        self,
        layer: str,
        value: float,
        low: float,
        high: float,
        *,
        approximated: bool = False,
        total: bool = False,
    ) -> None:
        """State the value and its range.

        Args:
            layer, value, low, high: see the attributes.
            approximated: whether polynomials stand for activations before the layer.
            total: whether the value is a sum of what a mask shows.
        """
        finer = ", or with finer polynomials before this layer (activations=, error=)" if approximated else ""
        way = (
            "check the sample's scale, or compile with calibration data that cover it (calibration=)" + finer
        )
        if total and abs(value) < low * NO_SUM:
            way = NOTHING_SHOWN
        far = max(abs(low), abs(high)) / (high - low) if high > low else 1.0
        digits = 6 + round(
            math.log10(min(max(far, 1.0), 1e11))
        )  # six of a narrow range that is far from 0, too
        super().__init__(
            f"{layer} takes values from {low:.{digits}g} to {high:.{digits}g}, but this sample gives "
            f"{value:.{digits}g}, so the encrypted result would be wrong; {way}"
        )
        self.layer, self.value, self.low, self.high = layer, value, low, high


class PackageMissingError(KeywrightError, ImportError):
    """A package of one of Keywright's extras is not installed (``package``).

    What to do: install it with pip install 'keywright[EXTRA]'; the message names the extra.

    Attributes:
        package: its name.
        extra: the extra that installs it.
    """

    code = "package"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[{extra}]'")
        self.package, self.extra = package, extra
