"""Pipelines whose samples are tables, or that begin with imputers and encoders, as one ONNX model."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from keywright.compiler.front_ends.feature_names import as_fitted, feature_names, read_names
from keywright.compiler.front_ends.model_file import client_values, columns_in
from keywright.errors.engine import EncodeError
from keywright.errors.network import RefusalError
from keywright.program.arrays import table_names
from keywright.program.client.first_steps import NUMBERS, TEXT
from keywright.program.client.samples import Column, Kind, by_name, kind_of, read_table

from . import heads
from .transformers import CLEAR, write_transformer
from .writer import Feature, Writer

Export = Callable[[Any, np.ndarray[Any, Any]], onnx.ModelProto]


def unfrozen(model: Any) -> Any:
    """Return an estimator without the FrozenEstimator around it, its steps or what it calibrates; of a search
    the best one."""
    if type(model).__name__ == "FrozenEstimator":
        return unfrozen(model.estimator)
    if hasattr(model, "best_estimator_"):
        return unfrozen(model.best_estimator_)
    if hasattr(model, "steps"):
        return _with(model, steps=[(name, unfrozen(step)) for name, step in model.steps])
    if hasattr(model, "calibrated_classifiers_"):
        members = [_with(each, estimator=unfrozen(each.estimator)) for each in model.calibrated_classifiers_]
        return _with(model, calibrated_classifiers_=members)
    return model


def _with(model: Any, **attributes: Any) -> Any:
    other = copy(model)
    vars(other).update(attributes)
    return other


def is_table(samples: Any) -> bool:
    """Whether samples are a data frame, a mapping of columns, or hold other values than numbers."""
    if table_names(samples) is not None:
        return True
    return np.asarray(samples).dtype.kind not in "biuf"


def has_clear_steps(model: Any) -> bool:
    """Whether an estimator begins with a transformer that clients compute."""
    return any(type(step).__name__ in CLEAR for step in _steps(model))


def needs_table(model: Any) -> bool:
    """Whether an estimator names columns, or begins with a transformer that clients compute."""
    return has_clear_steps(model) or any(hasattr(step, "transformers_") for step in _steps(model))


def _steps(model: Any) -> Iterator[Any]:
    """Yield a transformer and all that it consists of."""
    yield model
    for entry in [
        *getattr(model, "steps", []),
        *getattr(model, "transformers_", []),
        *getattr(model, "transformer_list", []),
    ]:
        yield from _steps(entry[1])


def write(model: Any, samples: Any, export: Export) -> onnx.ModelProto:
    """Return a fitted pipeline as an ONNX model that takes the columns of its samples.

    Args:
        samples: a data frame, a mapping of columns, or an array (count, columns).
        export: exports the last step for its features, (count, features).

    Raises:
        RefusalError: a step has no such form.
        EncodeError: the samples are no table.
    """
    steps = list(getattr(model, "steps", [("", model)]))
    estimator = steps[-1][1]
    before = steps[:-1] if hasattr(estimator, "predict") else steps
    columns = columns_of(model, samples)
    writer, features = write_before(before, columns)
    if len(before) == len(steps):
        return writer.model([(writer.matrix(features), "variable")])
    require_numbers(estimator, features, columns)
    value = writer.matrix(features)
    if heads.is_head(estimator):
        return writer.model(heads.write_head(writer, estimator, value, len(features)))
    return _joined(writer, value, export(estimator, transformed(model, samples)))


def write_before(steps: Sequence[tuple[str, Any]], columns: Sequence[Column]) -> tuple[Writer, list[Feature]]:
    """Return what writes transformers, one behind the other, and the columns that they make.

    Raises:
        RefusalError: a step has no such form, or no column is left.
    """
    writer = Writer(columns)
    features = writer.table()
    for name, step in steps:
        features = write_transformer(writer, step, features, repr(name))
    if not features:
        kinds = ", ".join(type(step).__name__ for _, step in steps)
        raise RefusalError(
            f"{kinds} of the pipeline leave no column; fit it so that one is left", code="export"
        )
    return writer, features


def require_numbers(estimator: Any, features: Sequence[Feature], columns: Sequence[Column]) -> None:
    """Refuse columns of texts in front of an estimator.

    Raises:
        RefusalError: names the first.
    """
    texts = [feature.raw for feature in features if feature.kind == "text"]
    if texts:
        kind = type(estimator).__name__
        column = "a column" if texts[0] is None else f"the column {columns[texts[0]].name!r}"
        raise RefusalError(
            f"{kind} gets {column}, which holds texts; encode it before, as make_pipeline(encoder, "
            f"{kind}(...)) does",
            code="export",
        )


def transformed(model: Any, samples: Any) -> np.ndarray[Any, Any]:
    """Return what the last step of a pipeline gets of samples, (count, features).

    Raises:
        RefusalError: a step does not take them.
    """
    table = as_fitted(model, samples)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner = model[:-1].transform(table) if len(getattr(model, "steps", ())) > 1 else table
        return np.asarray(inner.toarray() if hasattr(inner, "toarray") else inner, np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise RefusalError(
            f"the pipeline does not take the calibration data: {error}", code="export"
        ) from error


def write_heads(model: Any, width: int, *, alone: bool = False) -> onnx.ModelProto | None:
    """Return an estimator of linear ones, behind steps that are written here, as an ONNX model in double
    precision that takes (count, width) numbers; None for another estimator.

    Args:
        alone: whether a linear classifier is written too.

    Raises:
        RefusalError: a step has no such form.
    """
    steps = list(getattr(model, "steps", [("", model)]))
    if not heads.is_head(steps[-1][1], alone=alone):
        return None
    writer = Writer([Column(f"column {place}", "numbers") for place in range(width)], named=False)
    features = writer.table()
    for name, step in steps[:-1]:
        features = write_transformer(writer, step, features, repr(name))
    value = writer.matrix(features)
    return writer.model(heads.write_head(writer, steps[-1][1], value, len(features)))


def fed(exported: onnx.ModelProto, samples: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs of a model of `write` for samples."""
    columns = columns_in(exported)
    table, _ = read_table(samples, columns)
    result = {}
    for name, kind in ((NUMBERS, "numbers"), (TEXT, "text")):
        own = [table[each.name] for each in columns if each.kind == kind]
        if own:
            result[name] = np.stack(own, axis=1)
    return result


