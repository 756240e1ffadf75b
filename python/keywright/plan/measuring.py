"""Times of key switches on this machine, one thread: what a calibration is fitted to.

Processor time, system calls included: what other processes do in the meantime does not count, only what they
do to the caches.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import keywright as kw

from .calibration import Measured
from .chain import Shape, shapes
from .converters.network import chain_of

CHAINS: dict[int, tuple[list[int], list[int]]] = {
    13: ([55, 40, 40], [55]),
    14: ([60, *[45] * 6], [60]),
    15: ([60, *[45] * 13], [60, 60, 60]),
    16: ([60, *[45] * 26], [60] * 8),
}
"""By base-2 logarithm of the ring degree, bits of the ciphertext primes and of the special ones: as many as
128-bit security allows, most of them narrow, as in the presets."""

RUNS = 5
KEY_RUNS = 3
SHORTEST = 0.02
"""Seconds that a timed run takes at least."""

HOISTED = 4


@dataclass(frozen=True)
class Case:
    """What to measure: a key, the level of the ciphertext, and how many rotations share it."""

    shape: Shape
    level: int
    count: int


def cases(log_n: int, *, held_out: bool = False) -> list[Case]:
    """What is measured in a ring: over levels, digits and special primes; each key at its own level, one at
    lower levels as well, and hoisted rotations. `held_out` are others, which nothing is fitted to."""
    q, p = CHAINS[log_n]
    chain = chain_of(kw.Parameters.from_bits(log_n, q, p, 40))
    top = chain.max_level
    shares = (0.85, 0.5, 0.2) if held_out else (1.0, 0.65, 0.35, 0.1)
    levels = sorted({max(1, round(share * top)) for share in shares}, reverse=True)
    out = []
    for level in levels:
        known = shapes(chain, level)
        # From the fewest digits, with the most special primes, to one prime each.
        places = (0.25, 0.75) if held_out else (0.0, 0.5, 1.0)
        picked = {round(place * (len(known) - 1)) for place in places}
        out += [Case(known[index], level, 1) for index in sorted(picked)]
        out.append(Case(known[min(1, len(known) - 1)] if held_out else known[0], level, HOISTED))
    highest = out[0].shape
    out += [Case(highest, level, 1) for level in levels[1:]]
    return out


def measure(
    log_n: int, *, held_out: bool = False, report: Callable[[Measured], object] = lambda _: None
) -> Iterator[Measured]:
    """Times of every case in a ring: medians of five.

    The number of threads is 1 from here on.

    Args:
        log_n: base-2 logarithm of the ring degree, one of `CHAINS`.
        held_out: as of `cases`.
        report: called with each.
    """
    kw.set_threads(1)
    q, p = CHAINS[log_n]
    parameters = kw.Parameters.from_bits(log_n, q, p, 40)
    secret = kw.SecretKey.generate(parameters)
    generator, encryptor = kw.KeyGenerator(secret), kw.Encryptor(kw.KeyGenerator(secret).public_key())
    by_key: dict[tuple[Shape, int], list[Case]] = {}
    for case in cases(log_n, held_out=held_out):
        by_key.setdefault((case.shape, case.count), []).append(case)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "key.kw"
        for (shape, count), listed in by_key.items():
            for entry in _measure_key(parameters, generator, encryptor, shape, count, listed, path):
                report(entry)
                yield entry


def _measure_key(
    parameters: kw.Parameters,
    generator: kw.KeyGenerator,
    encryptor: kw.Encryptor,
    shape: Shape,
    count: int,
    listed: list[Case],
    path: Path,
) -> list[Measured]:
    """Making `count` keys of a shape, reading one, and what they are used for."""
    steps = list(range(1, count + 1))
    specs = [_spec(parameters, shape, step) for step in steps]
    make = partial(generator.evaluation_keys, relinearization=False, specs=specs)
    out = [Measured("key", shape, shape.level, 1, _median(make, KEY_RUNS) / count)]
    keys = make()
    if count == 1:
        keys.save(path)
        seconds = _median(lambda: kw.EvaluationKeys.load(path, parameters))
        out.append(Measured("load", shape, shape.level, 1, seconds))
    evaluator = kw.Evaluator(parameters, keys)
    for case in listed:
        ciphertext = encryptor.encrypt([0.5], slots=parameters.max_slots, level=case.level)
        rotate = partial(evaluator.rotate_hoisted, ciphertext, steps)
        what = "switch" if count == 1 else "hoisted"
        out.append(Measured(what, shape, case.level, count, _median(rotate) / count))
    return out


def _spec(parameters: kw.Parameters, shape: Shape, step: int) -> kw.KeySpec:
    alpha = min(shape.alpha, max(shape.level + 1, shape.special))
    return kw.KeySpec.rotation(parameters, step, shape.level, alpha, True, list(shape.special_primes))


def _median(work: Callable[[], object], runs: int = RUNS) -> float:
    start = process_time()
    work()
    # Short works several times: the clock and the interpreter take microseconds.
    repeats = max(1, int(SHORTEST / (process_time() - start)))
    times = []
    for _ in range(runs):
        start = process_time()
        for _ in range(repeats):
            work()
        times.append((process_time() - start) / repeats)
    return median(times)
