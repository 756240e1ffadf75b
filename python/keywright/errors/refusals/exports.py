"""Refusals of modules and estimators that their exporters cannot write, or write as another function."""

import re
from collections.abc import Sequence
from traceback import walk_tb

from keywright.errors.network import RefusalError

LEFT_OUT = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\.?\s*(Caused by:|For more information).*", re.DOTALL)
"""Codes by which terminals change colours, and what exporters write behind a cause about themselves."""


def _innermost(error: BaseException) -> str:
    """Return the text of an error's first cause in one line, without the colours of a terminal."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(LEFT_OUT.sub("", str(error)).split()) or type(error).__name__


def _functions(error: BaseException | None) -> set[str]:
    """Return the names of all functions in which an error and its causes were raised."""
    names = set()
    while error is not None:
        names |= {frame.f_code.co_name for frame, _ in walk_tb(error.__traceback__)}
        error = error.__cause__
    return names


def not_computed(model: str, arguments: Sequence[str], error: Exception) -> RefusalError:
    """Return the refusal of a module that raises an error for the calibration data.

    Args:
        arguments: that the module requires.
    """
    advice = "give samples of the shape that it takes"
    if len(arguments) > 1:
        advice = f"give a mapping with the arrays of {', '.join(map(repr, arguments))}"
    return RefusalError(
        f"{model} raises an error for the calibration data: {_innermost(error)[:300]}; {advice}",
        code="export",
        model=model,
    )


def not_exported(model: str, exporter: str, error: Exception) -> RefusalError:
    """Return the refusal of a model that the exporter of its library cannot write as ONNX, with the innermost
    cause of the exporter's error, without the colours of a terminal."""
    text = _innermost(error)
    advice = "export it to ONNX yourself, or build it from other layers"
    if "data-dependent" in text:
        advice = "choose between results by torch.where, in place of branches and loops on values"
    if "_detect_is_causal_mask" in _functions(error):
        advice = "pass is_causal=True with a causal mask, and is_causal=False with any other"
    if "only 4D query" in text:
        advice = "give queries, keys and values an axis of heads, as in query.unsqueeze(1)"
    if "Cache" in text:
        advice = "set use_cache=False in its configuration: a program computes whole sequences"
    return RefusalError(
        f"{exporter} cannot export {model}: {text[:300]}{'...' if len(text) > 300 else ''}; {advice}",
        code="export",
        model=model,
        exporter=exporter,
    )


def other_function(model: str, exporter: str, apart: float, largest: float) -> RefusalError:
    """Return the refusal of a model whose exporter writes another function."""
    return RefusalError(
        f"{exporter} writes another function than {model}: an output is off by {apart:.3g}, and the largest "
        f"is {largest:.3g}; it probably leaves an argument of a layer out: export the layers one by one to "
        "find it, and compute what it does in the module's forward",
        code="export",
        model=model,
        exporter=exporter,
    )


def other_shapes(
    model: str, exporter: str, given: Sequence[tuple[int, ...]], own: Sequence[tuple[int, ...]]
) -> RefusalError:
    """Return the refusal of a model whose exporter writes outputs of other shapes."""
    written, computed = (", ".join(map(str, shapes)) or "none" for shapes in (given, own))
    return RefusalError(
        f"{exporter} writes another function than {model}: for a sample, its outputs have the shapes "
        f"{written}, and those of {model} have {computed}; return tensors of real numbers from the module's "
        "forward, whose shapes do not depend on the sample",
        code="export",
        model=model,
        exporter=exporter,
    )


def other_trees(model: str, special: float | None, given: float, own: float) -> RefusalError:
    """Return the refusal of a fitted object that predicts something else than its trees.

    Args:
        special: the value of some features of the sample; None for values like those of the calibration data.
        given, own: what the trees and the object predict.
    """
    where = "for a sample" if special is None else f"for a sample with features that are {special:g}"
    return RefusalError(
        f"{model} predicts something else than its trees: {where} it gives {own:.6g}, and they {given:.6g}, "
        "because a parameter that they do not hold changes predictions; fit it with the default of that one",
        code="export",
        model=model,
    )


def single_precision(model: str, lost: float) -> RefusalError:
    """Return the refusal of an estimator that its exporter writes in single precision alone, which rounds a
    feature by ``lost`` of its spread."""
    return RefusalError(
        f"skl2onnx writes {model} in single precision, which rounds a feature by {lost:.2g} of its spread; "
        "fit it in a pipeline behind a StandardScaler, which is written in double precision",
        code="export",
        model=model,
        lost=lost,
    )


def samples_mixed(model: str, layer: str = "", *, counted: bool = False) -> RefusalError:
    """Return the refusal of a module whose samples depend on each other.

    Args:
        layer: that normalises by all samples; empty if there is none.
        counted: whether a sample's outputs change if it is given twice, and not only beside another.
    """
    why = "so its first axis is not that of samples"
    way = "build its layers with batch_first=True, or move the axis in forward"
    if layer:
        why = f"because its layer {layer!r} normalises by the samples that are computed together"
        way = "train it with track_running_stats=True, and leave it in evaluation mode"
    elif counted:
        why = "so it depends on the number of samples, or its first axis is not that of samples"
        way = f"choose in forward what holds for one sample; for another axis, {way}"
    return RefusalError(
        f"{model} computes other outputs for two samples together than for each alone, {why}; {way}",
        code="batch",
        model=model,
    )


def unrepeatable(model: str) -> RefusalError:
    """Return the refusal of a module that is random or has a state."""
    return RefusalError(
        f"{model} computes other outputs when it gets the same sample a second time, so it draws random "
        "numbers or keeps a state from call to call; write its forward as a function of the sample alone",
        code="export",
        model=model,
    )


def argument_changed(model: str, argument: str) -> RefusalError:
    """Return the refusal of a module that changes its argument.

    Args:
        argument: its name; empty for a single one.
    """
    which = f"its argument {argument!r}" if argument else "its argument"
    return RefusalError(
        f"{model} changes {which} in place, so a second call would get another sample; write the result to a "
        "tensor of its own in forward, as x = x * 2 does and x.mul_(2) does not",
        code="export",
        model=model,
    )
