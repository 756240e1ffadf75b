"""Trees behind what clients compute: encoders, selections and other steps of a pipeline, and the categories
of a data frame's columns, which trees know by their places."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keywright.compiler.front_ends.feature_names import feature_names
from keywright.compiler.front_ends.parts.client_start import split_first_steps
from keywright.compiler.front_ends.scikit_learn import lookup_tables, pipeline
from keywright.compiler.front_ends.scikit_learn.transformers import refused
from keywright.compiler.front_ends.scikit_learn.writer import Feature, Writer
from keywright.compiler.trees.ensemble import EncodedEnsemble, Ensemble
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.operators import unsupported_attribute
from keywright.program.arrays import require_arrays, table_names
from keywright.program.client.first_steps import BEFORE
from keywright.program.client.samples import Column

from .estimators import ensemble_of

SHOWN = 4
"""Categories in a message."""

Categories = Mapping[int, Sequence[Any]]
"""Of the features that have some, by number."""


def trees_of(model: Any, example: Any) -> Ensemble | EncodedEnsemble | None:
    """Return the trees of a fitted object, or of a pipeline that ends with one; None for an object of another
    class. Trees are behind first steps if a pipeline computes more than scales before them, or if columns of
    a data frame hold categories, which trees know by their places.

    Raises:
        ModelRefusedError: the trees have a part that is not supported, or are too large; a step has no form
            for clients; or an example does not tell categories from their places.
        EncodeError: the example is no table of the model's columns.
    """
    steps = [("", model)]
    while hasattr(steps[-1][1], "steps"):
        steps = [*steps[:-1], *steps[-1][1].steps]
    trees, before = ensemble_of(model), list[tuple[str, Any]]()
    if trees is None and steps[:-1] and example is not None:
        require_arrays(example, "calibration data")
        if table_names(example) is not None or np.ndim(example) == 2:  # no texts, of which vectorizers count
            trees, before = ensemble_of(steps[-1][1]), steps[:-1]
    if trees is None or not (before or trees.reads.categories):
        return trees
    try:
        columns = pipeline.columns_of(model, example) if example is not None else _columns(model, trees)
        writer, features = pipeline.write_before(before, columns)
        known = _known(trees, features, columns, example)
        if not (before or known):
            return trees
        strict = trees.reads.strict
        features = [
            _coded(writer, each, known[place], strict=strict) if place in known else each
            for place, each in enumerate(features)
        ]
        pipeline.require_numbers(steps[-1][1], features, columns)
        value = writer.on_client(writer.matrix(features))
        client = split_first_steps(writer.model([(value, "features")]), example).steps
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    if client is None or client.shape != (trees.features,):
        raise ModelRefusedError([_for_servers(before, columns)])
    return EncodedEnsemble(client, trees)


def _for_servers(steps: Sequence[tuple[str, Any]], columns: list[Column]) -> RefusalError:
    """Return the refusal of the first step that clients do not compute."""
    written = (pipeline.write_before(steps[: count + 1], columns)[0].nodes for count in range(len(steps)))
    guilty = (place for place, nodes in enumerate(written) if {node.op_type for node in nodes} - BEFORE)
    name, step = steps[next(guilty, len(steps) - 1)]
    why = "is no step that clients compute, and trees compare what is not encrypted"
    return refused(repr(name), type(step).__name__, why)


def _columns(model: Any, trees: Ensemble) -> list[Column]:
    """Return the columns of samples of trees that know their categories."""
    names = feature_names(model) or [f"column {place}" for place in range(trees.features)]
    known = {place: each for place, each in trees.reads.categories if place is not None}
    return [Column(name, _kind(known.get(place, ()))) for place, name in enumerate(names)]


def _kind(categories: Sequence[Any]) -> Any:
    return "text" if any(isinstance(each, str) for each in categories) else "numbers"


def _known(trees: Ensemble, features: Sequence[Feature], columns: list[Column], example: Any) -> Categories:
    """Return the categories of the features that hold them, and not their places.

    Raises:
        RefusalError: an example holds numbers that may be either, or categories that the trees do not.
    """
    stored = [(place, each) for place, each in trees.reads.categories if len(each)]
    named, known = [place for place, _ in stored if place is not None], [each for _, each in stored]
    holding = named if trees.reads.coded else list(_holding(features, columns, example))
    for place, each in trees.reads.categories:
        if place in holding and not len(each):
            raise RefusalError(
                f"column {columns[features[place].raw or 0].name!r} of the calibration data holds categories,"
                " and the booster only their places; fit it again, with XGBoost 3.1 or later or to "
                "frame[column].cat.codes, and pass what it was fitted to",
                code="export",
            )
    result = dict(zip(named or holding, known, strict=False))
    if not holding or not set(result) <= set(holding) or len(known) != len(result):
        require_places(known)
        return {}
    for place, each in result.items():
        raw = features[place].raw
        if raw is not None and columns[raw].kind != _kind(each):
            raise RefusalError(
                f"column {columns[raw].name!r} of the calibration data holds {columns[raw].kind}, and the "
                f"trees know the categories {_shown(each)}; pass a data frame like that of the fit",
                code="export",
            )
    return result


def _holding(features: Sequence[Feature], columns: Sequence[Column], example: Any) -> Iterator[int]:
    """Yield the features that are columns of categories or of texts."""
    names = table_names(example)
    for place, feature in enumerate(features):
        if names is None or feature.raw is None:
            continue
        name = next(each for each in names if str(each) == columns[feature.raw].name)
        kind = str(getattr(example[name], "dtype", getattr(example[name], "type", ""))).lower()
        if feature.kind == "text" or kind.startswith(("category", "categorical", "dictionary", "enum")):
            yield place


def _coded(writer: Writer, feature: Feature, known: Sequence[Any], *, strict: bool) -> Feature:
    """Return the place of a column's category; a missing number for a missing value and, unless these are
    refused, for others."""
    present = [each for each in known if each is not None and each == each]
    if strict:
        writer.require_known(feature, [*present, np.nan])
    place = lookup_tables.category(writer, feature, present)
    codes = writer.constant([*([float(code)] for code in range(len(present))), [np.nan]])
    return Feature(writer.add("Gather", codes, place, axis=0), 0)


def require_places(columns: Sequence[Sequence[Any]]) -> None:
    """Refuse trees with categories that are numbers, or read as such, and not their own places: a sample
    with the number of a category would be taken for one with the place.

    Args:
        columns: the categories of each column, in their order.

    Raises:
        RefusalError: names the categories.
    """
    for known in columns:
        places = [place for place, each in enumerate(known) if _read_as(each) not in (None, place)]
        if places:
            needed = (
                "0, 1, 2 and so on, by which its trees know them; pass calibration data as a data frame with "
                "columns of the dtype category, as to its fit, or fit it to frame[column].cat.codes"
            )
            raise unsupported_attribute("", "Booster", "the categories of a column", _shown(known), needed)


def _shown(known: Sequence[Any]) -> str:
    return ", ".join(map(str, [*known[:SHOWN], *["..."][: len(known) - SHOWN]]))


def _read_as(category: Any) -> float | None:
    """Return the number that a sample with a category would have; None for another text."""
    try:
        return float(category)
    except (TypeError, ValueError):
        return None
