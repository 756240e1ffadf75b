"""Chem (Zhao, Protocol 1, radix 2) on TenSEAL, compared with TenSEAL's plain encryption, as in its paper.

A JSON object per line in, one per line out. A request has `messages`, integers of `bits` bits, and `unit`,
the number that a message of 1 stands for. The answer has the seconds of encrypting all of them with Chem and
plainly, one `ckks_vector` each, and the largest error of every eighth result of either.

The cache has an encryption of every power of two and as many of zero, each of which is added with probability
one half. Every addition is one call of TenSEAL; the first makes the sum, the others add to it in place.
"""

from __future__ import annotations

import json
import secrets
import sys
from typing import Any

import tenseal
from harness.measurement.clock import timed


class Chem:
    """A cache for messages of `bits` bits."""

    def __init__(self, context: Any, bits: int, unit: float) -> None:
        self.bits = bits
        self.powers = [tenseal.ckks_vector(context, [unit * 2**i]) for i in range(bits)]
        self.zeros = [tenseal.ckks_vector(context, [0.0]) for _ in range(bits)]

    def encrypt(self, messages: list[int]) -> list[Any]:
        """A sum of cached ciphertexts for each message."""
        return [self.one(message) for message in messages]

    def one(self, message: int) -> Any:
        """The sum for one message: at least one summand, so a zero where no coin chose one."""
        coins = secrets.randbits(self.bits)
        chosen = [power for i, power in enumerate(self.powers) if message >> i & 1]
        chosen += [zero for i, zero in enumerate(self.zeros) if coins >> i & 1]
        first, *rest = chosen or self.zeros[:1]
        if not rest:
            return first
        total = first + rest[0]
        for summand in rest[1:]:
            total += summand
        return total


def plainly(context: Any, values: list[float]) -> list[Any]:
    """One ciphertext for each value."""
    return [tenseal.ckks_vector(context, [value]) for value in values]


def main() -> None:
    """Serve until the input ends."""
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60], n_threads=1
    )
    context.global_scale = 2.0**40
    caches: dict[tuple[int, float], tuple[Chem, float]] = {}
    for line in sys.stdin:
        request = json.loads(line)
        bits, unit = request["bits"], request["unit"]
        if (bits, unit) not in caches:
            scheme, seconds = timed(Chem, context, bits, unit)
            caches[bits, unit] = (scheme, seconds.cpu)
        chem, cache_cpu = caches[bits, unit]
        messages: list[int] = request["messages"]
        values = [message * unit for message in messages]
        sums, chem_seconds = timed(chem.encrypt, messages)
        plain, plain_seconds = timed(plainly, context, values)
        checked = range(0, len(values), 8)
        plaintext = [(scheme[i].decrypt()[0], values[i]) for scheme in (sums, plain) for i in checked]
        answer = {
            "chem_cpu": chem_seconds.cpu,
            "plain_cpu": plain_seconds.cpu,
            "cache_cpu": cache_cpu,
            "error": max(abs(x - y) for x, y in plaintext),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
