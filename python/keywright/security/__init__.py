"""Costs of attacks on learning with errors: the bits of security of parameters.

>>> from keywright import security
>>> estimate = security.estimate(security.Problem(2**13, 214, security.ternary()))
>>> estimate.cheapest, round(estimate.bits)
('bdd', 128)

Cost models are from the literature and depend on dimension and modulus only.
docs/reference/security-estimates.md lists them, compares the estimates, and states their limits.
"""

from keywright._core import maximum_log_qp

from .estimates import ATTACKS, Estimate, estimate, largest_modulus
from .problem import LOG_N, Problem, Secret, binary, gaussian, sparse, ternary
from .reduction import MODELS
from .search import Cost

__all__ = [
    "ATTACKS",
    "LOG_N",
    "MODELS",
    "Cost",
    "Estimate",
    "Problem",
    "Secret",
    "binary",
    "estimate",
    "gaussian",
    "largest_modulus",
    "maximum_log_qp",
    "sparse",
    "ternary",
]
