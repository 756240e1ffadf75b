"""Quantisation of vectors to integers, and of integers to scores.

A vector of norm `radius` becomes one of norm `levels`: ``x`` is rounded to ``round(levels x / radius)``.
Rounding moves a vector by at most ``sqrt(dimension) / 2`` levels, so integer vectors have norms of at most
``levels + sqrt(dimension) / 2``, and the plaintext modulus is above every score of such vectors. Scores of
the integers are exact.
"""

import base64
import bisect
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keywright import bfv
from keywright._copies import Stated
from keywright._core import KeySpec, Parameters, SearchIndex
from keywright._reading.records import number, whole
from keywright.errors import ParameterError, SearchError
from keywright.errors.choices import require_choice
from keywright.keys import set_head
from keywright.thin import Parameters as ThinParameters

Metric = Literal["cosine", "dot", "euclidean"]

LOG_N = 13
Q_BITS, P_BITS = [50, 40], [55]
"""Ring of queries and answers: 145 bits of modulus with keys, where 214 have 128 bits of security."""

ENCRYPTED_Q_BITS, ENCRYPTED_LEVEL = [50, 50, 40], 1
"""Primes if vectors are encrypted, 195 bits with keys, and the level of their ciphertexts."""

KINDS = ("encrypted", "thin")
"""Fields of a `Quantisation` that are stated if they are true."""

THIN_Q_BITS, THIN_P_BITS = [60], [61]
"""The prime of queries if thin clients make some, and that of their keys: 121 bits."""

DEFAULT_LEVELS = 320
MAX_LEVELS = 2048
"""Bound on levels of any index; `largest_levels` has that of one."""

TAIL, PRODUCT_TAIL = 9.0, 21.0
"""Standard deviations in the engine's bounds on sums and on products with the secret, of its noise.rs."""

SIGMA = 3.19
"""Standard deviation of errors, of the engine's sampling."""

LARGEST_ERROR = 0.4999
"""Below the half unit at which rounding a score is wrong, by more than what `largest_levels` leaves out."""

MAX_DIMENSION = 1 << LOG_N
SMALLEST = float(np.finfo(np.float64).tiny)
EXACT = 1 << 53
"""Largest integer up to which double precision has all integers."""

SAMPLED, LEAST_SAMPLED, PAIRS = 1024, 64, 1 << 25
"""Most and fewest vectors whose distances from their nearest neighbours are compared with the rounding, and
the most distances that are computed for it, unless the fewest have more."""

COARSE = 0.1
"""Share of vectors, lost among their neighbours, from which on `Index.of` warns."""

CHUNK = 8192
"""Vectors that are quantised at once."""


