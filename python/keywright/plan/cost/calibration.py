"""The calibration of a machine: measurements, the weights fitted to them, and the file for both."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keywright._core import Parameters, __version__
from keywright._reading.arrays import read_file
from keywright._reading.documents import Limits
from keywright._reading.records import number, read_object, refusing, shown, whole
from keywright.errors import FormatError
from keywright.plan.ring.chain import Chain, Shape
from keywright.plan.ring.chain_sources import read_chain

from .gauge import CHAINS
from .model import (
    OPTIONAL,
    TYPICAL_WEIGHTS,
    CostModel,
    Weights,
    Work,
    engine_use,
    fitted_weights,
    nearest,
    shape_parts,
)
from .operations import MAX_COUNT, Operation
from .ring_switch import ring_switch_work

FORMAT = "keywright-calibration-4"
LIMITS = Limits(16 << 20, 1 << 18)
VARIABLE = "KEYWRIGHT_CALIBRATION"
"""Environment variable that names the file of the calibration."""


SWITCHES = ("switch", "hoisted")
"""Kinds of measurements that are one key switch."""
WHATS = (*SWITCHES, "transform", "product", "operation", "ring", "key", "load")


@dataclass(frozen=True)
class Measurement:
    """One measurement.

    Attributes:
        what: "switch", a single one; "hoisted", each of `count` of one ciphertext; "transform", a linear
            transform with its key switches; "product", of ciphertexts with relinearization; "operation",
            something without key switches; "ring", a switch of a ciphertext from a larger ring; "key",
            making a key; "load", reading one from a file.
        shape: of the key.
        level: level of the ciphertext; for "key" and "load" the key's.
        count: number that share a decomposition; for a transform, its baby steps; for a switch from a larger
            ring, its keys.
        seconds: time of one.
        giants: giant steps of a transform.
        operation: the work besides key switches.
        gauge: the gauge's time measured with it (`gauge.Gauge`).
    """

    what: str
    shape: Shape
    level: int
    count: int
    seconds: float = 0.0
    giants: int = 0
    operation: Operation | None = None
    gauge: float = 1.0

    def predicted(self, model: CostModel) -> float:
        """Return a model's prediction for the time; errors as for `measured_work`."""
        if self.what == "key":
            return model.key_seconds(self.shape)
        if self.what == "load":
            return model.load_seconds(self.shape)
        return measured_work(self).seconds(model.of_degree(self.shape.chain.log_n))


