"""All attacks on one problem."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from keywright.errors import ParameterError
from keywright.errors.choices import require_choice

from . import dual, primal
from .problem import LOG_Q, Problem
from .reduction import MODELS, CostModel
from .search import Cost

LEAST_LOG_Q = 10
"""A smaller modulus has no room for the errors of an encryption."""

Attack = Callable[[Problem, CostModel], Cost]

ATTACKS: dict[str, Attack] = {
    "usvp": primal.unique_shortest,
    "bdd": primal.bounded_distance,
    "hybrid": primal.hybrid,
    "hybrid-mitm": primal.hybrid_meet,
    "mitm": primal.meet_in_the_middle,
    "dual": dual.distinguishing,
    "dual-hybrid": dual.dual_hybrid,
    "dual-mitm": dual.dual_meet,
    "dual-fft": dual.dual_fft,
}
"""Attacks by the names that the command prints."""


@dataclass(frozen=True)
class Estimate:
    """The cost of each attack.

    Attributes:
        problem: the attacked problem.
        model: name of the cost model of lattice reduction, one of `keywright.security.MODELS`.
        costs: by the names of `keywright.security.ATTACKS`.
    """

    problem: Problem
    model: str
    costs: dict[str, Cost]

    @property
    def cheapest(self) -> str:
        """The cheapest attack."""
        return min(self.costs, key=lambda name: self.costs[name].bits)

    @property
    def bits(self) -> float:
        """log2 of its operations; infinity if no attack applies within 2^512."""
        return self.costs[self.cheapest].bits


def estimate(problem: Problem, model: str = "matzov") -> Estimate:
    """Estimate the cost of every attack; takes about a second in all.

    Args:
        problem: dimension, modulus, secret and error.
        model: cost model of lattice reduction: ``matzov``, that of ePrint 2024/463; ``bdgl16``; ``core-svp``,
            a lower bound.

    Raises:
        ParameterError: there is no such model.
    """
    chosen = _model(model)
    return Estimate(problem, model, {name: attack(problem, chosen) for name, attack in ATTACKS.items()})


def largest_modulus(problem: Problem, bits: float = 128.0, model: str = "matzov") -> int:
    """Return the largest whole ``log_q`` with which no attack takes less than ``bits``; the modulus of
    ``problem`` is ignored.

    Raises:
        ParameterError: there is none, or no such model.
    """
    chosen = _model(model)

    def secure(log_q: int) -> bool:
        tried = replace(problem, log_q=float(log_q))
        return all(attack(tried, chosen).bits >= bits for attack in ATTACKS.values())

    low, high = LEAST_LOG_Q, int(LOG_Q[1])
    if not secure(low):
        raise ParameterError(
            f"no modulus gives {bits:g} bits in dimension {problem.n}; take a larger dimension",
            what="bits of security",
            value=bits,
        )
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if secure(middle) else (low, middle - 1)
    return low


def _model(name: str) -> CostModel:
    require_choice("model", name, MODELS)
    return MODELS[name]