@dataclass(frozen=True, eq=False)
class Quantisation(Stated):
    """How an index and its clients round vectors. It is public.

    Args:
        dimension: components of a vector, at most 8192.
        metric: "cosine"; "dot", the inner product; or "euclidean", the distance.
        levels: the norm of integer vectors. More levels are more precise, and answers longer. The most for
            which answers can be decrypted depend on the metric and the dimension.
        radius: largest norm of a stored vector; for distances, the largest distance from `centre`, also of
            queries. Ignored for cosines.
        centre: the point that is subtracted from all vectors before rounding, for "euclidean" only; by
            default 0.
        encrypted: for vectors that their owner encrypts, in an `EncryptedIndex`.
        thin: for an index in the clear that thin clients ask, too. Queries and keys are shorter than for
            others, and answers take longer.

    Raises:
        ParameterError: an argument is out of range, or two exclude each other.
        SearchError: the centre has another length, or is not finite.
    """

    dimension: int
    metric: Metric = "cosine"
    levels: int = DEFAULT_LEVELS
    radius: float = 1.0
    centre: NDArray[np.float64] | None = None
    encrypted: bool = False
    thin: bool = False

    def __post_init__(self) -> None:
        require_choice("metric", self.metric, get_args(Metric))
        if self.encrypted and self.thin:
            raise ParameterError(
                "products with encrypted vectors need more than the one prime of thin clients; leave out "
                "thin=True or encrypted=True",
                what="thin",
                value=True,
            )
        _require("dimension", self.dimension, 2 if self.thin else 1, MAX_DIMENSION)
        largest = largest_levels(self.dimension, self.metric, encrypted=self.encrypted, thin=self.thin)
        given = f", the most for metric={self.metric!r} and dimension={self.dimension}"
        _require("levels", self.levels, 1, largest, given)
        # Arithmetic of numpy's own integers wraps.
        for name in ("dimension", "levels"):
            object.__setattr__(self, name, int(getattr(self, name)))
        if not 0 < self.radius < math.inf:
            raise ParameterError(
                f"radius={self.radius} is not a positive number; pass the largest norm of a vector",
                what="radius",
                value=self.radius,
            )
        if self.metric != "cosine" and not (self._unit >= SMALLEST and 4 * self.radius < math.inf):
            raise ParameterError(
                f"radius={self.radius:g}, the largest norm or distance of vectors, has scores that are no "
                "numbers of double precision; scale all vectors and queries by one factor",
                what="radius",
                value=self.radius,
            )
        if self.centre is not None and self.metric != "euclidean":
            raise ParameterError(
                f"centre is for metric='euclidean', not {self.metric!r}; leave it out",
                what="centre",
                value="given",
            )
        if self.centre is not None:
            centre = as_vectors(self.centre).astype(np.float64)
            self._require_shape(centre, (self.dimension,))
            _finite_norms(centre[None], None, "the centre")
            centre.flags.writeable = False
            object.__setattr__(self, "centre", centre)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantisation):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[object, ...]:
        centre = None if self.centre is None else self.centre.tobytes()
        return self.dimension, self.metric, self.levels, self.radius, centre, self.encrypted, self.thin

    def to_json(self) -> dict[str, object]:
        """Return the fields of a directory or an index's folder."""
        return {
            "dimension": int(self.dimension),
            "metric": self.metric,
            "levels": int(self.levels),
            "radius": float(self.radius),
            "centre": None if self.centre is None else self.centre.tolist(),
            **{name: True for name in KINDS if getattr(self, name)},
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Quantisation":
        """Read the fields of `to_json`.

        Raises:
            ValueError: a field is not a number where one is expected.
            KeyError: a field is missing.
            ParameterError, SearchError: as for the class.
        """
        centre = fields["centre"]
        if centre is not None:
            centre = np.array([number(value, "a number of the centre") for value in centre], dtype=np.float64)
        dimension, levels = whole(fields["dimension"], "dimension"), whole(fields["levels"], "levels")
        kinds = {name: fields.get(name, False) for name in KINDS}
        for name, value in kinds.items():
            if not isinstance(value, bool):
                raise ValueError(f"{name} is {value!r}, not true or false")
        radius = number(fields["radius"], "radius")
        return cls(dimension, fields["metric"], levels, radius, centre, **kinds)

    @property
    def max_norm2(self) -> int:
        """Largest squared norm of an integer vector."""
        return _max_norm2(self.levels, self.dimension)

    @cached_property
    def parameters(self) -> bfv.Parameters:
        """The ring and the plaintext modulus of queries and answers."""
        q_bits, p_bits = (ENCRYPTED_Q_BITS if self.encrypted else Q_BITS), P_BITS
        if self.thin:
            q_bits, p_bits = THIN_Q_BITS, THIN_P_BITS
        return bfv.Parameters.from_bits(LOG_N, q_bits, p_bits, _modulus(self.metric, self.max_norm2))

    @cached_property
    def client_parameters(self) -> ThinParameters:
        """What a thin client needs: its numbers are the integers of `query`, and the scores.

        Raises:
            ParameterError: the quantisation is not one for thin clients.
        """
        if not self.thin:
            raise ParameterError(
                "thin clients compute with one prime, and queries of this index have more; make an index of "
                "the same vectors with thin=True",
                what="thin",
                value=False,
            )
        largest = (2 if self.metric == "euclidean" else 1) * self.levels
        engine = SearchIndex(self.parameters, self.dimension, self.max_norm2)
        return engine.client_parameters(largest)

    @cached_property
    def key_specs(self) -> list[KeySpec]:
        """The keys that a server needs for the queries of a client."""
        parameters = self.parameters
        elements = SearchIndex.expansion_elements(parameters, self.dimension)
        specs = [KeySpec.galois(parameters, element, parameters.max_level, alpha=1) for element in elements]
        if self.encrypted:
            specs.append(KeySpec.relinearization(parameters, ENCRYPTED_LEVEL, alpha=1))
        return specs

    @cached_property
    def thin_fields(self) -> dict[str, str]:
        """What thin clients in other languages read of a directory, in base64: their parameters, those of the
        keys that they make, and the head of the set of keys; nothing if the index has no thin clients."""
        if not self.thin:
            return {}
        q, p = ([prime.bit_length() for prime in primes] for primes in (self.parameters.q, self.parameters.p))
        stated = {
            "client": self.client_parameters.to_bytes(),
            "parameters": Parameters.from_bits(LOG_N, q, p, 1.0).to_bytes(),
            "key_set": set_head(self.key_specs, self.parameters),
        }
        return {name: base64.b64encode(data).decode() for name, data in stated.items()}

    @property
    def deviation(self) -> float:
        """Standard deviation of the error that rounding causes: of a cosine, of a distance, or of an inner
        product with a query of norm 1."""
        return self._unit * math.sqrt(1 / 6)

    @property
    def error(self) -> float:
        """Largest error of such a score by rounding."""
        root = math.sqrt(self.dimension)
        if self.metric == "euclidean":
            return self._unit * root
        return self._unit * (root + self.dimension / (4 * self.levels))

    @property
    def _unit(self) -> float:
        return (1.0 if self.metric == "cosine" else self.radius) / self.levels

    def vectors(self, vectors: ArrayLike) -> Iterator[tuple[NDArray[np.int16], NDArray[np.int64]]]:
        """Quantise stored vectors, a row each, in chunks.

        Yields:
            The integers, and what is added to the inner product of each: nothing, or minus its squared norm.

        Raises:
            SearchError: a vector has another length, a number that is not finite, norm 0 for cosines, or a
                norm above the radius.
        """
        array = as_vectors(vectors)
        self._require_shape(array, (len(array) if array.ndim else 0, self.dimension))
        # All are checked before the first is returned.
        for first in range(0, len(array), CHUNK):
            self._scaled(array[first : first + CHUNK], first)
        for first in range(0, len(array), CHUNK):
            rows = np.rint(self._scaled(array[first : first + CHUNK], first)).astype(np.int16, order="C")
            yield rows, self.addends(rows)

    def coarseness(self, vectors: ArrayLike) -> float:
        """Return the share of vectors that rounding loses among their neighbours: it changes the squared
        distance from the nearest other vector by that distance or more. Of many vectors, it is the share of a
        sample. Equal vectors, and for cosines those of one direction, count as one."""
        array, rng = as_vectors(vectors), np.random.default_rng(0)
        count = int(np.clip(PAIRS // max(1, len(array)), LEAST_SAMPLED, SAMPLED))

        def distinct(rows: NDArray[Any], first: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            scaled = np.ascontiguousarray(self._scaled(rows, first))
            if self.metric == "cosine":
                scaled = scaled.round(9)  # Directions of multiples differ in their last bits.
            scaled += 0.0
            hashes = np.fromiter((hash(row.tobytes()) for row in scaled), np.int64, len(scaled))
            hashes, places = np.unique(hashes, return_index=True)
            return scaled[places], hashes

        rows, own = distinct(array[rng.choice(len(array), min(count, len(array)), replace=False)], 0)
        least, nearest = np.full(len(rows), np.inf), np.zeros_like(rows)
        for first in range(0, len(array), CHUNK):
            others, hashes = distinct(array[first : first + CHUNK], first)
            distances = np.square(others).sum(axis=1) - 2 * rows @ others.T
            distances[own[:, None] == hashes] = np.inf
            place = distances.argmin(axis=1)
            reached = distances[np.arange(len(rows)), place]
            closer = reached < least
            least[closer], nearest[closer] = reached[closer], others[place[closer]]
        if not np.isfinite(least).any():
            return 0.0  # All are equal.
        exact, rounded = (
            np.square(a - b).sum(axis=1) for a, b in ((rows, nearest), map(np.rint, (rows, nearest)))
        )
        return float(np.mean(np.abs(rounded - exact) >= exact))

    def addends(self, rows: NDArray[np.int16]) -> NDArray[np.int64]:
        """Return what is added to the inner products of integer vectors, one for each, or nothing."""
        if self.metric != "euclidean":
            return np.zeros(0, dtype=np.int64)
        addends: NDArray[np.int64] = -np.square(rows.astype(np.int64)).sum(axis=1)
        return addends

    def query(self, vector: ArrayLike) -> tuple[NDArray[np.int64], float]:
        """Quantise a query.

        Returns:
            The integers to encrypt, and what `scores` needs: the norm of the query, or for distances its
            squared norm in levels.

        Raises:
            SearchError: as for `vectors`; norm 0 also for inner products.
        """
        array = as_vectors(vector)
        self._require_shape(array, (self.dimension,))
        array = array.astype(np.float64)
        if self.metric == "euclidean":
            rows = np.rint(self._scaled(array[None], None)[0]).astype(np.int64)
            return 2 * rows, float(np.square(rows).sum())
        norm = float(_finite_norms(array[None], None)[0])
        if norm == 0:
            _refuse_row(0, None, "has norm 0, so it has no direction; pass another one", "norm", 0.0)
        largest = self._unit * norm * self.max_norm2
        if self.metric == "dot" and not (self._unit * norm / self.levels >= SMALLEST and largest < math.inf):
            _refuse_row(
                0,
                None,
                f"has the norm {norm:g}, whose inner products with vectors of norm {self.radius:g} are no "
                "numbers of double precision; scale both",
                "norm",
                norm,
            )
        return np.rint(directions_of(array[None])[0] * self.levels).astype(np.int64), norm

    def scores(self, decrypted: NDArray[np.int64], factor: float) -> NDArray[np.float64]:
        """Return cosines, inner products or distances of decrypted integers, and the factor of `query`."""
        if self.metric == "euclidean":
            squares = (int(factor) - decrypted) % self.parameters.plaintext_modulus
            return np.sqrt(squares.astype(np.float64)) * self._unit
        scale = 1.0 if self.metric == "cosine" else factor
        scores = decrypted.astype(np.float64) * (self._unit * scale / self.levels)
        return np.clip(scores, -1.0, 1.0) if self.metric == "cosine" else scores

    def _scaled(self, rows: NDArray[Any], first: int | None) -> NDArray[np.float64]:
        """Return rows of norm at most `levels`. They are a query if `first` is None."""
        rows = rows.astype(np.float64)
        if self.centre is not None:
            with np.errstate(over="ignore"):
                rows = rows - self.centre
        norms = _finite_norms(rows, first)
        if self.metric == "cosine":
            if not norms.all():
                _refuse_row(
                    int(np.argmin(norms)),
                    first,
                    "has norm 0, so it has no direction; leave it out",
                    "norm",
                    0.0,
                )
            return directions_of(rows) * self.levels
        row = int(np.argmax(norms)) if len(norms) else 0
        if len(norms) and norms[row] > self.radius:
            distance = "distance from the centre" if self.metric == "euclidean" else "norm"
            _refuse_row(
                row,
                first,
                f"has the {distance} {norms[row]:g}, above radius={self.radius:g} of the index; make an index"
                " with a larger radius",
                "radius",
                float(norms[row]),
                self.radius,
            )
        return rows * (self.levels / self.radius)

    def _require_shape(self, array: NDArray[Any], shape: tuple[int, ...]) -> None:
        if array.shape != shape:
            expected = "(vectors, dimension)" if len(shape) == 2 else "(dimension,)"
            raise SearchError(
                f"the array has the shape {array.shape}, not {expected} with dimension={self.dimension}; pass"
                " vectors of this length",
                code="shape",
                value=array.shape[-1] if array.ndim else 0,
                bound=self.dimension,
            )


def largest_levels(dimension: int, metric: Metric, *, encrypted: bool = False, thin: bool = False) -> int:
    """Return the most levels whose answers can be decrypted.

    The server multiplies ciphertexts, whose noise comes from a division by a prime, by vectors in the clear,
    so the noise of a sum grows with their norm: `docs/explanation/search.md` derives it. With one prime, the
    noise comes from the expansion. For products with encrypted vectors there is another prime, with room for
    all levels.
    """
    if encrypted:
        return MAX_LEVELS
    n = 1 << LOG_N
    rounding = math.sqrt((1 + 2 * n / 3) / 12)
    (bits, *_), factor = (THIN_Q_BITS, _expanded(dimension, rounding)) if thin else (Q_BITS, rounding)
    widest = bits - 2 - LOG_N

    def error(levels: int) -> float:
        norm2 = _max_norm2(levels, dimension)
        noise = PRODUCT_TAIL * factor * math.sqrt(n * norm2) / 2.0**bits
        return _modulus(metric, norm2) * (noise + (TAIL * rounding + 0.5) / 2.0**widest)

    return bisect.bisect_left(range(1, MAX_LEVELS + 1), LARGEST_ERROR, key=error)


def _expanded(dimension: int, rounding: float) -> float:
    """Return the deviation of the error of a component that the server has expanded with one prime. Each
    round adds a ciphertext and its image, which has the error of a key switch, too."""
    switch = SIGMA * math.sqrt((1 << LOG_N) / 12) * 2.0 ** (THIN_Q_BITS[0] - THIN_P_BITS[0])
    # The error of an encryption, of the rounding of its message and of the scale of thin clients.
    error = math.sqrt(SIGMA**2 + 1 / 12 + 1 / 4)
    for _ in range((dimension - 1).bit_length()):
        error += math.hypot(error, switch, rounding)
    return error


def _max_norm2(levels: int, dimension: int) -> int:
    return math.floor((levels + math.sqrt(dimension) / 2) ** 2)


def _modulus(metric: Metric, max_norm2: int) -> int:
    """Return the plaintext modulus for vectors of at most this squared norm."""
    # Inner products have a sign; squared distances are at most (2 R)^2.
    return (4 if metric == "euclidean" else 2) * max_norm2 + 1


def _refuse_row(
    row: int,
    first: int | None,
    problem: str,
    reason: str,
    value: float,
    bound: float | None = None,
    *,
    single: str = "the query",
) -> NoReturn:
    place = None if first is None else first + row
    name = single if place is None else f"vector {place}"
    raise SearchError(f"{name} {problem}", code=reason, row=place, value=value, bound=bound)


def _finite_norms(
    rows: NDArray[np.float64], first: int | None, single: str = "the query"
) -> NDArray[np.float64]:
    """Return the norm of each row; the only row has the name `single` if `first` is None."""
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        value = float(rows[row][~np.isfinite(rows[row])][0])
        problem = f"has the number {value}, which is not finite; impute it"
        _refuse_row(row, first, problem, "number", value, single=single)
    return norms_of(rows)


def norms_of(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the norm of each row of finite numbers, of any size: squares would be out of range. A norm may
    be infinite."""
    scaled, scale = _scaled_by_largest(rows)
    with np.errstate(over="ignore"):
        norms: NDArray[np.float64] = np.linalg.norm(scaled, axis=1) * scale[:, 0]
    return norms


def directions_of(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows of norm 1 in the directions of rows whose norms are not 0, and may be out of range."""
    scaled, _ = _scaled_by_largest(rows)
    directions: NDArray[np.float64] = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return directions


def _scaled_by_largest(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each row divided by its largest absolute value, and that value; rows of zeros as they are."""
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0)
    return rows / scale, scale


def as_vectors(values: ArrayLike) -> NDArray[Any]:
    """Return vectors of a caller as an array of numbers.

    Raises:
        SearchError: they are no real numbers, or masked, or a table with names.
    """
    if np.ma.is_masked(values):
        raise SearchError(
            "the array has masked values, which have no number; fill them: filled(value)", code="number"
        )
    keys = getattr(values, "keys", None)
    if any(isinstance(name, str) for name in getattr(values, "columns", keys() if callable(keys) else ())):
        raise SearchError(
            "the array is a table with names, and an index has none; pass to_numpy() in the index's order",
            code="number",
        )
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise SearchError(
            f"the array has the type {array.dtype}, not one of real numbers; convert it with astype(float)",
            code="number",
        )
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        largest = max(int(array.max()), -int(array.min()))
        if largest > EXACT:
            raise SearchError(
                f"the array has the integer {largest} or its negative, and double precision is exact up to "
                "2^53; subtract an offset, or scale all vectors and queries",
                code="number",
                value=float(largest),
                bound=float(EXACT),
            )
    return array


def is_whole(value: object, minimum: int, maximum: int) -> bool:
    """Whether a value is an integer in a range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return minimum <= int(value) <= maximum


def _require(what: str, value: object, minimum: int, maximum: int, given: str = "") -> None:
    """Refuse a value that is no integer of a range; `given` says what the range depends on."""
    if not is_whole(value, minimum, maximum):
        raise ParameterError(
            f"{what}={value!r} is not an integer in {minimum}..{maximum}{given}",
            what=what,
            value=value,
            minimum=minimum,
            maximum=maximum,
        )
