"""Transformers of scikit-learn, each as nodes: those of tables, and those that map columns of numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keywright.errors.network import RefusalError
from keywright.program.client.samples import MISSING

from . import lookup_tables
from .writer import Feature, Table, Writer

FUNCTIONS = {
    "absolute": "Abs",
    "ceil": "Ceil",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "rint": "Round",
    "sign": "Sign",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}
"""ONNX operators of numpy's functions, by name."""


def write_transformer(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    """Return the columns that a fitted transformer makes of columns.

    Args:
        path: of the transformer in its pipeline, for messages.

    Raises:
        RefusalError: the transformer, or a parameter of it, has no such form.
    """
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return list(table)
    kind = type(transformer).__name__
    if hasattr(transformer, "steps"):
        outcome = list(table)
        for name, step in transformer.steps:
            outcome = write_transformer(writer, step, outcome, f"{path}[{name!r}]" if path else repr(name))
        return outcome
    rule = RULES.get(kind)
    if rule is None and hasattr(transformer, "get_support"):
        rule = _chosen
    if rule is None and type(transformer).__module__.startswith("sklearn.") is False:
        kind = f"{type(transformer).__module__}.{kind}"
    if rule is None:
        raise refused(path, kind, "has no form for clients or for encrypted values")
    if kind not in TAKES_TEXT and any(feature.kind == "text" for feature in table):
        raise refused(path, kind, "gets a column of text; encode it before")
    return rule(writer, transformer, table, path)


def refused(path: str, kind: str, why: str) -> RefusalError:
    """Return the refusal of a transformer."""
    return RefusalError(
        f"step {path or kind} of the pipeline ({kind}) {why}; run the pipeline up to and with it before the "
        "client, and compile the steps behind it for its output: kw.compile(pipeline[k:], calibration=...)",
        code="export",
        step=path,
        transformer=kind,
    )


def _affine(writer: Writer, table: Table, offset: Any, scale: Any) -> list[Feature]:
    """Return (x - offset) / scale."""
    value = writer.matrix(table)
    if offset is not None:
        value = writer.add("Sub", value, writer.constant(np.reshape(offset, (1, -1))))
    if scale is not None:
        value = writer.add("Div", value, writer.constant(np.reshape(scale, (1, -1))))
    return writer.columns_of(value, len(table))


def _standard(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    return _affine(
        writer,
        table,
        transformer.mean_ if transformer.with_mean else None,
        transformer.scale_ if transformer.with_std else None,
    )


def _robust(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    return _affine(
        writer,
        table,
        transformer.center_ if transformer.with_centering else None,
        transformer.scale_ if transformer.with_scaling else None,
    )


def _largest(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    result = _affine(writer, table, None, transformer.scale_)
    if not getattr(transformer, "clip", False):
        return result
    ends = [writer.constant(end) for end in (-1.0, 1.0)]
    value = writer.on_client(writer.add("Clip", writer.matrix(result), *ends))
    return writer.columns_of(value, len(table))


def _extremes(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    value = writer.add("Mul", writer.matrix(table), writer.constant(transformer.scale_[None]))
    value = writer.add("Add", value, writer.constant(transformer.min_[None]))
    if transformer.clip:
        ends = [writer.constant(float(end)) for end in transformer.feature_range]
        value = writer.on_client(writer.add("Clip", value, *ends))
    return writer.columns_of(value, len(table))


def _binary(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    value = writer.matrix(table)
    above = writer.cast(writer.add("Greater", value, writer.constant(float(transformer.threshold))))
    # Missing and infinite values stay no numbers, which clients refuse.
    result = writer.add("Add", above, writer.add("Sub", value, value))
    return writer.columns_of(writer.on_client(result), len(table))


def _normed(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    norms = {"l1": 1, "l2": 2}
    if transformer.norm not in norms:
        raise refused(path, "Normalizer", f"has norm={transformer.norm!r}, which has no encrypted form")
    value = writer.add("LpNormalization", writer.matrix(table), p=norms[transformer.norm], axis=1)
    return writer.columns_of(value, len(table))


def _imputed(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    outcome = []
    statistics = transformer.statistics_
    gap = transformer.missing_values
    for feature, statistic in zip(table, statistics, strict=True):
        if feature.kind == "text":
            if gap is not None and gap == gap:
                raise refused(path, "SimpleImputer", f"replaces {gap!r}; let it replace None or NaN")
            known = writer.columns[feature.raw].kind if feature.raw is not None else "text"
            outcome.append(Feature(feature.value, feature.index, known, feature.raw, str(statistic)))
            continue
        if statistic is None or statistic != statistic:
            continue  # a column without values is dropped
        value = writer.matrix([feature])
        hole = _hole(writer, value, gap)
        filled = writer.add("Where", hole, writer.constant([[float(statistic)]]), value)
        outcome.append(Feature(writer.on_client(filled), 0))
    if transformer.add_indicator:
        outcome += _holes(writer, transformer.indicator_, table, path)
    return outcome


def _hole(writer: Writer, value: str, gap: Any) -> str:
    if gap is None or gap != gap:
        return writer.add("IsNaN", value)
    return writer.add("Equal", value, writer.constant(float(gap)))


def _holes(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    outcome = []
    for place in transformer.features_:
        feature = table[int(place)]
        value = writer.matrix([feature])
        if feature.kind == "text":
            hole = writer.add(
                "LabelEncoder",
                value,
                domain="ai.onnx.ml",
                keys_strings=[MISSING],
                values_int64s=[1],
                default_int64=0,
            )
        else:
            hole = _hole(writer, value, transformer.missing_values)
        outcome.append(Feature(writer.on_client(writer.cast(hole)), 0))
    return outcome


def _columns(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    _require_no_weights(transformer, path)
    outcome: list[Feature] = []
    places = transformer._transformer_to_input_indices
    for name, step, _ in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        chosen = [table[int(place)] for place in places[name]]
        if chosen:
            outcome += write_transformer(writer, step, chosen, f"{path}[{name!r}]" if path else repr(name))
    return outcome


def _require_no_weights(transformer: Any, path: str) -> None:
    if transformer.transformer_weights:
        why = "has transformer_weights, which have no form here: scale the features in its transformers"
        raise refused(path, type(transformer).__name__, why)


def _union(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    _require_no_weights(transformer, path)
    outcome: list[Feature] = []
    for name, step in transformer.transformer_list:
        if isinstance(step, str) and step == "drop":
            continue
        outcome += write_transformer(writer, step, table, f"{path}[{name!r}]" if path else repr(name))
    return outcome


def _chosen(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    return [table[int(place)] for place in transformer.get_support(indices=True)]


def _components(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    """Return the columns' linear combinations."""
    value, matrix = writer.matrix(table), np.asarray(transformer.components_, np.float64)
    mean = getattr(transformer, "mean_", None)
    if mean is not None:
        value = writer.add("Sub", value, writer.constant(np.reshape(mean, (1, -1))))
    if getattr(transformer, "whiten", False) is True:
        matrix = matrix / np.sqrt(transformer.explained_variance_)[:, None]
    value = writer.add("MatMul", value, writer.constant(matrix.T))
    return writer.columns_of(value, len(matrix))


def _discriminants(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    """Add the transform of a discriminant analysis: one matrix, behind its mean."""
    if not hasattr(transformer, "scalings_"):
        raise refused(path, "LinearDiscriminantAnalysis", "has solver='lsqr', which has no transform")
    weights = np.asarray(transformer.scalings_, np.float64)[:, : transformer._max_components]
    mean = transformer.xbar_ if transformer.solver == "svd" else None
    value = writer.matrix(_affine(writer, table, mean, None))
    value = writer.add("MatMul", value, writer.constant(weights))
    return writer.columns_of(value, weights.shape[1])


def _powers(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    outcome = []
    for powers in transformer.powers_:
        factors = [p for p, power in enumerate(powers) for _ in range(int(power))]
        if not factors:
            outcome.append(Feature(writer.constant([[1.0]]), 0))
            continue
        if len(factors) == 1:
            outcome.append(table[factors[0]])
            continue
        value = writer.matrix([table[factors[0]]])
        for place in factors[1:]:
            value = writer.add("Mul", value, writer.matrix([table[place]]))
        outcome.append(Feature(value, 0))
    return outcome


def _function(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    function = transformer.func
    if function is None:
        return list(table)
    name = getattr(function, "__name__", repr(function))
    numpy_own = getattr(np, name, None) is function and not transformer.kw_args
    if not numpy_own or name not in {*FUNCTIONS, "log1p", "expm1", "square"}:
        raise refused(path, "FunctionTransformer", f"has func={name}, which is code of its own")
    value = writer.matrix(table)
    match name:
        case "log1p":
            value = writer.add("Log", writer.add("Add", value, writer.constant(1.0)))
        case "expm1":
            value = writer.add("Sub", writer.add("Exp", value), writer.constant(1.0))
        case "square":
            value = writer.add("Mul", value, value)
        case _:
            value = writer.add(FUNCTIONS[name], value)
    return writer.columns_of(writer.on_client(value), len(table))


def _power(writer: Writer, transformer: Any, table: Table, path: str) -> list[Feature]:
    """Add PowerTransformer: a power of each column, by its sign."""
    one, zero = writer.constant(1.0), writer.constant(0.0)
    outcome = []
    for feature, power in zip(table, transformer.lambdas_, strict=True):
        value, power = writer.matrix([feature]), float(power)
        if transformer.method == "box-cox":
            result = _box_cox(writer, value, power)
        else:
            above = writer.add("Max", value, zero)
            below = writer.add("Neg", writer.add("Min", value, zero))
            right = _box_cox(writer, writer.add("Add", above, one), power)
            left = writer.add("Neg", _box_cox(writer, writer.add("Add", below, one), 2 - power))
            result = writer.add("Where", writer.add("GreaterOrEqual", value, zero), right, left)
        outcome.append(Feature(writer.on_client(result), 0))
    if not transformer.standardize:
        return outcome
    return _standard(writer, transformer._scaler, outcome, path)


def _box_cox(writer: Writer, value: str, power: float) -> str:
    if abs(power) < 1e-12:
        return writer.add("Log", value)
    raised = writer.add("Pow", value, writer.constant(power))
    less = writer.add("Sub", raised, writer.constant(1.0))
    return writer.add("Div", less, writer.constant(power))


Rule = Callable[[Writer, Any, Table, str], list[Feature]]
RULES: dict[str, Rule] = {
    "Binarizer": _binary,
    "ColumnTransformer": _columns,
    "FeatureUnion": _union,
    "FunctionTransformer": _function,
    "IncrementalPCA": _components,
    "KBinsDiscretizer": lookup_tables.bins,
    "LinearDiscriminantAnalysis": _discriminants,
    "MaxAbsScaler": _largest,
    "MinMaxScaler": _extremes,
    "MissingIndicator": _holes,
    "Normalizer": _normed,
    "OneHotEncoder": lookup_tables.encoder,
    "OrdinalEncoder": lookup_tables.encoder,
    "PCA": _components,
    "PolynomialFeatures": _powers,
    "PowerTransformer": _power,
    "RobustScaler": _robust,
    "SimpleImputer": _imputed,
    "StandardScaler": _standard,
    "TargetEncoder": lookup_tables.encoder,
    "TruncatedSVD": _components,
}
TAKES_TEXT = frozenset([
    "ColumnTransformer", "FeatureUnion", "FunctionTransformer", "MissingIndicator", "OneHotEncoder",
    "OrdinalEncoder", "SimpleImputer", "TargetEncoder",
])  # fmt: skip
CLEAR = frozenset([
    "Binarizer", "FunctionTransformer", "KBinsDiscretizer", "MissingIndicator", "OneHotEncoder",
    "OrdinalEncoder", "PowerTransformer", "SimpleImputer", "TargetEncoder",
])  # fmt: skip
"""Transformers that clients compute."""
