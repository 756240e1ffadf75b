"""How fast the machine is at the moment.

What else the hardware does, as for the other machines that share it, makes the same work take 10 or 20 % more
from one minute to the next, and half as much again for parts of a second. So times are kept together with
that of a fixed key switch in the same ring beside them, the gauge. Two times divided by their gauges can be
compared when they themselves cannot. (A loop of the interpreter in its place leaves twice the differences
between key switches, and so does a sum over memory.)
"""

from time import process_time

import numpy as np

from keywright._core import Encryptor, Evaluator, KeyGenerator, KeySpec, Parameters, SecretKey

CHAINS: dict[int, tuple[list[int], list[int]]] = {
    13: ([55, 40, 40], [55]),
    14: ([60, *[45] * 6], [60]),
    15: ([60, *[45] * 13], [60, 60, 60]),
    16: ([60, *[45] * 26], [60] * 8),
}
"""By base-2 logarithm of the ring degree, bits of the ciphertext primes and of the special ones: as many as
128-bit security allows, most of them narrow, as in the presets."""

OTHER_BYTES = 64 << 20
"""Of the data that caches are filled with."""

SHARE = 0.15
"""Of the levels: where the key switch is."""

CLOCK = 1e-5
"""Seconds: less than anything takes that is timed. A clock that says less is wrong."""


class Gauge:
    """A fixed key switch in a ring, and its time."""

    def __init__(self, log_n: int) -> None:
        """Make its key.

        Args:
            log_n: base-2 logarithm of the ring degree, one of `CHAINS`.
        """
        q, p = CHAINS[log_n]
        parameters = Parameters.from_bits(log_n, q, p, 40)
        level = max(1, round(SHARE * parameters.max_level))
        generator = KeyGenerator(SecretKey.generate(parameters))
        keys = generator.evaluation_keys(
            relinearization=False, specs=[KeySpec.rotation(parameters, 1, level)]
        )
        values = np.linspace(-1, 1, parameters.max_slots)
        self._evaluator = Evaluator(parameters, keys)
        self._ciphertext = Encryptor(generator.public_key()).encrypt(
            values, slots=parameters.max_slots, level=level
        )
        self._other = np.ones(OTHER_BYTES // 8)

    def seconds(self) -> float:
        """Its processor time now, with nothing of it in cache. Caches are full of other data afterwards, but
        for what this key switch takes."""
        self._other.sum()
        start = process_time()
        self._evaluator.rotate(self._ciphertext, 1)
        return max(process_time() - start, CLOCK)
