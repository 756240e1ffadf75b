"""Exports models of other libraries to ONNX, through the exporters of these libraries."""

import importlib
import inspect
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike

from keywright.errors import PackageMissingError
from keywright.errors.engine import EncodeError
from keywright.errors.network import (
    ModelRefusedError,
    RefusalError,
    argument_changed,
    not_computed,
    not_exported,
    other_function,
    other_shapes,
    samples_mixed,
    single_precision,
    unrepeatable,
)
from keywright.program.arrays import require_arrays, table_names
from keywright.program.client.samples import by_name, in_order, some_samples

from .estimator_refusals import not_written, require_classes, require_table
from .feature_names import as_fitted, feature_names, with_names
from .model_file import UNCOMPARED, VALUES, load_model
from .parts.client_start import CLIENT
from .scikit_learn import double_precision, pipeline
from .scikit_learn.comparison import DIFFERENT, evaluated, gives_labels, require_same
from .scikit_learn.equivalents import EXACT, WITHOUT_LOOK_UPS, with_equivalent

OPSET = 18
"""Opset of exported models: the newest that every exporter here writes without conversion."""

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

COMPARED, FEW = 64, 4
"""Samples on which an exported estimator is compared with the estimator, and a module with its export."""


def to_onnx(model: object, example: Any = None) -> onnx.ModelProto:
    """Export a model to ONNX.

    Args:
        model: an ONNX model, its bytes or its path; a ``torch.nn.Module``, exported by ``torch.onnx.export``;
            or a fitted estimator or pipeline of scikit-learn, exported by skl2onnx. Modules are exported in
            evaluation mode; their parameters are not changed.
        example: inputs, (count, *input_shape), whose shape the exporters use; for example calibration data.
            A table of columns for pipelines of such; a mapping of arrays by the names of the arguments for
            modules with several. Not needed for ONNX.

    Raises:
        TypeError: another kind of model, or a missing example.
        EncodeError: the example has no samples.
        PackageMissingError: the exporter is not installed.
        ModelRefusedError: the exporter cannot export the model, its samples depend on each other, or it is
            not a valid ONNX model.
        FileNotFoundError: there is no such file.
    """
    if isinstance(model, onnx.ModelProto | str | Path | bytes):
        return load_model(model)
    if _is_of(model, "torch", "torch.nn", "Module"):
        return _from_torch(model, example)
    if _is_of(model, "sklearn", "sklearn.base", "BaseEstimator"):
        estimator = with_equivalent(pipeline.unfrozen(model), WITHOUT_LOOK_UPS)
        exported = _with_names_of_scores(estimator, _from_estimator(estimator, example))
        if _gives_values(model):
            exported.metadata_props.add(key=VALUES, value="true")
        return exported
    raise TypeError(
        "a model is an ONNX model, its bytes or its path, a torch.nn.Module, a fitted scikit-learn estimator "
        f"or trees of XGBoost or LightGBM; got {type(model).__module__}.{type(model).__qualname__}"
    )


def _gives_values(model: Any) -> bool:
    """Whether an estimator is a regressor."""
    return bool(importlib.import_module("sklearn.base").is_regressor(model))


def _from_estimator(model: Any, example: Any) -> onnx.ModelProto:
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
    if example is not None and (pipeline.is_table(example) or pipeline.has_clear_steps(model)):
        try:
            written = pipeline.write(model, example, names, to_onnx)
        except RefusalError as reason:
            raise ModelRefusedError([reason]) from reason
        few = as_fitted(some_samples(example, COMPARED), names)
        require_same(model, written, pipeline.fed(written, few), few)
        return _with_own_labels(model, written, few)
    sample = _one_sample(example, "a scikit-learn estimator")
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
            for node in graph.node:
                node.output[:] = [new if each == old else each for each in node.output]
                node.input[:] = [new if each == old else each for each in node.input]
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
    for node in graph.node:
        node.output[:] = [f"{each}/whole" if each == name else each for each in node.output]
        node.input[:] = [f"{each}/whole" if each == name else each for each in node.input]
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
        lambda: _linear_in_double(model, sample.shape[-1]),
        lambda: double_precision.export_in_double(model, first, _from_scikit_learn),
    ]
    single: list[Callable[[], onnx.ModelProto | None]] = [lambda: _from_scikit_learn(model, sample)]
    if lost > MOST_LOST:
        single = []
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


