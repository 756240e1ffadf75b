"""Exports fitted estimators and pipelines of scikit-learn, in a precision that loses nothing."""

import importlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike

from keywright.compiler.front_ends.estimator_refusals import not_written, require_classes, require_table
from keywright.compiler.front_ends.feature_names import as_fitted, feature_names, with_names
from keywright.compiler.front_ends.model_file import VALUES, load_model
from keywright.compiler.front_ends.scikit_learn import double_precision, pipeline
from keywright.compiler.front_ends.scikit_learn.comparison import DIFFERENT, gives_labels, require_same
from keywright.compiler.front_ends.scikit_learn.equivalents import (
    WITHOUT_LOOK_UPS,
    with_equivalent,
    written_exactly,
)
from keywright.compiler.front_ends.trees.estimators import ensemble_of
from keywright.errors.engine import EncodeError
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.exports import single_precision
from keywright.program.arrays import require_arrays, table_names
from keywright.program.client.samples import by_name, in_order, some_samples

from .corrections import corrected, last_step, rename, with_threshold
from .samples import OPSET, imported, one_sample

SINGLE = 2.0**-24
"""The rounding of single precision."""

LOST, MOST_LOST = 2.0**-13, 2.0**-7
"""Share of a spread that the rounding of inputs may lose before double precision is tried, and before a model
that cannot be exported in double precision is refused."""

BEYOND = (0.0, 0.5, 2.0)
"""Shares of their distance from the mean by which samples are moved outwards: steps such as clipping, and
thresholds far from the data, show there."""

FAR_OFF = 1 / 4
"""Allowed difference of samples that were moved outwards."""

THRESHOLDS = frozenset(["FixedThresholdClassifier", "TunedThresholdClassifierCV"])
"""Classifiers whose threshold the exporter leaves out."""

SCORES, NO_PROBABILITIES = "scores", frozenset(["output_probability", "probabilities"])
"""The name of an output that is a score of labels, and those that exporters give it."""
COMPARED = 64
"""Samples on which an exported estimator is compared with the estimator."""


def _gives_values(model: Any) -> bool:
    """Whether an estimator is a regressor."""
    return bool(importlib.import_module("sklearn.base").is_regressor(model))


def export_estimator(model: Any, example: Any, export: pipeline.Export) -> onnx.ModelProto:
    """Return a fitted estimator or pipeline as ONNX.

    Args:
        model: the estimator.
        example: as for `to_onnx`.
        export: exports the last step of a pipeline, of any library.

    Raises:
        EncodeError, ModelRefusedError, PackageMissingError: as for `to_onnx`.
    """
    estimator = with_equivalent(pipeline.unfrozen(model), WITHOUT_LOOK_UPS)
    exported = _with_names_of_scores(estimator, _export(estimator, example, export))
    if _gives_values(model):
        exported.metadata_props.add(key=VALUES, value="true")
    return exported


def _export(model: Any, example: Any, export: pipeline.Export) -> onnx.ModelProto:
    require_classes(model)
    if example is not None:
        require_arrays(example, "calibration data")
        if table_names(example) is None:
            require_table(model, np.shape(example))
        _require_features(model, example)
    names = feature_names(model, example)
    if (present := table_names(example)) is not None and not pipeline.needs_table(model):
        taken = names or tuple(map(str, present))
        if all(each.dtype.kind in "biuf" for each in by_name(example, taken).values()):
            names, example = taken, in_order(example, taken)  # an array, whose columns have names
    by_columns = pipeline.has_clear_steps(model) or (bool(names) and pipeline.needs_table(model))
    if example is not None and (pipeline.is_table(example) or by_columns):
        try:
            written = pipeline.write(model, example, export)
        except RefusalError as reason:
            raise ModelRefusedError([reason]) from reason
        few = as_fitted(model, some_samples(example, COMPARED))
        require_same(model, written, pipeline.fed(written, few), few)
        return _with_own_labels(model, written, few)
    sample = one_sample(example, "a scikit-learn estimator")
    exported = _of_features(model, np.asarray(example), sample)
    return with_names(_with_own_labels(model, exported, sample), names)


def _require_features(model: Any, example: Any) -> None:
    """Refuse samples of another number of features than an estimator takes.

    Raises:
        EncodeError: states both.
    """
    width, names = getattr(model, "n_features_in_", None), table_names(example)
    shape = np.shape(example)[1:] if names is None else (len(names),)
    known = names is not None and feature_names(model, example)
    if width is not None and not known and shape != (width,):
        raise EncodeError(
            f"calibration data have samples of shape {shape}, and {type(model).__qualname__} was fitted to "
            f"({width},)",
            code="samples",
        )


def _with_names_of_scores(model: Any, exported: onnx.ModelProto) -> onnx.ModelProto:
    """Return an exported classifier without probabilities, whose other outputs have the names of scores:
    exporters give them those of probabilities."""
    graph = exported.graph
    if not gives_labels(model) or hasattr(model, "predict_proba"):
        return exported
    for value in graph.output:
        old = value.name
        name = re.sub(r"_\d+$", "", old)  # without the number of one of several classifiers
        if name in NO_PROBABILITIES:
            value.name = new = SCORES + old.removeprefix(name)
            rename(graph, old, new)
    return exported


