"""Lattice reduction: the quality that it achieves, and its cost.

BKZ with blocks of ``beta`` vectors gives a basis whose Gram-Schmidt norms decrease geometrically (the
geometric series assumption of Schnorr, STACS 2003): in dimension ``d`` and volume ``V`` the ``i``-th, from 0,
is ``delta^(d - 1 - 2 i) V^(1/d)``. All costs are log2 of operations.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_BETA = 40
"""Smaller blocks cost less than 2^45 in every dimension here, and `ln_delta` is not accurate for them."""
MAX_BETA = 1754
"""Sieving in this dimension takes 2^512 in the cheapest model: larger ones are ignored."""

SHORT_BITS = 0.5 * np.log2(4 / 3)
"""A sieve in dimension ``k`` gives ``(4/3)^(k/2)`` vectors: ``k`` times this, in bits."""


def ln_delta(beta: Array | float) -> Array:
    """Return the natural logarithm of the root Hermite factor (Chen, PhD thesis, 2013) for ``beta >= 40``."""
    b = np.asarray(beta, float)
    log_delta: Array = (np.log(b / (2 * np.pi * np.e)) + np.log(np.pi * b) / b) / (2 * (b - 1))
    return log_delta


class CostModel(Protocol):
    """Costs of reduction, and of many short vectors."""

    @property
    def name(self) -> str:
        """Name in the literature."""

    def reduce(self, beta: Array, d: Array) -> Array:
        """Return the cost of BKZ with blocks of ``beta`` in dimension ``d``; with ``beta = d``, of one
        shortest vector."""

    def sieve_dimension(self, beta: Array, d: Array) -> Array:
        """Return the dimension of the sieve, on the first vectors of a reduced basis, that gives many short
        vectors."""

    def sieve(self, beta: Array, d: Array, k: Array) -> Array:
        """Return the cost of reduction and that sieve, in dimension ``k``, together."""


def shortest_vector(model: CostModel, k: Array) -> Array:
    """Return the cost of one shortest vector in dimension ``k``; below 40 by enumeration, with a fit of the
    nodes that Chen and Nguyen (ASIACRYPT 2011) counted, a hundred operations for each."""
    small = np.maximum(k, 2.0)
    nodes = 0.187281 * small * np.log2(small) - 1.019205 * small + 16.102531 + np.log2(100)
    large = np.maximum(k, MIN_BETA)
    return np.where(k < MIN_BETA, nodes, model.reduce(large, large))


@dataclass(frozen=True)
class Tours:
    """A number of calls of a sieve that costs ``2^(slope beta + offset)``.

    Attributes:
        name: as in the literature.
        slope: bits per dimension of a sieve.
        offset: constant bits of a sieve.
        calls: calls per dimension of the lattice; 0 for one call in all.
    """

    name: str
    slope: float
    offset: float
    calls: int

    def reduce(self, beta: Array, d: Array) -> Array:
        """`CostModel.reduce`."""
        calls = np.where(beta < d, np.log2(np.maximum(1, self.calls * d)), 0.0)
        return self.slope * beta + self.offset + calls

    def sieve_dimension(self, beta: Array, d: Array) -> Array:
        """`CostModel.sieve_dimension`: the last block has been sieved already."""
        return np.minimum(beta, d)

    def sieve(self, beta: Array, d: Array, k: Array) -> Array:
        """`CostModel.sieve`."""
        return self.reduce(beta, d)


@dataclass(frozen=True)
class Progressive:
    """Progressive BKZ with progressive sieving, and dimensions for free (Ducas, EUROCRYPT 2018).

    With ``C = 1 / (1 - 2^-slope)``, the overhead of a progressive computation: ``C (d - beta)`` calls of a
    sieve that takes ``C 2^(slope k + offset)`` gates in dimension ``k = beta - free(beta)`` (Kyber, round 3,
    section 5.2).

    Attributes:
        name: as in the literature.
        slope: gates of a sieve, bits per dimension.
        offset: gates of a sieve, constant bits.
    """

    name: str
    slope: float
    offset: float

    @property
    def overhead(self) -> float:
        """log2 of ``C``."""
        return float(-np.log2(-np.expm1(-self.slope * np.log(2))))

    @staticmethod
    def free(beta: Array) -> Array:
        """Return the dimensions that a sieve for a shortest vector saves."""
        result: Array = np.maximum(0.0, beta * np.log(4 / 3) / np.log(beta / (2 * np.pi * np.e)))
        return result

    def reduce(self, beta: Array, d: Array) -> Array:
        """`CostModel.reduce`, with the first reduction of ``d^3``."""
        calls = self.overhead + np.log2(np.maximum(d - beta, 1.0))
        gates = self.overhead + self.slope * (beta - self.free(beta)) + self.offset
        result: Array = np.logaddexp2(3 * np.log2(d), calls + gates)
        return result

    def sieve_dimension(self, beta: Array, d: Array) -> Array:
        """`CostModel.sieve_dimension`: as large as takes the same time as the reduction (Guo, Johansson,
        ASIACRYPT 2021)."""
        calls = self.overhead + np.log2(np.maximum(d - beta, 1.0))
        return np.minimum(d, np.floor(beta - np.floor(self.free(beta)) + calls / self.slope))

    def sieve(self, beta: Array, d: Array, k: Array) -> Array:
        """`CostModel.sieve`."""
        return np.logaddexp2(self.reduce(beta, d), self.overhead + self.slope * k + self.offset)


GUIDELINES = Progressive("MATZOV", 0.296135, 20.387886)
"""Gates of classical list decoding as counted by Albrecht, Gheorghiu, Postlethwaite and Schanck (ASIACRYPT
2020), with the improvement of MATZOV (Zenodo, 2022), fitted by a line. The tables of ePrint 2024/463 use this
model."""

BDGL16 = Tours("BDGL16", 0.292, 16.4, 8)
"""Becker, Ducas, Gama, Laarhoven (SODA 2016), 8 d calls, as in the first Homomorphic Encryption Standard."""

CORE_SVP = Tours("core-SVP", 0.292, 0.0, 0)
"""One call, its exponent alone (Alkim, Ducas, Pöppelmann, Schwabe, USENIX 2016): a lower bound by design."""

MODELS: dict[str, CostModel] = {"matzov": GUIDELINES, "bdgl16": BDGL16, "core-svp": CORE_SVP}
"""Models by the names that the command takes."""