def _joined(writer: Writer, value: str, estimator: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model of both: transformers, then an exported estimator."""
    graph = estimator.graph
    (source,) = [each for each in graph.input if each.name not in {t.name for t in graph.initializer}]
    outputs = [each.name for each in graph.output]
    given = writer.cast(value, source.type.tensor_type.elem_type or TensorProto.FLOAT)

    def renamed(name: str) -> str:
        return given if name == source.name else f"model/{name}" if name else ""

    for node in graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [renamed(name) for name in node.input]
        copy.output[:] = [renamed(name) for name in node.output]
        writer.nodes.append(copy)
    for name in sorted(client_values(estimator)):
        writer.on_client(renamed(name))
    for tensor in graph.initializer:
        copied = onnx.TensorProto()
        copied.CopyFrom(tensor)
        copied.name = renamed(tensor.name)
        writer.constants.append(copied)
    opsets = [each for each in estimator.opset_import if each.domain not in ("", "ai.onnx")]
    result = writer.model([(renamed(name), name) for name in outputs], opsets)
    for mine, theirs in zip(result.graph.output, graph.output, strict=True):
        mine.type.CopyFrom(theirs.type)
    return result


def columns_of(model: Any, samples: Any) -> list[Column]:
    """Return the columns of samples, with the kinds of their values, in the order of a fitted pipeline.

    Raises:
        EncodeError: the samples are no table, or lack a column.
    """
    names, read = feature_names(model, samples), read_names(model, samples)
    if (present := table_names(samples)) is not None:
        names, read = names or tuple(map(str, present)), read or tuple(map(str, present))
        given = by_name(samples, read)
    else:
        array = np.asarray(samples)
        if array.ndim != 2 or not len(array):
            raise EncodeError(f"samples are a table, (count, columns); got {array.shape}", code="samples")
        names = names or tuple(f"column {place}" for place in range(array.shape[1]))
        if len(names) != array.shape[1]:
            raise EncodeError(
                f"samples are a table of {len(names)} columns; got {array.shape}", code="samples"
            )
        given = {name: each for name, each in zip(names, array.T, strict=True) if name in (read or names)}
    return [Column(name, _kind(given[name]) if name in given else "unread") for name in names]


def _kind(values: np.ndarray[Any, Any]) -> Kind:
    text = values.dtype.kind in "SU" or (values.dtype.kind == "O" and kind_of(values.tolist()) == "text")
    return "text" if text else "numbers"
