"""Samples in the form of applications, before the first steps: arrays, ids, texts, tables, several inputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from keywright._copies import Stated
from keywright.errors.engine import EncodeError
from keywright.program.arrays import Shape, as_array, require_arrays, table_names

Kind = Literal["numbers", "integers", "text"]
KINDS = get_args(Kind)

ColumnKind = Literal["numbers", "integers", "text", "unread"]
COLUMN_KINDS = get_args(ColumnKind)
"""Of a column, also one that nothing reads: tables need not have it."""

MISSING = "\0"
"""Stands for a missing text, which is None or NaN outside."""

OF_ONE_LENGTH = (
    "; cut longer samples, and pad shorter ones as the model's mask tells, or compile for this shape"
)

SHOWN = 8
"""Names of columns in a message."""

MAX_TEXT = 1 << 16
"""Maximum number of characters of a text."""


@dataclass(frozen=True)
class SampleInput:
    """An input of the first steps.

    Attributes:
        name: of the model's input.
        shape: of one sample.
        kind: of its values.
    """

    name: str
    shape: Shape
    kind: Kind


@dataclass(frozen=True)
class Column(Stated):
    """A column of a table.

    Attributes:
        name: of the column.
        kind: "numbers" or "text"; "unread" if nothing reads the column.
        categories: the values that it may have; None for any.
    """

    name: str
    kind: ColumnKind
    categories: tuple[float | str, ...] | None = None

    @cached_property
    def known(self) -> frozenset[float | str]:
        """The categories, for look-ups."""
        return frozenset(self.categories or ())

    def require_known(self, values: NDArray[Any]) -> None:
        """Refuse values that are no category of the column.

        Raises:
            EncodeError: names the column and the first such value.
        """
        if self.categories is None:
            return
        takes_nan = any(each != each for each in self.categories)
        for value in values.tolist():
            if value not in self.known and not (value != value and takes_nan):
                shown = "a missing value" if value == MISSING or value != value else repr(value)[:60]
                raise EncodeError(
                    f"column {self.name!r} has {shown}, which is not one of the {len(self.categories)} "
                    "categories that the model knows; map it to one of them, or fit the model with an "
                    "encoder that takes others (handle_unknown=)",
                    code="samples",
                )


def read_table(samples: Any, columns: Sequence[Column]) -> tuple[dict[str, NDArray[Any]], bool]:
    """Return the columns of a table by name, each (count,), and whether it is a single row.

    Args:
        samples: a data frame, a mapping of columns by name, an array (count, columns), or one row. Of columns
            that nothing reads, only arrays have a place, whatever is in it.

    Raises:
        EncodeError: columns are missing, have different lengths or values of another kind.
    """
    names = [column.name for column in columns]
    read = [column for column in columns if column.kind != "unread"]
    if table_names(samples) is not None:
        given = list(by_name(samples, [column.name for column in read]).values())
        single = all(each.ndim == 0 for each in given)
        given = [each.reshape(1) if single else each for each in given]
    else:
        require_arrays(samples)
        table = np.asarray(samples, None if isinstance(samples, np.ndarray) else object)
        single = table.ndim == 1
        table = table[None] if single else table
        if table.ndim != 2 or table.shape[1] != len(names) or len(table) == 0:
            raise EncodeError(
                f"samples are a table of the columns {', '.join(map(repr, names[:SHOWN]))}, (count, "
                f"{len(names)}); got an array of shape {table.shape}",
                code="samples",
            )
        given = [each for each, column in zip(table.T, columns, strict=True) if column.kind != "unread"]
    if any(each.ndim != 1 or len(each) != len(given[0]) for each in given):
        raise EncodeError(
            "columns of a table have one length, which is the number of samples", code="samples"
        )
    if len(given[0]) == 0:
        raise EncodeError("the table has no rows; give at least one sample", code="samples")
    result = {}
    for column, each in zip(read, given, strict=True):
        result[column.name] = converted(each, column.kind, f"column {column.name!r}")
        column.require_known(result[column.name])
        if column.kind == "numbers" and np.isinf(result[column.name]).any():
            raise EncodeError(
                f"column {column.name!r} has values that are not finite; remove them", code="samples"
            )
    return result, single


def by_name(samples: Any, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of a table in the order of names, whatever its own order; others are left out.

    Raises:
        EncodeError: a column is missing, holds no numbers or texts, or a name is of two columns.
    """
    present = table_names(samples) or []
    spelled = dict(zip(map(str, present), present, strict=True))
    lacking = [name for name in names if name not in spelled]
    twice = [name for name in names if sum(str(each) == name for each in present) > 1] if not lacking else []
    if lacking or twice:
        wrong, taken = (", ".join(map(repr, each[:SHOWN])) for each in (lacking or twice, names))
        text = "lack the columns" if lacking else "have several columns of the name"
        raise EncodeError(
            f"the samples {text} {wrong}; the model takes {taken}, by these names", code="samples"
        )
    return {name: as_array(samples[spelled[name]], f"the values of column {name!r}") for name in names}


