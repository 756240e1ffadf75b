"""Parameters from what a circuit needs."""

import math
from functools import cache

import numpy as np

from keywright._core import Encryptor, KeyGenerator, KeySpec, Parameters, SecretKey
from keywright.errors import ParameterError, SecurityError

RINGS = range(12, 18)
"""Base-2 logarithms of the ring degrees that are tried."""

WIDEST = 60
"""Bits of the largest primes, as special primes have them."""

NARROWEST = 24
"""Bits of a scale below which there are too few primes."""

PROBE = 40
"""Bits of the scale at which the error of an encryption is looked up."""


def parameters_for_circuit(
    *, depth: int, precision: int = 20, slots: int = 1, magnitude: float = 16.0
) -> Parameters:
    """Parameters of the smallest ring that has so many levels, slots and bits at 128 bits of security.

    Args:
        depth: levels of the products, matrices and polynomials that follow each other.
        precision: bits behind the point that an encryption has, in all slots at once except with probability
            below 2^-40; every operation adds up its operands' errors, and its own, which is smaller.
        slots: values in a ciphertext.
        magnitude: largest absolute value of a result.

    Raises:
        ParameterError: a number is out of its bounds, or no ring has so many levels of so many bits.
    """
    for what, value, low in (("depth", depth, 0), ("precision", precision, 1), ("slots", slots, 1)):
        if value < low:
            raise ParameterError(f"{what}={value}; give at least {low}", what=what, value=value, minimum=low)
    if not 0 < magnitude < 2.0**WIDEST:
        raise ParameterError(
            f"magnitude={magnitude}; give a number above 0 and below 2^{WIDEST}",
            what="magnitude",
            value=magnitude,
        )
    packed = 1 << (slots - 1).bit_length()
    room = max(math.ceil(math.log2(magnitude)), 0) + 2
    for log_n in RINGS:
        if packed > 1 << (log_n - 1):
            continue
        scale = max(math.ceil(precision + _noise_bits(log_n, packed)), NARROWEST)
        if scale + room > WIDEST:
            break
        try:
            parameters = Parameters.from_bits(log_n, [scale + room, *[scale] * depth], [WIDEST], scale)
            KeySpec.relinearization(parameters)  # which is refused where keys would not be secure
            return parameters
        except SecurityError:
            continue
        except ParameterError:
            break  # more primes than there may be
    raise ParameterError(
        f"no ring of up to 2^{RINGS[-1]} has depth={depth}, precision={precision}, slots={slots} and "
        f"magnitude={magnitude:g} at 128 bits of security; ask for less, or bootstrap with one of "
        "kw.bootstrap_presets()",
        what="depth",
        value=depth,
    )


@cache
def _noise_bits(log_n: int, slots: int) -> float:
    """Bits of a scale that the error of an encryption takes, as its ciphertext says."""
    parameters = Parameters.from_bits(log_n, [PROBE + 10], [PROBE + 10], PROBE)
    public = KeyGenerator(SecretKey.generate(parameters)).public_key()
    return PROBE - Encryptor(public).encrypt(np.zeros(slots), slots).precision_bits
