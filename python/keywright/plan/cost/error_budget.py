"""The default noise budget of a plan.

`KeyPlan.noise_bits` compares the error of an automorphism with the rounding of one key switch, which every
key adds: in a plan of b bits no automorphism has a deviation above 2^b such roundings. An error bound sums
the errors of all operations, times the gain of the rest of the program; only the terms of automorphisms
depend on the plan. A plan of b bits therefore increases the bound on any result by at most 2^b, relative to a
workload in which every automorphism is one key switch with a noiseless key.
"""

from collections.abc import Sequence
from math import log2

from keywright._core import ERROR_DEVIATION, BootstrapperPlan

ENCRYPTION_BITS = 0.5 * log2(24 * ERROR_DEVIATION**2)
"""Noise bits of a fresh encryption with a public key and a ternary secret: sigma^2 4 N / 3 over the rounding
of a division, N / 18 (crates/rlwe/src/noise.rs). An automorphism may add as much error as the encryption of
the input, which every workload must tolerate: 4.0 bits."""

PRECISION_SHARE = 8
"""One in so many of a bootstrapping's documented bits of precision may be lost to keys."""


def error_budget(bootstraps: Sequence[BootstrapperPlan] = ()) -> float:
    """Return the maximum of `KeyPlan.noise_bits` for a workload: the bits of an encryption, and an eighth of
    the precision of each bootstrap.

    Args:
        bootstraps: plans of the workload's bootstraps.
    """
    predicted = [plan.predicted_bits() for plan in bootstraps]
    shares = [mean / PRECISION_SHARE for mean, _ in filter(None, predicted)]
    return max(0.0, min([ENCRYPTION_BITS, *shares]))