def in_order(samples: Any, names: Sequence[str]) -> Any:
    """Return the numbers of a table in the order of names, (count, names), or (names,) for a single row.
    Arrays, whose columns have no names, are returned as they are, and so is everything without names.

    Raises:
        EncodeError: columns are missing, have different lengths or other values than numbers.
    """
    if not names or table_names(samples) is None:
        return samples
    table, single = read_table(samples, [Column(name, "numbers") for name in names])
    rows = np.stack([table[name] for name in names], axis=1)
    return rows[0] if single else rows


def read_arrays(samples: Any, inputs: Sequence[SampleInput]) -> tuple[dict[str, NDArray[Any]], bool]:
    """Return the inputs by name, each (count, *shape), and whether they are a single sample.

    Args:
        samples: an array for the only input, or a mapping of arrays by name; (count, *shape), or a single
            sample, of shape ``shape``.

    Raises:
        EncodeError: an input is missing, or has another shape or values of another kind.
    """
    names = [each.name for each in inputs]
    if isinstance(samples, Mapping):
        if sorted(samples) != sorted(names):
            raise EncodeError(
                f"the model takes the inputs {', '.join(map(repr, names[:SHOWN]))}, got "
                f"{', '.join(map(repr, list(samples)[:SHOWN]))}",
                code="samples",
            )
    elif len(inputs) == 1:
        samples = {names[0]: samples}
    else:
        raise EncodeError(
            "the model takes several inputs; give a mapping with the arrays of "
            f"{', '.join(map(repr, names))}",
            code="samples",
        )
    result = {e.name: converted(samples[e.name], e.kind, f"input {e.name!r}") for e in inputs}
    single = all(result[each.name].shape == each.shape for each in inputs)
    if single:
        result = {name: array[None] for name, array in result.items()}
    counts = {len(array) if array.ndim else 0 for array in result.values()}
    for each in inputs:
        shape = result[each.name].shape
        if shape[1:] != each.shape or len(counts) != 1 or counts == {0}:
            raise EncodeError(
                f"input {each.name!r} has shape (count, {', '.join(map(str, each.shape))}), with one count "
                f"for all inputs; got {shape}" + (OF_ONE_LENGTH if len(shape) > 1 else ""),
                code="samples",
            )
    return result, single


def converted(values: Any, kind: ColumnKind, what: str) -> NDArray[Any]:
    """Return values as float64 with NaN for missing ones, as int64, or as objects with `MISSING`.

    Raises:
        EncodeError: they are of another kind.
    """
    array = as_array(values, f"the values of {what}")
    if kind == "text":
        flat = [_text(each, what) for each in array.astype(object).ravel().tolist()]
        texts = np.empty(len(flat), object)
        texts[:] = flat
        return texts.reshape(array.shape)
    try:
        held = array.ravel() if array.dtype.kind in "SUO" else ()
        text = next((each for each in held if isinstance(each, str | bytes)), None)
        if text is not None:  # of objects, too: encoders know the text '1' for another category than 1
            raise ValueError(f"texts such as {str(text)[:40]!r}; convert them")
        numbers = array.astype(np.float64) if kind == "numbers" or array.dtype.kind not in "biu" else array
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodeError(
            f"{what} takes {kind}, and the samples hold others: {error}", code="samples"
        ) from error
    if kind == "numbers":
        return numbers
    if numbers.dtype.kind == "f" and not (
        (np.abs(numbers) < 2.0**53).all() and (numbers == np.rint(numbers)).all()
    ):
        raise EncodeError(
            f"{what} takes whole numbers, such as ids, and the samples hold others", code="samples"
        )
    return numbers.astype(np.int64)


def _text(value: Any, what: str) -> str:
    if _is_missing(value):
        return MISSING
    if not isinstance(value, str) or len(value) > MAX_TEXT or MISSING in value:
        raise EncodeError(
            f"{what} takes texts of at most {MAX_TEXT} characters, got {repr(value)[:60]}; convert "
            "the column",
            code="samples",
        )
    return value


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas' NA, whose comparisons have no truth value."""
    return value is None or repr(value) == "<NA>" or bool(value != value)


def kind_of(values: Iterable[Any]) -> Kind:
    """Return the kind of the values of a column: text if any value is a string."""
    return "text" if any(isinstance(value, str) for value in values) else "numbers"


def first_samples(samples: Any, count: int) -> Any:
    """Return the first samples of an array, a mapping or a data frame."""
    if isinstance(samples, Mapping):
        return {name: np.asarray(each)[:count] for name, each in samples.items()}
    names = table_names(samples)
    if names is None:
        return samples[:count]
    return samples.head(count) if hasattr(samples, "head") else samples[:count]


def some_samples(samples: Any, count: int) -> Any:
    """Return at most so many samples of an array, a mapping or a data frame, evenly spread over all: data may
    be sorted."""
    names = table_names(samples)
    total = len(samples[names[0]]) if names else len(samples)
    if not total:
        return samples
    rows = np.unique(np.linspace(0, total - 1, min(count, total)).astype(np.int64))
    if isinstance(samples, Mapping):
        return {name: np.asarray(each)[rows] for name, each in samples.items()}
    if names is None:
        return samples[rows] if isinstance(samples, np.ndarray) else [samples[row] for row in rows]
    if hasattr(samples, "iloc"):
        return samples.iloc[rows]
    return samples.take(rows) if hasattr(samples, "take") else first_samples(samples, count)
