"""Measures the speed of the machine: now, and with several threads.

Other load on the hardware, for example from other virtual machines, makes the same work take 10 or 20 %
longer from one minute to the next, and half as much again for fractions of a second. Each time is therefore
stored with the time of a fixed key switch in the same ring, the gauge, measured at the same time. Two times
divided by their gauges are comparable even if the times themselves are not. (A loop of the interpreter, or a
sum over memory, leaves twice the differences between key switches.)
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

import numpy as np

from keywright._core import Encryptor, Evaluator, KeyGenerator, KeySpec, Parameters, SecretKey, set_threads

CHAINS: dict[int, tuple[list[int], list[int]]] = {
    13: ([55, 40, 40], [55]),
    14: ([60, *[45] * 6], [60]),
    15: ([60, *[45] * 13], [60, 60, 60]),
    16: ([60, *[45] * 26], [60] * 8),
}
"""By base-2 logarithm of the ring degree, bits of the ciphertext primes and of the special primes: as many as
128-bit security allows, mostly narrow, as in the presets."""

OTHER_BYTES = 64 << 20
"""Bytes of the data with which caches are filled."""

SHARE = 0.15
"""Position of the key switch, as a share of the levels."""

CLOCK = 1e-5
"""Seconds, less than any timed work takes. A clock that reports less is wrong."""


class Gauge:
    """A fixed key switch in a ring, and its time.

    Thread safety: one thread at a time.
    """

    def __init__(self, log_n: int) -> None:
        """Make the key.

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
        """Return the gauge's processor time now, with none of its data in cache. Afterwards caches are full
        of other data and of the data of this key switch."""
        self._other.sum()
        start = process_time()
        self._evaluator.rotate(self._ciphertext, 1)
        return max(process_time() - start, CLOCK)


PAIRS = 5
"""Number of pairs of runs, one with a single thread and one with several."""


def measure_speedup(work: Callable[[], object], threads: int) -> float:
    """Measure the speed of several threads as a multiple of one thread's. Predicted times, which are of one
    thread, can be divided by it. The result is the median of the ratios of consecutive runs, so that a
    machine that becomes slower changes little. The number of threads is 1 afterwards.

    Args:
        work: takes a tenth of a second or more. Wall time is measured, not the processor's time.
        threads: more than 1.
    """

    def seconds(count: int) -> float:
        set_threads(count)
        start = perf_counter()
        work()
        return perf_counter() - start

    for count in (1, threads):  # memory and tables
        seconds(count)
    ratios = [seconds(1) / seconds(threads) for _ in range(PAIRS)]
    set_threads(1)
    return median(ratios)
