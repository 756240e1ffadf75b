"""Outcomes of drawn cases: an answer within what is stated, or a typed refusal."""

from collections import Counter
from dataclasses import dataclass, field

from keywright.errors import ModelRefusedError, OutOfRangeError, RefusalError
from keywright.model import Model

from .drawn.registry import Drawn
from .running import Encrypted, compiled_with_drawn, require_model

SAMPLES = 3
"""Samples of an encrypted run."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        refusals: codes of the reasons, or types of other errors; empty if it was answered.
        texts: the reasons.
        figures: shares of what is stated that errors reached, by name.
    """

    refusals: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def answered(self) -> bool:
        """Whether there was an answer."""
        return not self.refusals


def refused(error: Exception) -> Outcome:
    """Return the outcome of a typed refusal."""
    reasons = error.exceptions if isinstance(error, ModelRefusedError) else (error,)
    assert all(len(str(reason)) > 20 for reason in reasons), reasons
    # Alone, a refusal says that the model contradicts itself; all others come together.
    assert not isinstance(error, RefusalError) or error.code == "model", error
    return Outcome(tuple(map(_name, reasons)), tuple(map(str, reasons)))


def _name(reason: Exception) -> str:
    return reason.code if isinstance(reason, RefusalError) else type(reason).__name__


def compiled_or_refused(drawn: Drawn, seed: int) -> Model | Outcome:
    """Compile a drawn model for small parameters."""
    try:
        return compiled_with_drawn(drawn.model, drawn.samples, seed)
    except (ModelRefusedError, RefusalError) as error:
        return refused(error)


def check_graph(drawn: Drawn, seed: int) -> Outcome:
    """Compile a drawn model, run it on ciphertexts, and compare it with the libraries' outputs.

    Requested polynomials can drive samples of the calibration out of later ranges: these are refused.
    """
    compiled = compiled_or_refused(drawn, seed)
    if isinstance(compiled, Outcome):
        return compiled
    try:
        run = require_model(compiled, drawn.outputs, drawn.samples[:SAMPLES], drawn.rounding)
    except OutOfRangeError as error:
        return refused(error)
    return Outcome(figures=figures(run))


def figures(run: Encrypted) -> dict[str, float]:
    """Return the shares of what is stated that a run's errors reached."""
    return {"of the derived bound": float(run.errors.max()) / run.bound}


def most_answered(outcomes: list[Outcome], share: float) -> None:
    """Check that refusals are the exception: a test of refusals alone would be none."""
    answered = sum(outcome.answered for outcome in outcomes)
    why = Counter(kind for outcome in outcomes for kind in set(outcome.refusals))
    assert answered >= share * len(outcomes), why
