"""How much noise a plan may have where nobody says so.

`KeyPlan.noise_bits` compares the error of an automorphism with the rounding of one key switch, which every
key makes: in a plan of b bits none has a deviation above 2^b such roundings. An error bound adds up what each
operation does, times what follows; only the terms of automorphisms depend on the plan. So b bits make the
bound on any result at most 2^b times that of a workload whose every automorphism is one key switch without
any noise of keys.
"""

from collections.abc import Sequence
from math import log2

from keywright._core import ERROR_DEVIATION, BootstrapperPlan

ENCRYPTION_BITS = 0.5 * log2(24 * ERROR_DEVIATION**2)
"""Of a fresh encryption with a public key and a ternary secret: sigma^2 4 N / 3 over the rounding of a
division, N / 18 (crates/rlwe/src/noise.rs). An automorphism may err by as much as the encryption of the input
did, which every workload has to bear: 4.0 bits."""

PRECISION_SHARE = 8
"""Of the bits that a bootstrapping is documented to be precise to, one in so many may be lost to keys."""


def error_budget(bootstraps: Sequence[BootstrapperPlan] = ()) -> float:
    """The most `KeyPlan.noise_bits` for a workload: those of an encryption, and an eighth of the precision of
    each of its bootstraps.

    Args:
        bootstraps: plans of the workload's bootstraps.
    """
    predicted = [plan.predicted_bits() for plan in bootstraps]
    shares = [mean / PRECISION_SHARE for mean, _ in filter(None, predicted)]
    return max(0.0, min([ENCRYPTION_BITS, *shares]))
