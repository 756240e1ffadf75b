"""The first steps of a model, such as imputing, encoding and look-ups, which the client computes in the clear
before it encrypts."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from keywright._copies import Stated
from keywright._reading.records import refusing, whole
from keywright._units import quantity
from keywright.errors.engine import EncodeError, FormatError
from keywright.program.arrays import Shape, Vector

from .last_steps import ALLOWED
from .samples import COLUMN_KINDS, KINDS, MAX_TEXT, Column, SampleInput, read_arrays, read_table
from .small_model import MAX_RANK, MAX_VALUES, SmallModel

MAX_BYTES = 48 << 20
"""Maximum bytes of the steps with their tables."""

MAX_COLUMNS = 1 << 16
MAX_NAME = 1000
"""Characters of the name of a column."""

MAX_CATEGORIES = 1 << 20
MAX_FEATURES = 1 << 22

CHUNK = 64
"""Samples that run together."""

NUMBERS, TEXT = "numbers", "text"
"""Names of the inputs that get the columns of a table, by kind."""

UNCHANGED = frozenset(["Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"])
"""Operators that keep ids as they are."""

BEFORE = ALLOWED | frozenset([
    "CumSum", "FeatureVectorizer", "GatherElements", "Imputer", "IsInf", "LayerNormalization", "Mod",
    "OneHot", "OneHotEncoder", "Scaler", "StringNormalizer",
])  # fmt: skip
"""Operators of first steps: those of last steps, and more."""


@dataclass(frozen=True, eq=False)
class FirstSteps(Stated):
    """The computation of features from a sample, which the client runs before it encrypts them.

    Attributes:
        data: an ONNX model for a batch of 1, whose nodes are in `BEFORE`.
        inputs: of the model, in order. For a table, of one row: its columns of numbers and its columns of
            text.
        shape: of the features of one sample, the elements of all outputs one behind the other.
        together: whether samples may be given to the model together, as a batch.
        columns: of a table, in the order of its columns; empty if samples are arrays.

    Raises:
        FormatError: the model has another operator, or exceeds the limits.
    """

    data: bytes
    inputs: tuple[SampleInput, ...]
    shape: Shape
    together: bool = False
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if {each.name for each in self.inputs} != {value.name for value in self._steps.model.graph.input}:
            raise FormatError("the first steps have other inputs than their model", code="program")
        if not self.inputs:
            raise FormatError("the first steps have no inputs", code="program")
        if not 0 < math.prod(self.shape) <= MAX_FEATURES:
            raise FormatError(f"the first steps give features of shape {self.shape}", code="program")
        sizes = {each.name: math.prod(each.shape) for each in self.inputs}
        kinds = {NUMBERS: "numbers", TEXT: "text"}
        for name, kind in kinds.items():
            count = sum(column.kind == kind for column in self.columns)
            if self.columns and sizes.get(name, 0) != count:
                raise FormatError(
                    f"the first steps take {sizes.get(name, 0)} columns of {kind}", code="program"
                )

    @cached_property
    def _steps(self) -> SmallModel:
        return SmallModel(self.data, "the client's first steps", BEFORE, MAX_BYTES)

    @cached_property
    def _table_rows(self) -> dict[str, int]:
        """Rows of the smallest table in which the ids of an input are looked up, by the input's name."""
        table, source = dict[str, int](), {each.name: each.name for each in self.inputs}
        for node in self._steps.model.graph.node:
            if node.op_type in UNCHANGED and node.input[0] in source:
                source[node.output[0]] = source[node.input[0]]
            axis = next((entry.i for entry in node.attribute if entry.name == "axis"), 0)
            if node.op_type == "Gather" and axis == 0 and (name := source.get(node.input[1])):
                rows = self._steps.constants.get(node.input[0])
                if rows is not None and rows.ndim:
                    table[name] = min(len(rows), table.get(name, len(rows)))
        return table

    @property
    def operators(self) -> tuple[str, ...]:
        """ONNX operator types, in order."""
        return self._steps.operators

    def features(self, samples: Any) -> tuple[Vector, bool]:
        """Return the features of samples, (count, *shape), and whether a single sample was given.

        Args:
            samples: of a table: a data frame or a row of one, a mapping of columns by name, an array (count,
                columns), or one row. Otherwise an array, or a mapping of arrays for several inputs; (count,
                *shape), or one sample.

        Raises:
            EncodeError: samples of another shape or kind, unknown categories or ids, or features that
                are not finite.
        """
        if not self.columns:
            values, single = read_arrays(samples, self.inputs)
            for name, count in self._table_rows.items():
                _require_ids(name, values[name], count)
            for name, array in values.items():  # steps such as clipping make numbers of infinities
                if array.dtype.kind == "f" and "IsInf" not in self.operators and np.isinf(array).any():
                    raise EncodeError(
                        f"input {name!r} has values that are not finite; remove them", code="samples"
                    )
        else:
            table, single = read_table(samples, self.columns)
            values = {
                name: np.stack([table[each.name] for each in self.columns if each.kind == kind], axis=1)
                for name, kind in ((NUMBERS, "numbers"), (TEXT, "text"))
                if any(each.kind == kind for each in self.columns)
            }
        count = len(next(iter(values.values())))
        step = CHUNK if self.together else 1
        parts = [
            self._run({name: array[first : first + step] for name, array in values.items()})
            for first in range(0, count, step)
        ]
        return np.concatenate(parts).reshape(count, *self.shape), single

    def _run(self, values: dict[str, NDArray[Any]]) -> Vector:
        """Return the features of a few samples, (count, features)."""
        count = len(next(iter(values.values())))
        kinds = {value.name: _dtype(value) for value in self._steps.model.graph.input}
        given = {name: array.astype(kinds[name]) for name, array in values.items()}
        try:
            outcome = self._steps.run(given)
            rows = [np.asarray(outcome[name], np.float64).reshape(count, -1) for name in self._steps.outputs]
            features = np.concatenate(rows, axis=1)
        except FormatError as error:
            if count > 1 and "too large" in str(error):
                alone = [{n: a[i : i + 1] for n, a in values.items()} for i in range(count)]
                return np.concatenate([self._run(each) for each in alone])
            raise EncodeError(
                f"the client's first steps do not take these samples: {error}", code="samples"
            ) from error
        except (TypeError, ValueError, KeyError) as error:
            raise EncodeError(
                f"the client's first steps do not take these samples: {error}", code="samples"
            ) from error
        if features.shape[1] != math.prod(self.shape):
            raise EncodeError(
                f"the client's first steps give {features.shape[1]} features for a sample, expected "
                f"{math.prod(self.shape)}",
                code="samples",
            )
        return np.asarray(features, np.float64)

    def __str__(self) -> str:
        """What the client gets, in words."""
        tables = [array for array in self._steps.constants.values() if array.dtype.kind == "f"]
        numbers = self._steps.numbers()
        largest = max((array.shape for array in tables), key=math.prod, default=())
        table = f", the largest a table of {largest[0]} x {largest[1]}" if len(largest) == 2 else ""
        kinds = ", ".join(sorted(set(self.operators) - {"Concat", "Identity", "Reshape"}))
        known = sum(len(column.categories or ()) for column in self.columns)
        held = [f"{numbers}{table}"] if numbers else []
        held += [quantity(known, "category", "categories")] if known else []
        holds = f" that hold {', '.join(held)}" if held else ""
        if not kinds:
            return f"first steps that join {quantity(len(self.inputs), 'input')}"
        return f"first steps ({kinds}){holds}"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that `read` accepts."""
        return {
            "inputs": [[each.name, list(each.shape), each.kind] for each in self.inputs],
            "shape": list(self.shape),
            "together": self.together,
            "columns": [
                [
                    each.name,
                    each.kind,
                    None if each.categories is None else list(map(_stored, each.categories)),
                ]
                for each in self.columns
            ],
            "model": base64.b64encode(self.data).decode(),
        }

    @staticmethod
    def read(entry: object) -> "FirstSteps":
        """Read the steps from a JSON object.

        Raises:
            FormatError: the object is malformed.
        """
        with refusing("first steps of a client", FormatError, code="program"):
            if not isinstance(entry, dict):
                raise TypeError("no object")
            data = base64.b64decode(entry["model"], validate=True)
            inputs = [
                SampleInput(_name(name), _shape(shape), _kind(kind))
                for name, shape, kind in _listed(entry["inputs"], MAX_COLUMNS)
            ]
            columns = [
                Column(_name(name), _kind(kind, COLUMN_KINDS), _categories(known))
                for name, kind, known in _listed(entry["columns"], MAX_COLUMNS)
            ]
            if not isinstance(entry["together"], bool):
                raise TypeError("together is not true or false")
            shape = _shape(entry["shape"])
            if len({each.name for each in columns}) != len(columns):
                raise ValueError("two columns have one name")
            return FirstSteps(data, tuple(inputs), shape, entry["together"], tuple(columns))


def _dtype(value: onnx.ValueInfoProto) -> np.dtype[Any]:
    kind = value.type.tensor_type.elem_type
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind or onnx.TensorProto.FLOAT))


def _listed(value: object, most: int) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise TypeError(f"no list of at most {most} entries")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME:
        raise ValueError(f"a name is not a text of 1 to {MAX_NAME} characters")
    return value


def _kind(value: object, known: Sequence[str] = KINDS) -> Any:
    if value not in known:
        raise ValueError(f"values are of kind {value!r:.40}")
    return value


def _shape(value: object) -> Shape:
    sizes = tuple(whole(size, "a size") for size in _listed(value, MAX_RANK))
    if min(sizes, default=1) < 1 or math.prod(sizes) > MAX_VALUES:
        raise ValueError(f"a shape is {sizes}")
    return sizes


def _require_ids(name: str, ids: NDArray[Any], count: int) -> None:
    """Refuse ids outside a table; ONNX would read negative ones from its end.

    Raises:
        EncodeError: names the first such id.
    """
    outside = ids[(ids < 0) | (ids >= count)]
    if outside.size:
        raise EncodeError(
            f"input {name!r} holds the id {outside.flat[0]}, and the ids of its table are 0 to {count - 1}; "
            "map others to one of these, as tokenizers do with unknown words",
            code="samples",
        )


def _stored(category: float | str) -> float | str | None:
    return None if category != category else category


def _categories(value: object) -> tuple[float | str, ...] | None:
    if value is None:
        return None
    known: list[float | str] = []
    for each in _listed(value, MAX_CATEGORIES):
        if each is None:
            known.append(math.nan)
        elif (isinstance(each, str) and len(each) <= MAX_TEXT) or (
            isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each)
        ):
            known.append(each)
        else:
            raise ValueError(f"a category is {each!r:.40}")
    return tuple(known)
