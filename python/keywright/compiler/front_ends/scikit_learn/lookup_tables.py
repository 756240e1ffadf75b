"""Transformers that replace each column's value by a row of a table: encoders and binning.

Their output for a sample is put together from blocks, each of which depends on one column. The blocks are
measured: the transformer itself is asked for the row of every category.
"""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from keywright.program.client.samples import MISSING

from .writer import Feature, Table, Writer

UNSEEN_TEXT = "\1 unseen"


def encoder(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    """Add OneHotEncoder, OrdinalEncoder or TargetEncoder."""
    known = [list(each) for each in transformer.categories_]
    strict = getattr(transformer, "handle_unknown", "ignore") == "error"
    unseen = [None if strict else _unseen(each) for each in known]
    indices = []
    for feature, each in zip(table, known, strict=True):
        if strict:
            writer.require_known(feature, each)
        indices.append(category(writer, feature, each))
    return _blocks(writer, transformer, known, unseen, indices)


def bins(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    """Add KBinsDiscretizer."""
    known, indices = [], []
    for feature, edges in zip(table, transformer.bin_edges_, strict=True):
        inner = np.asarray(edges, np.float64)[1:-1]
        ends = [edges[0], *inner, edges[-1]]
        known.append([(low + high) / 2 for low, high in pairwise(ends)])
        value = writer.matrix([feature])
        above = writer.add("GreaterOrEqual", value, writer.constant(inner))
        count = writer.add("ReduceSum", writer.cast(above, TensorProto.INT64), writer.constant([1], np.int64))
        none = writer.add(
            "IsNaN", writer.add("Sub", value, value)
        )  # missing and infinite values are in no bin
        place = writer.add("Where", none, writer.constant(len(known[-1]), np.int64), count)
        indices.append(writer.add("Reshape", place, writer.constant([-1], np.int64)))
    return _blocks(writer, transformer, known, [None] * len(known), indices)


def _unseen(known: Sequence[Any]) -> Any:
    """Return a value that is none of the categories."""
    if any(isinstance(each, str) for each in known):
        return UNSEEN_TEXT
    numbers = [float(each) for each in known if each is not None and each == each]
    return max(numbers, default=0.0) + 1.5


def category(writer: Writer, feature: Feature, known: Sequence[Any]) -> str:
    """Return the number of a column's category, (1,), or their count for none of them."""
    count = len(known)
    if feature.kind == "text":
        keys = [MISSING if each is None or each != each else str(each) for each in known]
        places = list(range(count))
        if feature.missing is not None and MISSING not in keys and feature.missing in keys:
            places.append(keys.index(feature.missing))
            keys.append(MISSING)
        result = writer.add(
            "LabelEncoder",
            writer.matrix([feature]),
            domain="ai.onnx.ml",
            keys_strings=keys,
            values_int64s=places,
            default_int64=count,
        )
        return writer.add("Reshape", result, writer.constant([-1], np.int64))
    value = writer.matrix([feature])
    numbers = np.asarray([np.nan if each is None else float(each) for each in known])
    equal = writer.add("Equal", value, writer.constant(numbers))
    if np.isnan(numbers).any():
        same = writer.constant(np.isnan(numbers)[None], np.bool_)
        equal = writer.add("Or", equal, writer.add("And", writer.add("IsNaN", value), same))
    # The last place stands for none of them: it is the first that is as large as any other if all are 0.
    hits = writer.cast(equal, TensorProto.INT64)
    zero = writer.add("ReduceSum", hits, writer.constant([1], np.int64))
    none = writer.add("Sub", writer.constant([[1]], np.int64), zero)
    return writer.add("ArgMax", writer.add("Concat", hits, none, axis=1), axis=1, keepdims=0)


def _blocks(
    writer: Writer,
    transformer: Any,
    known: Sequence[Sequence[Any]],
    unseen: Sequence[Any],
    indices: Sequence[str],
) -> list[Feature]:
    """Return the output's columns by look-ups in the rows of categories, by their numbers."""
    base = _transformed(transformer, [[each[0] for each in known]])[0]
    width, result = len(base), dict[int, Feature]()
    for column, (each, other, index) in enumerate(zip(known, unseen, indices, strict=True)):
        values = [*each, *([] if other is None else [other])]
        samples = [[v if place == column else k[0] for place, k in enumerate(known)] for v in values]
        rows = _transformed(transformer, samples)
        own = np.flatnonzero((~_equal(rows, base)).any(axis=0))
        if not len(own):
            continue
        block = rows[:, own]
        if other is None:
            block = np.concatenate((block, np.full((1, len(own)), np.nan)))
        value = _looked_up(writer, block, index, strict=other is None)
        result |= dict(zip(own.tolist(), writer.columns_of(value, len(own)), strict=True))
    rest = [place for place in range(width) if place not in result]
    if rest:
        constant = writer.constant(base[rest][None])
        result |= dict(zip(rest, writer.columns_of(constant, len(rest)), strict=True))
    return [result[place] for place in range(width)]


def _looked_up(writer: Writer, block: NDArray[np.float64], index: str, *, strict: bool) -> str:
    """Return a row of a table, (1, columns), as a one-hot vector if the table is of these."""
    count = len(block) - 1
    last = strict or not block[-1].any()
    if block.shape[1] == count and last and np.array_equal(block[:-1], np.eye(count)):
        depth, ends = writer.constant(count, np.int64), writer.constant([0.0, 1.0])
        rows = writer.add("OneHot", index, depth, ends)
        if not strict:
            return rows
        # No client takes what is no number: values that a step before makes are refused here.
        unknown = writer.constant([[0.0]] * count + [[np.nan]])
        return writer.add("Add", rows, writer.add("Gather", unknown, index, axis=0))
    return writer.add("Gather", writer.constant(block), index, axis=0)


def _transformed(transformer: Any, rows: Sequence[Sequence[Any]]) -> NDArray[np.float64]:
    """Return what a transformer gives for rows, as numbers."""
    width = len(rows[0])
    texts = any(isinstance(each, str) for row in rows for each in row)
    # Categories learnt from a table of objects are objects, even numbers.
    objects = any(np.asarray(each).dtype.kind == "O" for each in getattr(transformer, "categories_", ()))
    table = np.empty((len(rows), width), object if texts or objects else np.float64)
    for place, row in enumerate(rows):
        table[place] = row
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an array instead of a table with names
        result = transformer.transform(table)
    dense = result.toarray() if hasattr(result, "toarray") else result
    return np.asarray(dense, np.float64)


def _equal(rows: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((rows == base) | (np.isnan(rows) & np.isnan(base)), np.bool_)
