"""Times of key switches and of what programs compute beside them on this machine, one thread: what a
calibration is fitted to.

Processor time, system calls included, of the fastest of several runs: what other processes do in the
meantime does not count, and what they do to the caches little. A program uses most keys and diagonals once
for each run, so they come from memory; what its operations have in common, as the tables of transforms, is in
cache. So before every timed run of what has keys, caches are filled with other data, and then the same is
done with other keys.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

import keywright as kw

from .calibration import Measured
from .chain import Shape, shapes
from .converters.arithmetic import product_operation
from .converters.network import chain_of
from .operations import Operation

CHAINS: dict[int, tuple[list[int], list[int]]] = {
    13: ([55, 40, 40], [55]),
    14: ([60, *[45] * 6], [60]),
    15: ([60, *[45] * 13], [60, 60, 60]),
    16: ([60, *[45] * 26], [60] * 8),
}
"""By base-2 logarithm of the ring degree, bits of the ciphertext primes and of the special ones: as many as
128-bit security allows, most of them narrow, as in the presets."""

ROUNDS = 2
"""How often everything is measured: what slows a machine down for a while is seldom there both times."""
RUNS = 4
"""Timed runs of a round at least."""
ENOUGH = 0.05
"""Seconds of runs, and of what comes before them, after which no other is begun."""
SHORTEST = 0.005
"""Seconds that a timed run takes at least."""

HOISTED = 4

DIAGONALS_BYTES = 128 << 20
"""Of the larger linear transforms: more than caches hold."""
OTHER_BYTES = 64 << 20
"""Of the data that caches are filled with."""


@dataclass(frozen=True)
class Case:
    """What to measure: a key, the level of the ciphertext, and how many rotations share it."""

    shape: Shape
    level: int
    count: int


def cases(log_n: int, *, held_out: bool = False) -> list[Case]:
    """Key switches that are measured in a ring: over levels, digits and special primes; each key at its own
    level, one at lower levels as well, hoisted rotations, and keys that are not seeded. `held_out` are
    others, which nothing is fitted to."""
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
    stored = dict.fromkeys(levels[:1] if held_out else (levels[0], levels[-2 if len(levels) > 1 else -1]))
    out += [Case(replace(shapes(chain, level)[0], seeded=False), level, 1) for level in stored]
    return out


@dataclass(frozen=True)
class TransformCase:
    """A linear transform to measure.

    Attributes:
        shape: of its keys, at the level of the ciphertext.
        babies, giants: baby and giant steps, 0 among them; every pair has a diagonal.
    """

    shape: Shape
    babies: int
    giants: int

    @property
    def operation(self) -> Operation:
        """What it computes beside key switches."""
        diagonals, lifted = self.babies * self.giants, self.giants
        return Operation(
            "transform", self.shape.level, diagonals=diagonals - lifted, lifted=lifted, visits=2, divided=2
        )


def transform_cases(log_n: int, *, held_out: bool = False) -> list[TransformCase]:
    """Linear transforms that are measured in a ring, over levels and digits."""
    q, p = CHAINS[log_n]
    chain = chain_of(kw.Parameters.from_bits(log_n, q, p, 40))
    out: list[TransformCase] = []
    # Share of the levels, digits, and the most baby steps; none for as few diagonals as show what steps take.
    places = [(0.75, 1, 6)] if held_out else [(1.0, 0, 0), (0.6, 0, 16), (0.6, 1, 4), (0.25, 0, 16)]
    for share, place, most in places:
        known = shapes(chain, max(1, round(share * chain.max_level)))
        shape = known[min(place, len(known) - 1)]
        if not most:
            out.append(TransformCase(shape, 2, 4))
            continue
        diagonals = DIAGONALS_BYTES / ((8 << log_n) * (shape.level + 1 + shape.special))
        babies = max(2, min(most, round(diagonals**0.5 * 1.4)))
        giants = max(2, min(16, round(diagonals / babies)))
        out.append(TransformCase(shape, babies, giants))
    return list(dict.fromkeys(out))


def fastest(measured: Iterable[Measured]) -> list[Measured]:
    """What was measured in several rounds, each once, with the least of its times."""
    least: dict[Measured, float] = {}
    for entry in measured:
        case = replace(entry, seconds=0.0)
        least[case] = min(entry.seconds, least.get(case, entry.seconds))
    return [replace(case, seconds=seconds) for case, seconds in least.items()]


def measure(log_n: int, *, held_out: bool = False) -> Iterator[Measured]:
    """Times of every case in a ring: one of `ROUNDS`.

    The number of threads is 1 from here on.

    Args:
        log_n: base-2 logarithm of the ring degree, one of `CHAINS`.
        held_out: as of `cases`.
    """
    bench = _Bench(log_n)
    by_key: dict[tuple[Shape, int], list[Case]] = {}
    for case in cases(log_n, held_out=held_out):
        by_key.setdefault((case.shape, case.count), []).append(case)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "key.kw"
        for (shape, count), listed in by_key.items():
            yield from bench.key(shape, count, listed, path)
    for transform in transform_cases(log_n, held_out=held_out):
        yield bench.transform(transform)
    top = bench.chain.max_level
    for share in (0.55,) if held_out else (1.0, 0.4):
        yield from bench.operations(max(1, round(share * top)))


class _Bench:
    """An owner of keys in the ring of one of `CHAINS`."""

    def __init__(self, log_n: int) -> None:
        kw.set_threads(1)
        q, p = CHAINS[log_n]
        self.parameters = kw.Parameters.from_bits(log_n, q, p, 40)
        self.chain = chain_of(self.parameters)
        secret = kw.SecretKey.generate(self.parameters)
        self.generator = kw.KeyGenerator(secret)
        self.encryptor = kw.Encryptor(self.generator.public_key())
        # What they are makes no difference.
        self.values = np.linspace(-1, 1, self.parameters.max_slots)
        self.other = np.ones(OTHER_BYTES // 8)

    def fresh(self, level: int) -> kw.Ciphertext:
        """A ciphertext of full packing."""
        return self.encryptor.encrypt(self.values, slots=self.parameters.max_slots, level=level)

    def key(self, shape: Shape, count: int, listed: list[Case], path: Path) -> list[Measured]:
        """Making `count` keys of a shape, reading one, and what they are used for."""
        steps = list(range(1, count + 1))
        make = self.maker([self.spec(shape, step) for step in steps])
        made: deque[kw.EvaluationKeys] = deque(maxlen=2)
        seconds = _time(lambda: made.append(make()), runs=2) / count
        out = [Measured("key", shape, shape.level, 1, seconds)]
        keys, others = made
        if count == 1:
            keys.save(path)
            seconds = _time(lambda: kw.EvaluationKeys.load(path, self.parameters))
            out.append(Measured("load", shape, shape.level, 1, seconds))
        evaluator, other = (kw.Evaluator(self.parameters, each) for each in (keys, others))
        for case in listed:
            ciphertext = self.fresh(case.level)
            before, rotate = (partial(e.rotate_hoisted, ciphertext, steps) for e in (other, evaluator))
            what = "switch" if count == 1 else "hoisted"
            out.append(Measured(what, shape, case.level, count, self.cold(rotate, before) / count))
        return out

    def transform(self, case: TransformCase) -> Measured:
        """A linear transform of a ciphertext."""
        shape, babies, giants = case.shape, case.babies, case.giants
        steps = [*range(1, babies), *(babies * j for j in range(1, giants))]
        evaluator = kw.Evaluator(self.parameters, self.maker([self.spec(shape, step) for step in steps])())
        ciphertext = self.fresh(shape.level)
        diagonals = {r: np.roll(self.values, r) for r in range(babies * giants)}
        slots = self.parameters.max_slots
        special = list(shape.special_primes)
        encoded = kw.LinearTransform(self.parameters, diagonals, slots, shape.level, babies, special)
        apply = partial(evaluator.linear_transform, ciphertext, encoded)
        # One of its many keys is in cache then.
        seconds = self.cold(apply, partial(evaluator.rotate, ciphertext, steps[-1]))
        return Measured("transform", shape, shape.level, babies - 1, seconds, giants - 1, case.operation)

    def operations(self, level: int) -> Iterator[Measured]:
        """A product of ciphertexts, one with a constant, a sum and a sum with a vector."""
        shape = shapes(self.chain, level)[0]
        spec = kw.KeySpec.relinearization(
            self.parameters, level, _alpha(shape), shape.seeded, list(shape.special_primes)
        )
        evaluator, other = (kw.Evaluator(self.parameters, self.maker([spec])()) for _ in range(2))
        a, b = self.fresh(level), self.fresh(level)
        seconds = self.cold(lambda: evaluator.multiply(a, b), lambda: other.multiply(a, b))
        yield Measured("product", shape, level, 1, seconds, 0, product_operation("product", level))

        def entry(what: str, work: Callable[[], object], operation: Operation) -> Measured:
            return Measured(what, shape, level, 1, _time(work), 0, operation)

        scaled = Operation("constant", level, visits=2, rescaled=2)
        yield entry("operation", lambda: evaluator.multiply(a, 0.3), scaled)
        yield entry("operation", lambda: evaluator.add(a, b), Operation("sum", level, visits=2))
        encoded = Operation("encoding", level, visits=1, transforms=1, embeddings=1)
        yield entry("operation", lambda: evaluator.add(a, self.values), encoded)

    def cold(self, work: Callable[[], object], before: Callable[[], object]) -> float:
        """The time of something whose keys and diagonals come from memory, after something like it."""

        def prepare() -> None:
            self.other.sum()
            before()

        work()
        return _time(work, prepare)

    def maker(self, specs: list[kw.KeySpec]) -> Callable[[], kw.EvaluationKeys]:
        """Makes keys."""
        return partial(self.generator.evaluation_keys, relinearization=False, specs=specs)

    def spec(self, shape: Shape, step: int) -> kw.KeySpec:
        """The key of a rotation."""
        special = list(shape.special_primes)
        return kw.KeySpec.rotation(self.parameters, step, shape.level, _alpha(shape), shape.seeded, special)


def _alpha(shape: Shape) -> int:
    return min(shape.alpha, max(shape.level + 1, shape.special))


def _time(work: Callable[[], object], before: Callable[[], object] | None = None, runs: int = RUNS) -> float:
    """The least time of something: of short works, without anything before them, several at once, as the
    clock and the interpreter take microseconds."""
    times: list[float] = []
    repeats, begin = 1, process_time()
    while len(times) < runs or process_time() - begin < ENOUGH:
        if before is not None:
            before()
        start = process_time()
        for _ in range(repeats):
            work()
        times.append((process_time() - start) / repeats)
        if before is None and repeats == 1 and times[0] < SHORTEST:
            repeats = 1 + int(SHORTEST / times.pop())
    return min(times)
