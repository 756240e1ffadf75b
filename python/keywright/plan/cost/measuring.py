"""Measures key switches and the other operations of workloads on one thread, for the calibration.

Times are processor times including system calls, so other processes do not count. A workload uses most keys
and diagonals once per run and reads them from memory; common data such as the tables of transforms are in
cache. Before every timed run of work with keys, therefore, caches are filled with other data, and the same
work is done with other keys.

Because a machine's speed changes from second to second with the other load on the hardware, it is gauged
before every run (`gauge`), and the result is the median, over all rounds, of the runs' times relative to the
gauge. The minimum is not usable: on a virtual machine the reported processor time of a short run was
occasionally a fraction of the true time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from keywright._core import (
    Ciphertext,
    Encryptor,
    EvaluationKeys,
    Evaluator,
    KeyGenerator,
    KeySpec,
    LinearTransform,
    Parameters,
    SecretKey,
    set_threads,
)
from keywright._processes import temporary_folder
from keywright._progress import Progress, silent
from keywright.plan.ring.chain import Shape, shapes
from keywright.plan.ring.chain_sources import chain_of

from .calibration import Measurement
from .gauge import CHAINS, CLOCK, Gauge, measure_speedup
from .operations import Operation, product_operation
from .ring_switch import ring_switch_parts, ring_switch_shape

ROUNDS = {13: 3, 14: 3, 15: 2, 16: 2}
"""How often everything is measured, by base-2 logarithm of the ring degree."""
RUNS = 3
"""Minimum number of timed runs in a round."""
ENOUGH = 0.05
"""Seconds of runs, including preparation, after which no further run starts."""
SHORTEST = 0.005
"""Minimum seconds of a timed run."""

HOISTED = 4

DIAGONALS_BYTES = 128 << 20
"""Bytes of the diagonals of larger linear transforms: more than caches hold."""


@dataclass(frozen=True)
class Case:
    """A measurement: a key, the level of the ciphertext, and the number of rotations that share it."""

    shape: Shape
    level: int
    count: int


def cases(log_n: int, *, held_out: bool = False) -> list[Case]:
    """Return the key switches that are measured in a ring: over levels, digits and special primes; each key
    at its own level, one at lower levels as well, hoisted rotations, and keys that are not seeded. With
    `held_out`, return others, to which nothing is fitted."""
    q, p = CHAINS[log_n]
    chain = chain_of(Parameters.from_bits(log_n, q, p, 40))
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
        babies, giants: baby and giant steps, including 0; every pair has a diagonal.
    """

    shape: Shape
    babies: int
    giants: int

    @property
    def operation(self) -> Operation:
        """Return the work besides key switches."""
        diagonals, lifted = self.babies * self.giants, self.giants
        return Operation(
            "transform", self.shape.level, diagonals=diagonals - lifted, lifted=lifted, visits=2, divided=2
        )


def transform_cases(log_n: int, *, held_out: bool = False) -> list[TransformCase]:
    """Return the linear transforms that are measured in a ring, over levels and digits."""
    q, p = CHAINS[log_n]
    chain = chain_of(Parameters.from_bits(log_n, q, p, 40))
    out: list[TransformCase] = []
    # Share of the levels, digits, and maximum baby steps; None for few diagonals, which show the cost of
    # steps.
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


def medians(runs: Iterable[Measurement]) -> list[Measurement]:
    """Return each measurement once, with the median of its times and of its times relative to the gauge."""
    by_case: dict[Measurement, list[Measurement]] = {}
    for run in runs:
        by_case.setdefault(replace(run, seconds=0.0, gauge=0.0), []).append(run)
    out = []
    for case, result in by_case.items():
        seconds = median(run.seconds for run in result)
        relative = median(run.seconds / run.gauge for run in result)
        out.append(replace(case, seconds=seconds, gauge=seconds / relative))
    return out


def _rounds(rings: Iterable[int]) -> list[int]:
    """Return the rings in the order of measurement: the rounds of each ring are spread over time."""
    rings = list(rings)
    return [log_n for turn in range(max(ROUNDS.values())) for log_n in rings if turn < ROUNDS[log_n]]


def measure(
    rings: Iterable[int], *, held_out: bool = False, progress: Progress = silent
) -> list[Measurement]:
    """Measure every case in some rings, each once or more often (`ROUNDS`). The number of threads is 1
    afterwards.

    Args:
        rings: base-2 logarithms of the ring degrees, of `CHAINS`.
        held_out: whether other cases are measured than those that a calibration is fitted to.
        progress: receives the progress.
    """
    out: list[Measurement] = []
    turns = _rounds(rings)
    keys = sum(len({(case.shape, case.count) for case in cases(log_n, held_out=held_out)}) for log_n in turns)
    with progress("keys", keys) as advance:
        for log_n in turns:
            for runs in _measure_ring(log_n, held_out=held_out):
                if runs[0].what == "key":
                    advance(1)
                out += runs
    return medians(out)


