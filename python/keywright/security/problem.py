"""The attacked problem: (ring) learning with errors, with its secret and its error."""

from dataclasses import dataclass
from math import inf, log, log2, sqrt

from keywright.errors import ParameterError

LOG_N = (5, 20)
LOG_Q = (5.0, 8192.0)
LEAST_SIGMA = 0.1


@dataclass(frozen=True)
class Secret:
    """Distribution of the coefficients of a secret.

    Attributes:
        name: as it is printed.
        deviation: standard deviation of one coefficient.
        weight: number of coefficients that are 1 or -1, if it is fixed; None for independent coefficients.
        nonzero: probability that a coefficient is not 0, if its absolute value is at most 1; None for wider
            secrets, which are not guessed coefficient by coefficient.
        values: number of values of a non-zero coefficient: 2 for 1 and -1.
    """

    name: str
    deviation: float
    weight: int | None = None
    nonzero: float | None = None
    values: int = 2

    @property
    def is_sparse(self) -> bool:
        """Whether the number of non-zero coefficients is fixed."""
        return self.weight is not None


def ternary() -> Secret:
    """Each coefficient is -1, 0 or 1 with probability 1/3: the default of Keywright."""
    return Secret("ternary", sqrt(2 / 3), nonzero=2 / 3)


def binary() -> Secret:
    """Each coefficient is 0 or 1 with probability 1/2. It has mean 1/2, which an attacker subtracts."""
    return Secret("binary", 0.5, nonzero=0.5, values=1)


def gaussian(deviation: float) -> Secret:
    """Return a secret with the distribution of an error of that standard deviation."""
    return Secret(f"gaussian:{deviation:g}", deviation)


def sparse(weight: int, n: int) -> Secret:
    """Return a secret with ``weight`` of ``n`` coefficients equal to 1 or -1, uniformly chosen.

    Raises:
        ParameterError: the weight is out of range.
    """
    _between("weight of the secret", weight, 1, n)
    return Secret(f"sparse:{weight}", sqrt(weight / n), weight=weight, nonzero=weight / n)


@dataclass(frozen=True)
class Problem:
    """Learning with errors in dimension ``n``: find ``s`` of ``b = A s + e`` modulo ``q``.

    Attributes:
        n: length of the secret; in a ring, its degree.
        log_q: log2 of the modulus; of a switching key, of ciphertext and special primes together.
        secret: distribution of the secret.
        sigma: standard deviation of the error.
        samples: number of equations. Switching keys give more than any attack uses, so it is infinity.
        ring: whether ``A`` is multiplication in ``Z[X]/(X^n + 1)``. Then ``X^i b`` is a sample of the secret
            ``X^i s`` with the same ``A``, so that one reduced lattice serves ``n`` guesses.
    """

    n: int
    log_q: float
    secret: Secret
    sigma: float = 3.19
    samples: float = inf
    ring: bool = True

    def __post_init__(self) -> None:
        _between("log2 of the dimension", log2(self.n) if self.n > 0 else 0, *LOG_N)
        _between("log2 of the modulus", self.log_q, *LOG_Q)
        _between(
            "standard deviation of the error", self.sigma, LEAST_SIGMA, 2 ** min(self.log_q, 1000.0) / 16
        )
        _between("number of samples", self.samples, 1, inf)
        if self.secret.weight is not None:
            _between("weight of the secret", self.secret.weight, 1, self.n)

    @property
    def ln_q(self) -> float:
        """Natural logarithm of the modulus."""
        return self.log_q * log(2)

    @property
    def ln_scale(self) -> float:
        """Logarithm of the factor that scales coefficients of the secret to the size of the errors."""
        return min(max(0.0, log(self.sigma / self.secret.deviation)), self.ln_q - 1)


def _between(what: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise ParameterError(
            f"the {what} is {value:g}, outside {minimum:g} .. {maximum:g}; give one in the range",
            what=what,
            value=value,
            minimum=minimum,
            maximum=maximum,
        )