def _with_own_labels(model: Any, exported: onnx.ModelProto, samples: Any) -> onnx.ModelProto:
    """Return an exported classifier whose labels are of the estimator's own type. Exporters write truth
    values and floating-point labels as integers."""
    graph = exported.graph
    label = graph.output[0]
    if not gives_labels(model) or label.type.tensor_type.elem_type != onnx.TensorProto.INT64:
        return exported
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = np.asarray(model.predict(samples)).dtype
    if kind.kind not in "bf":
        return exported
    name, own = label.name, onnx.helper.np_dtype_to_tensor_dtype(kind)
    rename(graph, name, f"{name}/whole")
    graph.node.append(onnx.helper.make_node("Cast", [f"{name}/whole"], [name], f"{name}/own", to=own))
    label.type.tensor_type.elem_type = own
    return exported


def _of_features(
    model: Any, example: np.ndarray[Any, Any], sample: np.ndarray[Any, np.dtype[np.float32]]
) -> onnx.ModelProto:
    """Return an estimator as ONNX, in a precision that does not lose its features or its values, with which
    it computes what the estimator does.

    Raises:
        ModelRefusedError: there is none; with the reason of the first that was tried.
    """
    lost, first = _lost_share(example), example[:1].astype(np.float64)
    ways: list[Callable[[], onnx.ModelProto | None]] = [
        lambda: _from_scikit_learn(model, first),
        lambda: pipeline.write_heads(model, sample.shape[-1], alone=True),
        lambda: double_precision.export_in_double(model, first, _from_scikit_learn),
    ]
    single: list[Callable[[], onnx.ModelProto | None]] = [lambda: _from_scikit_learn(model, sample)]
    if lost > MOST_LOST:
        single = []
    trees = ensemble_of(model)
    if trees is not None and trees.single:
        ways, single = (
            [],
            [lambda: _from_scikit_learn(model, sample)],
        )  # they read single precision themselves
    # Values are computed in double precision; classifiers only where single precision loses something.
    precise = _gives_values(model) or lost > LOST
    refusal: ModelRefusedError | None = None
    best: tuple[float, onnx.ModelProto] | None = None
    for way in [*ways, *single] if precise else [*single, *ways]:
        try:
            exported = way()
            apart = None if exported is None else _distance(model, exported, example)
        except (ModelRefusedError, RefusalError) as reason:
            group = reason if isinstance(reason, ModelRefusedError) else ModelRefusedError([reason])
            refusal = refusal or group
            continue
        if exported is not None and apart is not None and (best is None or apart < best[0]):
            best = apart, exported  # one that nothing here evaluates only if there is no other
        if best is not None and best[0] <= LOST:
            break
    if best is not None:
        return best[1]
    if lost > MOST_LOST:
        _from_scikit_learn(model, sample)  # one that is not exported at all has its own reason
        raise ModelRefusedError([single_precision(type(model).__qualname__, lost)]) from refusal
    assert refusal is not None
    raise refusal


def _distance(model: Any, exported: onnx.ModelProto, example: np.ndarray[Any, Any]) -> float:
    """Return how far an exported estimator is from the estimator, as a share of the spread of a value, on the
    samples of an example.

    Raises:
        ModelRefusedError: it computes something else, there or further outside.
    """
    source = exported.graph.input[0]
    kind = onnx.helper.tensor_dtype_to_np_dtype(source.type.tensor_type.elem_type)
    few = some_samples(example, COMPARED)
    if kind.kind != "f":
        return 0.0
    apart = 0.0
    for share in BEYOND:
        with np.errstate(all="ignore"):  # infinite samples are refused later
            moved = few + share * (few - np.mean(few, axis=0)) if share else few
        rows = moved.astype(few.dtype, copy=False)
        # There, probabilities saturate and single precision decides ties.
        most = FAR_OFF if share else DIFFERENT
        measured = require_same(model, exported, {source.name: rows.astype(kind)}, rows, most)
        apart = apart if share else measured
    return apart


def _lost_share(example: ArrayLike | None) -> float:
    """Return the largest rounding of a feature in single precision as a share of its spread: large for a
    time, for example, which is far from 0."""
    samples = np.asarray(example, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        shares = SINGLE * np.abs(samples).max(axis=0) / samples.std(axis=0)
    return float(np.max(shares, where=np.isfinite(shares), initial=0.0))


def _from_scikit_learn(model: Any, sample: np.ndarray[Any, np.dtype[Any]]) -> onnx.ModelProto:
    if (written := pipeline.write_heads(model, sample.shape[-1])) is not None:
        return written
    if type(last := last_step(model)).__name__ in THRESHOLDS:
        steps = list(model.steps[:-1]) if last is not model else []
        pipe = importlib.import_module("sklearn.pipeline").Pipeline
        inner = pipe([*steps, ("classifier", last.estimator_)]) if steps else last.estimator_
        return with_threshold(last, _from_scikit_learn(inner, sample))
    skl2onnx = imported("skl2onnx", "skl2onnx", "sklearn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = written_exactly(model)
            exported = skl2onnx.to_onnx(
                exact, sample, target_opset={"": OPSET, "ai.onnx.ml": 3}, options=_options(exact)
            )
    except Exception as error:
        raise not_written(model, error) from error
    return corrected(exact, load_model(exported.SerializeToString()))


def _options(model: Any) -> dict[int, dict[str, object]]:
    """Return no options for the steps of a pipeline: skl2onnx's default option for classifiers is not
    supported by LinearSVC. One against the rest gives scores where it has no probabilities."""
    result: dict[int, dict[str, object]] = {}
    for _, part in getattr(model, "steps", []):
        result |= {id(part): {}} | _options(part)
    if type(last := last_step(model)).__name__ == "OneVsRestClassifier" and not hasattr(
        last, "predict_proba"
    ):
        result[id(last)] = {"raw_scores": True}
    return result