def _linear_in_double(model: Any, width: int) -> onnx.ModelProto | None:
    """Return a linear classifier with weights in double precision; None for another estimator."""
    return pipeline.write_heads(model, width, alone=True)


def _is_of(model: object, library: str, module: str, name: str) -> bool:
    """Whether a model is of a class of a library, without importing the library."""
    return library in sys.modules and isinstance(model, getattr(importlib.import_module(module), name))


def _one_sample(example: ArrayLike | None, what: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the first sample, (1, *input_shape)."""
    if example is None:
        raise TypeError(f"exporting {what} needs an example; give inputs, (count, *input_shape)")
    try:
        samples = np.asarray(example, np.float32)
    except (TypeError, ValueError) as error:
        raise EncodeError(
            f"samples hold values that are not numbers ({error}); encode them before, with the steps of a "
            "pipeline that do so, and compile the steps after these for their output",
            code="samples",
        ) from error
    if samples.ndim < 2 or samples.size == 0:
        raise EncodeError(f"an example has shape (count, *input_shape), got {samples.shape}", code="samples")
    return samples[:1]


def _lost_share(example: ArrayLike | None) -> float:
    """Return the largest rounding of a feature in single precision as a share of its spread: large for a
    time, for example, which is far from 0."""
    samples = np.asarray(example, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        shares = SINGLE * np.abs(samples).max(axis=0) / samples.std(axis=0)
    return float(np.max(shares, where=np.isfinite(shares), initial=0.0))


def _exporter(module: str, package: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PackageMissingError(package, extra) from error


def _from_torch(model: Any, example: Any) -> onnx.ModelProto:
    torch = _exporter("torch", "torch", "torch")
    _exporter("onnxscript", "onnxscript", "torch")
    named = dict(example) if isinstance(example, Mapping) else None
    for each in [example] if named is None else named.values():
        _one_sample(each, "a torch.nn.Module")
    dtype = next((parameter.dtype for parameter in model.parameters()), torch.float32)
    device = next((parameter.device for parameter in model.parameters()), None)

    def rows(values: Any, count: int, *, whole: bool) -> Any:
        first = np.asarray(values)[:count]
        if whole and first.dtype.kind in "biu":  # ids, and masks
            return torch.as_tensor(first.astype(bool if first.dtype.kind == "b" else np.int64)).to(device)
        return torch.as_tensor(first.astype(np.float32)).to(dtype).to(device)

    def arguments(count: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if named is not None:
            return (), {name: rows(each, count, whole=True) for name, each in named.items()}
        return (rows(example, count, whole=ids),), {}

    file, training, ids = io.BytesIO(), model.training, False
    try:
        model.eval()
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            if named is None and np.asarray(example).dtype.kind in "iu":
                ids = not _takes(model, *arguments(1))
            (args, by_name), pair = arguments(1), arguments(2)
            _require_computed(model, args, by_name)
            program = torch.onnx.export(
                model, args, kwargs=by_name, dynamo=True, opset_version=OPSET, verbose=False
            )
            program.save(file)
            fault = _fault(model, *pair)
            compared = [_results(model, *_alone(*arguments(FEW), place)) for place in range(FEW)]
    except ModelRefusedError:
        raise
    except Exception as error:
        refusal = not_exported(type(model).__qualname__, "torch.onnx.export", error)
        raise ModelRefusedError([refusal]) from error
    finally:
        model.train(training)
    if fault is not None:
        raise ModelRefusedError([fault])
    exported = load_model(file.getvalue())
    reasons = [require_outputs(type(model).__qualname__, exported, *each) for each in compared]
    if any(reasons):
        exported.metadata_props.add(key=UNCOMPARED, value=next(filter(None, reasons)))
    return exported


def _require_computed(model: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Refuse samples that a module does not take, in its own words and not in those of the exporter."""
    try:
        model(*args, **named)
    except Exception as error:
        if layers := [name for name, layer in model.named_modules() if _of_a_batch(layer)]:
            raise ModelRefusedError([samples_mixed(type(model).__qualname__, layers[0])]) from error
        required = [
            name
            for name, each in inspect.signature(model.forward).parameters.items()
            if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        raise ModelRefusedError([not_computed(type(model).__qualname__, required, error)]) from error


def _alone(args: tuple[Any, ...], named: Mapping[str, Any], place: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments with one of their samples; the last one beyond their number."""

    def row(values: Any) -> Any:
        begin = min(place, len(values) - 1)
        return values[begin : begin + 1]

    return [row(each) for each in args], {name: row(each) for name, each in named.items()}


def _results(model: Any, args: list[Any], named: Mapping[str, Any]) -> tuple[dict[Any, Any], list[Any]]:
    """Return the arguments of a module, by their names or places, and its outputs, as arrays."""
    given = {name: each.cpu().numpy() for name, each in (dict(enumerate(args)) | dict(named)).items()}
    outputs = _tensors(model(*args, **named))
    return given, [(each if each.is_complex() else each.double()).cpu().numpy() for each in outputs]


def require_outputs(
    name: str, exported: onnx.ModelProto, inputs: Mapping[Any, Any], outputs: Sequence[Any]
) -> str:
    """Refuse an exported module that computes something else than the module: exporters leave some arguments
    of layers out, such as ``divisor_override`` of AvgPool2d.

    Args:
        name: of the module, for the message.
        exported: what torch wrote.
        inputs: a sample, by the names of the arguments, or else in order.
        outputs: the module's outputs with axes for it.

    Returns:
        Why nothing was compared; empty if all outputs were.

    Raises:
        ModelRefusedError: with a `RefusalError`: outputs differ, or have other shapes.
    """
    taken = [each.name for each in exported.graph.input]
    values = [inputs[each] for each in taken] if set(taken) <= inputs.keys() else inputs.values()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            outcome = evaluated(exported, dict(zip(taken, values, strict=True)))
        except RuntimeError as error:
            raise ModelRefusedError([not_exported(name, "torch.onnx.export", error)]) from error
        if outcome is None:
            return "no output was compared with the module's: onnx has no evaluator for it"
        results = [each.astype(np.float64) for each in map(np.asarray, outcome) if each.ndim]
        shapes = [[each.shape for each in some] for some in (results, outputs)]
        if shapes[0] != shapes[1]:
            raise ModelRefusedError([other_shapes(name, "torch.onnx.export", *shapes)])
        for result, own in zip(results, outputs, strict=True):
            same = (result == own) | (np.isnan(result) & np.isnan(own))
            apart = np.abs(np.where(same, 0.0, result - own)).max(initial=0.0)
            largest = np.abs(own[np.isfinite(own)]).max(initial=0.0)
            if not apart <= DIFFERENT * largest:
                raise ModelRefusedError([other_function(name, "torch.onnx.export", apart, largest)])
    return ""


def _takes(model: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Whether a module computes with samples: an embedding takes whole numbers alone."""
    try:
        model(*args, **named)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True


def _fault(model: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> RefusalError | None:
    """Return why a module is no function of one sample: it changes an argument, gives another output for the
    same sample a second time, or outputs for two samples together that differ from those of each alone, as
    where the first axis is that of tokens. None if it is one, or takes no two samples.

    Args:
        args, named: both samples of every argument.
    """
    kind = type(model).__qualname__

    def outputs(places: Sequence[int]) -> list[Any]:
        return _tensors(
            model(*[each[places] for each in args], **{n: each[places] for n, each in named.items()})
        )

    given = {str(place): each[:1].clone() for place, each in enumerate(args)}
    given |= {name: each[:1].clone() for name, each in named.items()}
    kept = {name: each.clone() for name, each in given.items()}
    first = _tensors(
        model(*[given[str(place)] for place in range(len(args))], **{n: given[n] for n in named})
    )
    first = [each.clone() for each in first]
    for name, each in given.items():
        if not bool(((each == kept[name]) | (each != each)).all()):
            return argument_changed(kind, "" if name.isdigit() else name)
    if _apart(outputs([0]), first):
        return unrepeatable(kind)
    if any(len(each) < 2 for each in (*args, *named.values())):
        return None
    second = outputs([1])
    try:
        together, twice = outputs([0, 1]), outputs([0, 0])
    except (RuntimeError, TypeError, ValueError):
        return None
    if any(
        each.shape[:1] == (2,) and len(one) == 1 and _apart([each[place : place + 1]], [one])
        for place, alone in enumerate((first, second))
        for each, one in zip(together, alone, strict=True)
    ):
        if _apart(outputs([0, 1]), together):
            return unrepeatable(kind)  # by chance, the first sample was computed twice with the same numbers
        layers = [name for name, layer in model.named_modules() if _of_a_batch(layer)]
        counted = any(
            len(each) == 2 and _apart([each[:1]], [one]) for each, one in zip(twice, first, strict=True)
        )
        return samples_mixed(kind, layers[0] if layers else "", counted=counted)
    return None


def _of_a_batch(layer: Any) -> bool:
    """Whether a layer of a module normalises by the samples that are computed together."""
    known = "BatchNorm" in type(layer).__name__ and hasattr(layer, "running_mean")
    return known and (layer.running_mean is None or layer.training)


def _apart(results: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether tensors differ by more than `DIFFERENT` of the largest value; those of other shapes are not
    compared."""
    return any(
        each.shape == other.shape
        and each.numel() > 0
        and float((each.double() - other.double()).abs().max()) > DIFFERENT * float(each.double().abs().max())
        for each, other in zip(results, others, strict=True)
    )


def _tensors(outputs: Any) -> list[Any]:
    """Return the tensors with axes among a module's outputs, which the exporter finds in the same way."""
    leaves = importlib.import_module("torch.utils._pytree").tree_leaves(outputs)
    return [each for each in leaves if getattr(each, "ndim", 0)]


def _from_scikit_learn(model: Any, sample: np.ndarray[Any, np.dtype[Any]]) -> onnx.ModelProto:
    if (written := pipeline.write_heads(model, sample.shape[-1])) is not None:
        return written
    if type(last := _last(model)).__name__ in THRESHOLDS:
        steps = list(model.steps[:-1]) if last is not model else []
        pipe = importlib.import_module("sklearn.pipeline").Pipeline
        inner = pipe([*steps, ("classifier", last.estimator_)]) if steps else last.estimator_
        return _with_threshold(last, _from_scikit_learn(inner, sample))
    skl2onnx = _exporter("skl2onnx", "skl2onnx", "sklearn")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = with_equivalent(model, EXACT)
            exported = skl2onnx.to_onnx(
                exact, sample, target_opset={"": OPSET, "ai.onnx.ml": 3}, options=_options(exact)
            )
    except Exception as error:
        raise not_written(model, error) from error
    return _corrected(exact, load_model(exported.SerializeToString()))


def _corrected(model: Any, exported: onnx.ModelProto) -> onnx.ModelProto:
    """Return an exported estimator that computes what the estimator does, where skl2onnx is known not to.

    Of a discriminant analysis of two classes it writes the softmax of -d and d, whose probability is the
    sigmoid of 2 d and not of d; of one against one, the numbers of labels instead of these; of an isotonic
    calibration, the probability of the nearest threshold instead of a straight line between two; of a support
    vector machine of two classes, the scores of libsvm, whose first class is the positive one; of a network
    with several outputs, all of them in one column.
    """
    last = _last(model)
    kind, graph = type(last).__name__, exported.graph
    if kind in ("NuSVC", "SVC") and len(last.classes_) == 2 and not hasattr(last, "predict_proba"):
        _negate_scores(graph)
    if kind == "CalibratedClassifierCV" and last.method == "isotonic":
        _interpolate(exported)
    if kind == "MLPRegressor" and last.n_outputs_ > 1:
        (shape,) = [each for each in graph.initializer if each.name == graph.node[-1].input[1]]
        shape.CopyFrom(onnx.numpy_helper.from_array(np.asarray([-1, last.n_outputs_]), shape.name))
        graph.output[0].type.tensor_type.shape.dim[1].dim_value = last.n_outputs_
    if kind in ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"):
        # The client computes the exponential, so that no mean is below 0; its argument says as much.
        means = [node.output[0] for node in graph.node if node.op_type == "Exp"]
        onnx.helper.set_model_props(exported, {CLIENT: json.dumps(means)})
    if kind == "LinearDiscriminantAnalysis" and len(last.classes_) == 2:
        for node in graph.node:
            if node.op_type == "LinearClassifier":
                for attribute in node.attribute:
                    if attribute.name in ("coefficients", "intercepts"):
                        attribute.floats[:] = [value / 2 for value in attribute.floats]
    if kind == "OneVsOneClassifier":
        name, classes = graph.output[0].name, np.asarray(last.classes_)
        for node in graph.node:
            node.output[:] = [f"{each}/numbers" if each == name else each for each in node.output]
            node.input[:] = [f"{each}/numbers" if each == name else each for each in node.input]
        strings = classes.dtype.kind in "OSU"
        values = classes.astype(object) if strings else classes.astype(np.int64)
        graph.initializer.append(onnx.numpy_helper.from_array(values, f"{name}/labels"))
        flat = onnx.numpy_helper.from_array(np.asarray([-1], np.int64), f"{name}/shape")
        graph.initializer.append(flat)
        graph.node.extend(
            [
                onnx.helper.make_node("Reshape", [f"{name}/numbers", flat.name], [f"{name}/flat"]),
                onnx.helper.make_node("Gather", [f"{name}/labels", f"{name}/flat"], [name]),
            ]
        )
        del graph.output[0].type.tensor_type.shape.dim[1:]
        elements = onnx.TensorProto.STRING if strings else onnx.TensorProto.INT64
        graph.output[0].type.tensor_type.elem_type = elements
    return exported


def _negate_scores(graph: onnx.GraphProto) -> None:
    """Negate the scores of a support vector machine."""
    nodes = list(graph.node)
    (place,) = [index for index, node in enumerate(nodes) if node.op_type == "SVMClassifier"]
    scores = nodes[place].output[1]
    nodes[place].output[1] = f"{scores}/libsvm"
    nodes.insert(place + 1, onnx.helper.make_node("Neg", [f"{scores}/libsvm"], [scores], f"{scores}/sign"))
    del graph.node[:]
    graph.node.extend(nodes)


def _with_threshold(model: Any, exported: onnx.ModelProto) -> onnx.ModelProto:
    """Return an exported classifier whose label follows from a threshold of a probability.

    Raises:
        ModelRefusedError: the threshold is of a decision function.
    """
    scored = model.response_method == "decision_function"
    if scored or not hasattr(model.estimator_, "predict_proba"):
        kind = type(model).__qualname__
        text = f"the threshold of {kind} is of a decision function; compile its estimator_, and compare there"
        raise ModelRefusedError([RefusalError(text, code="export", model=kind)])
    scorer = getattr(model, "_curve_scorer", None)
    positive = model.pos_label if scorer is None else scorer._get_pos_label()
    threshold = getattr(model, "best_threshold_", getattr(model, "threshold", "auto"))
    classes = np.asarray(model.classes_)
    place = 1 if positive is None else int(np.flatnonzero(classes == positive)[0])
    graph = exported.graph
    maps = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "ZipMap"}
    label, shares = graph.output[0], maps.get(graph.output[1].name, graph.output[1].name)
    for node in graph.node:
        node.output[:] = [f"{each}/other" if each == label.name else each for each in node.output]
        node.input[:] = [f"{each}/other" if each == label.name else each for each in node.input]
    strings, make = classes.dtype.kind in "OSU", onnx.helper.make_node
    ordered = classes[[1 - place, place]]
    constants = {
        "place": np.asarray(place, np.int64),
        "least": np.asarray(0.5 if threshold == "auto" else threshold, np.float64),
        "labels": ordered.astype(object) if strings else ordered.astype(np.int64),
    }
    graph.initializer.extend(
        onnx.numpy_helper.from_array(each, f"threshold/{name}") for name, each in constants.items()
    )
    last: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Gather", [shares, "threshold/place"], "threshold/share", {"axis": 1}),
        ("Cast", ["threshold/share"], "threshold/double", {"to": onnx.TensorProto.DOUBLE}),
        ("GreaterOrEqual", ["threshold/double", "threshold/least"], "threshold/above", {}),
        ("Cast", ["threshold/above"], "threshold/number", {"to": onnx.TensorProto.INT64}),
        ("Gather", ["threshold/labels", "threshold/number"], label.name, {"axis": 0}),
    ]
    graph.node.extend(make(kind, inputs, [result], result, **more) for kind, inputs, result, more in last)
    return exported


def _interpolate(exported: onnx.ModelProto) -> None:
    """Replace the look-up of the nearest threshold of each isotonic calibration by straight pieces."""
    graph, client = exported.graph, list[str]()
    arrays = {each.name: onnx.numpy_helper.to_array(each).ravel() for each in graph.initializer}
    source = {node.output[0]: node for node in graph.node}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nearest = source.get(node.input[1]) if node.op_type == "ArrayFeatureExtractor" else None
        if nearest is None or nearest.op_type != "ArgMin":
            nodes.append(node)
            continue
        distance = source[source[nearest.input[0]].input[0]]
        score, places, values = distance.input[0], arrays[distance.input[1]], arrays[node.input[0]]
        name, width = node.output[0], np.diff(places)
        parts = {
            "low": places[None, :-1],
            "width": width[None],
            "none": np.zeros((), places.dtype),
            "all": np.ones((), places.dtype),
            "rise": np.diff(values)[None].astype(places.dtype),
            "columns": np.ones(1, np.int64),
            "first": values[:1].astype(places.dtype),
        }
        graph.initializer.extend(
            onnx.numpy_helper.from_array(each, f"{name}/{part}") for part, each in parts.items()
        )
        steps = [
            ("Sub", score, "above", "low"),
            ("Div", "above", "share", "width"),
            ("Clip", "share", "inside", "none", "all"),
            ("Mul", "inside", "risen", "rise"),
            ("ReduceSum", "risen", "sum", "columns"),
            ("Add", "sum", "", "first"),
        ]
        for operator, first, result, *others in steps:
            inputs = [score if first is score else f"{name}/{first}", *(f"{name}/{each}" for each in others)]
            output = f"{name}/{result}" if result else name
            nodes.append(onnx.helper.make_node(operator, inputs, [output], output))
        client.append(f"{name}/above")
    used = {each for node in nodes for each in node.input} | {each.name for each in graph.output}
    while unused := [node for node in nodes if used.isdisjoint(node.output)]:
        nodes = [node for node in nodes if node not in unused]
        used = {each for node in nodes for each in node.input} | {each.name for each in graph.output}
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.helper.set_model_props(exported, {CLIENT: json.dumps(client)})


def _last(model: Any) -> Any:
    """Return the last step of a pipeline; another estimator itself."""
    return model.steps[-1][1] if getattr(model, "steps", None) else model


def _options(model: Any) -> dict[int, dict[str, object]]:
    """Return no options for the steps of a pipeline: skl2onnx's default option for classifiers is not
    supported by LinearSVC. One against the rest gives scores where it has no probabilities."""
    result: dict[int, dict[str, object]] = {}
    for _, part in getattr(model, "steps", []):
        result |= {id(part): {}} | _options(part)
    if type(last := _last(model)).__name__ == "OneVsRestClassifier" and not hasattr(last, "predict_proba"):
        result[id(last)] = {"raw_scores": True}
    return result
