"""What attacks on learning with errors cost: how many bits of security parameters have.

>>> from keywright import security
>>> found = security.estimate(security.Problem(2**13, 214, security.ternary()))
>>> found.cheapest, round(found.bits)
('bdd', 128)

Costs are those of the literature, in dimension and modulus alone; docs/reference/security-estimates.md says
which, what they are compared with, and what an estimate is not.
"""

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
    "sparse",
    "ternary",
]