@dataclass(frozen=True)
class Calibration:
    """A machine with its weights.

    Attributes:
        machine: description of processor, instruction set and release.
        weights: by base-2 logarithm of the ring degree.
        gauges: seconds of the gauge (`gauge.Gauge`) in each of these rings: the machine's speed for which
            times are predicted.
        measured: the measurements that weights were fitted to.
        speedups: speed of several threads as a multiple of one thread's (`measure_speedup`), by their
            number.
    """

    machine: str
    weights: Mapping[int, Weights]
    gauges: Mapping[int, float]
    measured: tuple[Measurement, ...]
    speedups: Mapping[int, float] = field(default_factory=dict)

    @property
    def model(self) -> CostModel:
        """Return a cost model with these weights."""
        return CostModel(self.weights)

    def speedup(self, threads: int) -> float | None:
        """Return the speed of a number of threads as a multiple of one thread's: the measured one, or by
        Amdahl's law from the nearest measured number. None if no number was measured."""
        if threads == 1 or not self.speedups:
            return 1.0 if threads == 1 else None
        known = min(self.speedups, key=lambda number: (abs(number - threads), number))
        shared = (1 - 1 / self.speedups[known]) / (1 - 1 / known)
        return self.speedups[known] if known == threads else 1 / (1 - shared + shared / threads)

    def ring_for(self, log_n: int) -> int:
        """Return the ring whose weights predict times in a ring: the ring itself, or the nearest measured
        one."""
        return nearest(self.weights, log_n)

    def require_this_machine(self) -> None:
        """Check that the calibration is from this machine.

        Raises:
            FormatError: it is from another machine.
        """
        here = describe_machine()
        if self.machine != here:
            raise FormatError(
                f"the calibration is from {self.machine}, but this machine is {here}; run keywright "
                "calibrate",
                found=self.machine,
                expected=here,
                code="machine",
            )

    def to_json(self) -> str:
        """Return the file's text."""
        chains = list(dict.fromkeys(entry.shape.chain for entry in self.measured))
        return json.dumps(
            {
                "format": FORMAT,
                "machine": self.machine,
                "weights": {str(log_n): asdict(weights) for log_n, weights in self.weights.items()},
                "gauges": {str(log_n): seconds for log_n, seconds in self.gauges.items()},
                "speedups": {str(threads): times for threads, times in self.speedups.items()},
                "chains": [asdict(chain) for chain in chains],
                "measured": [
                    {
                        "what": entry.what,
                        "chain": chains.index(entry.shape.chain),
                        "key": [entry.shape.level, entry.shape.alpha, entry.shape.special],
                        "seeded": entry.shape.seeded,
                        "level": entry.level,
                        "count": entry.count,
                        "seconds": entry.seconds,
                        "gauge": entry.gauge,
                        "giants": entry.giants,
                        "operation": None if entry.operation is None else entry.operation.describe(),
                    }
                    for entry in self.measured
                ],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: bytes | str) -> "Calibration":
        """Read the file's text.

        Raises:
            FormatError: the text is malformed.
        """
        with refusing("a calibration", FormatError, code="calibration"):
            return cls._read(read_object(text, FORMAT, LIMITS))

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> "Calibration":
        weights = {int(log_n): _weights(values) for log_n, values in data["weights"].items()}
        gauges = {int(log_n): number(seconds, "a gauge") for log_n, seconds in data["gauges"].items()}
        stated = data.get("speedups", {})
        speedups = {int(threads): number(times, "a speed") for threads, times in stated.items()}
        if any(threads < 2 or not times > 0 for threads, times in speedups.items()):
            raise FormatError(
                "not a calibration: speeds must be positive, and of 2 threads or more", code="calibration"
            )
        if not set(weights) <= set(CHAINS):
            raise FormatError(
                f"not a calibration: rings must be from 2^{min(CHAINS)} to 2^{max(CHAINS)}",
                code="calibration",
            )
        if set(gauges) != set(weights) or not min(gauges.values(), default=0.0) > 0:
            raise FormatError(
                "not a calibration: every ring with weights needs the time of its gauge", code="calibration"
            )
        chains = list(map(read_chain, data["chains"]))
        measured = tuple(_read_measured(entry, chains) for entry in data["measured"])
        if not weights or not measured:
            raise FormatError("not a calibration: it has no weights or no measurements", code="calibration")
        return cls(str(data["machine"]), weights, gauges, measured, speedups)

    @classmethod
    def load(cls, path: Path) -> "Calibration":
        """Read a calibration file of this machine.

        Raises:
            FormatError: it is malformed, or from another machine.
            OSError: it cannot be read.
        """
        data = read_file(path, LIMITS.bytes)
        try:
            result = cls.from_json(data)
        except FormatError as error:
            raise FormatError(f"{path}: {error}; run keywright calibrate", code="calibration") from None
        result.require_this_machine()
        return result

    @staticmethod
    def path() -> Path:
        """Return the path of this machine's calibration: the one in KEYWRIGHT_CALIBRATION, or a path in the
        user's cache that names the machine and the file format."""
        named = os.environ.get(VARIABLE)
        if named:
            return Path(named)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        named_by = sha256(f"{FORMAT}, {describe_machine()}".encode()).hexdigest()
        return cache / "keywright" / f"calibration-{named_by[:16]}.json"

    @classmethod
    def stored(cls) -> "Calibration | None":
        """Return this machine's calibration; None if there is none.

        Raises:
            FormatError: the file is malformed, or from another machine.
        """
        path = cls.path()
        return cls.load(path) if path.is_file() else None


def _weights(values: Mapping[str, Any]) -> Weights:
    names = [field.name for field in fields(Weights)]
    if set(values) != set(names):
        raise FormatError(f"not a calibration: weights must be {', '.join(names)}", code="calibration")
    return Weights(
        **{n: None if values[n] is None and n in OPTIONAL else number(values[n], n) for n in names}  # type: ignore[arg-type]
    )


def _read_measured(entry: Mapping[str, Any], chains: Sequence[Chain]) -> Measurement:
    level, alpha, special = (whole(part, "a number of a key") for part in entry["key"])
    place = whole(entry["chain"], "chain")
    if not 0 <= place < len(chains):
        raise FormatError(
            f"not a calibration: chain {place} is not in [0, {len(chains)})", code="calibration"
        )
    chain = chains[place]
    if (
        not 0 <= level <= chain.max_level
        or not 1 <= special <= len(chain.special_candidates(level))
        or alpha < 1
    ):
        raise FormatError(
            f"not a calibration: a key of level {level} with {special} special primes and "
            f"digits of {alpha}; levels are in [0, {chain.max_level}]",
            code="calibration",
        )
    shape = Shape(chain, level, alpha, special, bool(entry["seeded"]))
    operation = entry["operation"]
    result = Measurement(
        str(entry["what"]),
        shape,
        whole(entry["level"], "level"),
        whole(entry["count"], "count"),
        number(entry["seconds"], "seconds"),
        whole(entry["giants"], "giants"),
        None if operation is None else Operation.read(operation),
        number(entry["gauge"], "gauge"),
    )
    if result.what not in WHATS or not 1 <= result.count < MAX_COUNT or not 0 <= result.giants < MAX_COUNT:
        raise FormatError(
            f"not a calibration: {shown(result.what)}, {result.count} times with {result.giants}",
            code="calibration",
        )
    if not result.seconds > 0 or not result.gauge > 0:
        raise FormatError(
            f"not a calibration: {result.what} in {result.seconds} s, its gauge in {result.gauge} s",
            code="calibration",
        )
    return result


def describe_machine() -> str:
    """Return processor, instruction set and release: times are for this combination."""
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # On systems other than Linux, the name above suffices.
    backend = Parameters.from_bits(10, [30], [30], 20, insecure=True).backend
    return f"{processor}, {backend}, keywright {__version__}"


def stored_model() -> CostModel:
    """Return the model of this machine's calibration, or the shipped one; errors as for `stored`."""
    calibration = Calibration.stored()
    return CostModel() if calibration is None else calibration.model


def fit(measured: Sequence[Measurement], speedups: Mapping[int, float] | None = None) -> Calibration:
    """Fit non-negative weights to this machine's measurements by least squares of relative errors.

    Times are divided by the gauge measured with them and multiplied by its median in the ring.

    Because key switches and transforms combine several kinds of work in similar proportions, many weights fit
    them about equally well, but differ widely for other workloads. The fit therefore also pulls the weights
    loosely towards `TYPICAL_WEIGHTS`.

    Raises:
        FormatError: no key switch is measured in a ring; a key is too low for its use.
    """
    weights: dict[int, Weights] = {}
    gauges: dict[int, float] = {}
    for log_n in sorted({entry.shape.chain.log_n for entry in measured}):
        found_here = [entry for entry in measured if entry.shape.chain.log_n == log_n]
        gauges[log_n] = gauge = median(entry.gauge for entry in found_here)
        entries = [replace(entry, seconds=entry.seconds * gauge / entry.gauge) for entry in found_here]
        timed = [entry for entry in entries if entry.what not in ("key", "load")]
        if not any(entry.what in SWITCHES for entry in timed):
            raise FormatError(
                f"no key switch is measured in the ring of degree 2^{log_n}", code="calibration"
            )
        rows = np.array([measured_work(entry).features for entry in timed])
        result = _near(TYPICAL_WEIGHTS, rows / np.array([[entry.seconds] for entry in timed]))
        outcome = _fit_keys(entries, "key", 3)
        weights[log_n] = Weights(
            transform=result[0],
            wide_transform=result[1],
            product=result[2],
            wide_product=result[3],
            conversion=result[4],
            wide_conversion=result[5],
            stored_product=result[6],
            diagonal=result[7],
            multiplication=result[8],
            visit=result[9],
            embedding=result[10],
            call=result[11],
            key_limb=outcome[0],
            key_row=outcome[1],
            key_prime=outcome[2],
            load_limb=_fit_keys(entries, "load", 1)[0],
        )
    return Calibration(describe_machine(), weights, gauges, tuple(measured), speedups or {})


LOOSENESS = 10.0
"""How much more a weight may deviate from its typical proportion than a measurement from its prediction."""


def _near(proportions: Weights, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return non-negative weights x that make rows x nearest to 1, and x nearest to its typical proportions.

    Args:
        proportions: up to a common factor, which is chosen to fit the rows best.
        rows: for each measurement, its counts divided by its seconds.
    """
    expected = np.array(fitted_weights(proportions)) * ring_factor(proportions, rows)
    held = np.diag(1 / (LOOSENESS * expected))
    return _nonnegative(
        np.vstack([rows, held]), np.append(np.ones(len(rows)), np.full(len(held), 1 / LOOSENESS))
    )


def ring_factor(proportions: Weights, rows: NDArray[np.float64]) -> float:
    """Return the factor of all weights with which predictions fit best; `rows` as for `_near`."""
    alone = rows @ np.array(fitted_weights(proportions))
    return float(alone.sum() / (alone @ alone))


def measured_work(entry: Measurement) -> Work:
    """Return the work that a measurement timed.

    Raises:
        FormatError: its key is below its level, or the operation is missing.
    """
    chain, operation = entry.shape.chain, entry.operation
    use = engine_use(entry.shape, entry.level)
    if use is None:
        raise FormatError(
            f"a key of level {entry.shape.level} is measured at the higher level {entry.level}",
            code="calibration",
        )
    if entry.what in SWITCHES:
        return use.own.plus(use.shared, 1 / entry.count)
    if entry.what == "ring":
        work = ring_switch_work(entry.shape, entry.level, entry.count)
        if work is None:
            raise FormatError(
                f"a switch from a larger ring at level {entry.level} with keys of another form",
                code="calibration",
            )
        return work
    if operation is None or operation.level != entry.level or operation.refusal(chain) is not None:
        raise FormatError(
            f"a {entry.what} at level {entry.level} without its operation there", code="calibration"
        )
    work = operation.work(chain, use.removed, use.removed)
    if entry.what == "transform":
        work = work.plus(use.shared, 1 + entry.giants)
        return work.plus(use.baby, entry.count).plus(use.giant, entry.giants)
    if entry.what == "product":
        return work.plus(use.shared).plus(use.own)
    return work


def _fit_keys(entries: Sequence[Measurement], what: str, parts: int) -> NDArray[np.float64]:
    """Return the weights of the first of `shape_parts`; zeros if nothing is measured."""
    results = [entry for entry in entries if entry.what == what]
    if not results:
        return np.zeros(parts)
    halves = [1 if what == "key" or entry.shape.seeded else 2 for entry in results]
    rows = np.array(
        [
            count * np.array(shape_parts(entry.shape)[:parts]) / entry.seconds
            for count, entry in zip(halves, results, strict=True)
        ]
    )
    return _nonnegative(rows, np.ones(len(rows)))


def _nonnegative(rows: NDArray[np.float64], goal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x >= 0 that makes rows x nearest to a goal, by projected coordinate descent, to a change of
    1e-12.

    Columns without entries get 0.
    """
    gram, right = rows.T @ rows, rows.T @ goal
    x = np.zeros(rows.shape[1])
    for _ in range(100_000):
        before = x.copy()
        for i in range(len(x)):
            if gram[i, i] > 0:
                x[i] = max(0.0, x[i] + (right[i] - gram[i] @ x) / gram[i, i])
        if np.abs(x - before).max() <= 1e-12 * np.abs(x).max():
            break
    return x
