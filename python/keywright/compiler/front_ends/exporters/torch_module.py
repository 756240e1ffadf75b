"""Exports modules of PyTorch, and compares them with what is exported."""

import importlib
import inspect
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx

from keywright.compiler.front_ends.model_file import UNCOMPARED, load_model
from keywright.compiler.front_ends.scikit_learn.comparison import DIFFERENT, evaluated
from keywright.errors.engine import EncodeError
from keywright.errors.network import ModelRefusedError, RefusalError
from keywright.errors.refusals.exports import (
    argument_changed,
    not_computed,
    not_exported,
    other_function,
    other_shapes,
    samples_mixed,
    unrepeatable,
)

from .samples import OPSET, imported, one_sample

FEW = 4
"""Samples on which a module is compared with its export."""


def export_module(model: Any, example: Any) -> onnx.ModelProto:
    """Return a ``torch.nn.Module`` as ONNX; see `to_onnx`."""
    torch = imported("torch", "torch", "torch")
    imported("onnxscript", "onnxscript", "torch")
    named = dict(example) if isinstance(example, Mapping) else None
    if isinstance(example, list | tuple) and len(names := _required(model)) > 1:
        text = (
            f"the model takes several inputs; give a mapping with the arrays of {', '.join(map(repr, names))}"
        )
        raise EncodeError(text, code="samples")
    for name, each in ({None: example} if named is None else named).items():
        one_sample(each, "a torch.nn.Module", name)
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
        with warnings.catch_warnings(), torch.no_grad(), _without_fast_path(torch):
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


@contextmanager
def _without_fast_path(torch: Any) -> Iterator[None]:
    """Let layers of attention compute what their operators do. Their fast path, which exporters do not write,
    sets outputs at padding to 0."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _require_computed(model: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Refuse samples that a module does not take, in its own words and not in those of the exporter."""
    try:
        model(*args, **named)
    except Exception as error:
        if layers := [name for name, layer in model.named_modules() if _of_a_batch(layer)]:
            raise ModelRefusedError([samples_mixed(type(model).__qualname__, layers[0])]) from error
        raise ModelRefusedError([not_computed(type(model).__qualname__, _required(model), error)]) from error


def _required(model: Any) -> list[str]:
    """Return the arguments that a module requires."""
    return [
        name
        for name, each in inspect.signature(model.forward).parameters.items()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]


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