def _measure_ring(log_n: int, *, held_out: bool) -> Iterator[list[Measurement]]:
    """Yield the runs of every case in a ring, case by case: one of `ROUNDS`."""
    bench = _Bench(log_n)
    by_key: dict[tuple[Shape, int], list[Case]] = {}
    for case in cases(log_n, held_out=held_out):
        by_key.setdefault((case.shape, case.count), []).append(case)
    with temporary_folder() as folder:
        path = folder / "key.kw"
        for (shape, count), listed in by_key.items():
            yield from bench.key(shape, count, listed, path)
    for transform in transform_cases(log_n, held_out=held_out):
        yield bench.transform(transform)
    top = bench.chain.max_level
    for share in (0.55,) if held_out else (1.0, 0.4):
        yield from bench.operations(max(1, round(share * top)))
        if log_n < max(CHAINS):
            yield ring_switch_runs(bench, max(1, round(share * top)))


def speedup(log_n: int, threads: int) -> float:
    """Measure the speed of a number of threads with a linear transform in a ring, as a multiple of one
    thread's. The number of threads is 1 afterwards."""
    return measure_speedup(_Bench(log_n).transform_work(transform_cases(log_n)[-1])[0], threads)


def ring_switch_runs(bench: "_Bench", level: int) -> list[Measurement]:
    """Measure switches of a ciphertext from the ring of twice the degree, which has the same primes."""
    log_n = bench.chain.log_n
    q, p = CHAINS[log_n]
    both = Parameters.from_bits(log_n + 1, q, p, 40).with_subrings([(log_n, level, None)])
    chain = chain_of(both.subring(log_n))
    parts = ring_switch_parts(chain, log_n + 1)
    shape = ring_switch_shape(chain, level, parts)
    special = list(shape.special_primes)
    specs = KeySpec.ring_down(both, log_n, level, _alpha(shape), True, special, log_n + 1)
    generator = KeyGenerator(SecretKey.generate(both))
    keys = (generator.evaluation_keys(relinearization=False, specs=specs) for _ in range(2))
    evaluator, other = (Evaluator(both, each) for each in keys)
    values = np.linspace(-1, 1, both.subring(log_n).max_slots)
    ciphertext = Encryptor(generator.public_key()).encrypt(values, slots=len(values), level=level)
    case = Measurement("ring", shape, level, len(specs))
    runs = (partial(each.switch_ring, ciphertext, log_n) for each in (evaluator, other))
    return bench.runs(case, *runs)


