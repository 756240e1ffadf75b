"""Creates chains from parameters and from JSON."""

import re
from collections.abc import Mapping
from math import log2
from typing import Any

from keywright._core import Parameters, maximum_log_qp
from keywright._reading.records import number, whole

from .chain import Chain

UNBOUNDED = 1 << 20
"""Bound on the bits of a key's modulus for parameters that promise no security."""


def chain_of(parameters: Parameters) -> Chain:
    """Return the primes of parameters, with the bound on the modulus of a key that is secure for their
    secret.

    Raises:
        keywright.errors.SecurityError: no bound for that secret and degree is known.
    """
    sparse = re.fullmatch(r"ternary of weight (\d+)", parameters.secret_distribution)
    if parameters.insecure or sparse is None:
        bound = UNBOUNDED if parameters.insecure else None
    else:
        bound = maximum_log_qp(parameters.log_n, int(sparse[1]))
    return Chain(
        parameters.log_n,
        tuple(log2(modulus) for modulus in parameters.q),
        tuple(log2(modulus) for modulus in parameters.p),
        bound,
    )


def read_chain(data: Mapping[str, Any]) -> Chain:
    """Read primes from JSON in the form of `dataclasses.asdict`.

    Raises:
        ValueError: a number is malformed or out of range.
    """
    bound = data.get("bound")
    return Chain(
        whole(data["log_n"], "log_n"),
        tuple(number(bits, "the width of a prime") for bits in data["q"]),
        tuple(number(bits, "the width of a prime") for bits in data["p"]),
        None if bound is None else whole(bound, "bound"),
    )