class _Bench:
    """An owner of keys in the ring of one of `CHAINS`."""

    def __init__(self, log_n: int) -> None:
        set_threads(1)
        q, p = CHAINS[log_n]
        self.parameters = Parameters.from_bits(log_n, q, p, 40)
        self.chain = chain_of(self.parameters)
        secret = SecretKey.generate(self.parameters)
        self.generator = KeyGenerator(secret)
        self.encryptor = Encryptor(self.generator.public_key())
        # The values do not matter.
        self.values = np.linspace(-1, 1, self.parameters.max_slots)
        self.gauge = Gauge(log_n)

    def fresh(self, level: int) -> Ciphertext:
        """Return a fully packed ciphertext."""
        return self.encryptor.encrypt(self.values, slots=self.parameters.max_slots, level=level)

    def key(self, shape: Shape, count: int, listed: list[Case], path: Path) -> Iterator[list[Measurement]]:
        """Measure making `count` keys of a shape, reading one, and using them."""
        steps = list(range(1, count + 1))
        make = self.maker([self.spec(shape, step) for step in steps])
        result = deque([make(), make()])
        case = Measurement("key", shape, shape.level, 1)
        # Use memory that the process already has: the cost of new memory is the system's, and varies.
        yield self.runs(case, lambda: result.append(make()), result.popleft, times=count, least=2)
        keys, others = result
        if count == 1:
            keys.save(path)
            case = Measurement("load", shape, shape.level, 1)
            yield self.runs(case, lambda: EvaluationKeys.load(path, self.parameters))
        evaluator, other = (Evaluator(self.parameters, each) for each in (keys, others))
        for listed_case in listed:
            ciphertext = self.fresh(listed_case.level)
            before, rotate = (partial(e.rotate_hoisted, ciphertext, steps) for e in (other, evaluator))
            case = Measurement("switch" if count == 1 else "hoisted", shape, listed_case.level, count)
            yield self.runs(case, rotate, before, times=count)

    def transform(self, case: TransformCase) -> list[Measurement]:
        """Measure a linear transform of a ciphertext."""
        apply, before = self.transform_work(case)
        shape, babies, giants = case.shape, case.babies - 1, case.giants - 1
        measured = Measurement(
            "transform", shape, shape.level, babies, giants=giants, operation=case.operation
        )
        return self.runs(measured, apply, before)

    def transform_work(self, case: TransformCase) -> tuple[Callable[[], object], Callable[[], object]]:
        """Return a linear transform, and a rotation with one of its keys."""
        shape, babies, giants = case.shape, case.babies, case.giants
        steps = [*range(1, babies), *(babies * j for j in range(1, giants))]
        evaluator = Evaluator(self.parameters, self.maker([self.spec(shape, step) for step in steps])())
        ciphertext = self.fresh(shape.level)
        diagonals = {r: np.roll(self.values, r) for r in range(babies * giants)}
        slots = self.parameters.max_slots
        special = list(shape.special_primes)
        encoded = LinearTransform(self.parameters, diagonals, slots, shape.level, babies, special)
        apply = partial(evaluator.linear_transform, ciphertext, encoded)
        # One of its many keys is then in cache.
        return apply, partial(evaluator.rotate, ciphertext, steps[-1])

    def operations(self, level: int) -> Iterator[list[Measurement]]:
        """Measure a product of ciphertexts, one with a constant, a sum and a sum with a vector."""
        shape = shapes(self.chain, level)[0]
        spec = KeySpec.relinearization(
            self.parameters, level, _alpha(shape), shape.seeded, list(shape.special_primes)
        )
        evaluator, other = (Evaluator(self.parameters, self.maker([spec])()) for _ in range(2))
        a, b = self.fresh(level), self.fresh(level)
        product = Measurement("product", shape, level, 1, operation=product_operation("product", level))
        yield self.runs(product, lambda: evaluator.multiply(a, b), lambda: other.multiply(a, b))

        def runs(operation: Operation, work: Callable[[], object]) -> list[Measurement]:
            return self.runs(Measurement("operation", shape, level, 1, operation=operation), work)

        scaled = Operation("constant", level, visits=2, rescaled=2)
        yield runs(scaled, lambda: evaluator.multiply(a, 0.3))
        yield runs(Operation("sum", level, visits=2), lambda: evaluator.add(a, b))
        encoded = Operation("encoding", level, visits=1, transforms=1, embeddings=1)
        yield runs(encoded, lambda: evaluator.add(a, self.values))

    def runs(
        self,
        case: Measurement,
        work: Callable[[], object],
        before: Callable[[], object] | None = None,
        *,
        times: int = 1,
        least: int = RUNS,
    ) -> list[Measurement]:
        """Time runs of some work, each after the gauge, which leaves caches full of other data.

        Args:
            case: the measurement.
            work: the timed work. Short work without preparation is repeated, after a first run, because the
                clock and the interpreter take microseconds.
            before: similar work with other keys: then the keys and diagonals of `work` come from memory, but
                the tables are in cache.
            times: repetitions inside `work`.
            least: minimum number of runs.
        """
        out: list[Measurement] = []
        repeats, begin = 1, process_time()
        while len(out) < least or process_time() - begin < ENOUGH:
            gauge = self.gauge.seconds()
            if before is not None:
                before()
            elif repeats > 1:
                work()
            start = process_time()
            for _ in range(repeats):
                work()
            seconds = (process_time() - start) / repeats
            if before is None and repeats == 1 and seconds < SHORTEST:
                repeats = 1 + int(SHORTEST / max(seconds, CLOCK))
            elif seconds > 0:
                out.append(replace(case, seconds=seconds / times, gauge=gauge))
        return out

    def maker(self, specs: list[KeySpec]) -> Callable[[], EvaluationKeys]:
        """Return a function that makes keys."""
        return partial(self.generator.evaluation_keys, relinearization=False, specs=specs)

    def spec(self, shape: Shape, step: int) -> KeySpec:
        """Return the key of a rotation."""
        special = list(shape.special_primes)
        return KeySpec.rotation(self.parameters, step, shape.level, _alpha(shape), shape.seeded, special)


def _alpha(shape: Shape) -> int:
    return min(shape.alpha, max(shape.level + 1, shape.special))
