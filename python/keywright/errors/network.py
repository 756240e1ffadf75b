"""The exceptions of compiling, checking, storing and running networks."""

import math
import re
from collections.abc import Sequence
from traceback import walk_tb
from typing import Any, Self

from keywright._units import rounded_up

from .engine import KeywrightError

NOTHING_SHOWN = (
    "a mask hides all elements of a row, such as all tokens of a sentence, and the softmax of nothing is not "
    "defined; leave at least one"
)

NO_SUM = 1e-6
"""A sum of exponentials that is smaller than this share of the least calibrated one has no term."""

LEFT_OUT = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\.?\s*(Caused by:|For more information).*", re.DOTALL)
"""Codes by which terminals change colours, and what exporters write behind a cause about themselves."""


class RefusalError(KeywrightError):
    """One reason why a model cannot be compiled; raised together with all others in `ModelRefusedError`.

    * ``model``: the model contradicts itself: shapes that do not fit, values that nothing computes,
      non-finite weights.
    * ``operator``, ``attribute``, ``dynamic_shape``, ``batch``: an operator, one of its options, or a
      dimension without an encrypted form.
    * ``export``: an estimator has no encrypted form, or the exporter of a library cannot write the model.
    * ``depth``, ``placement``: more levels than are available, or no bootstrap that can follow a layer.
    * ``size``, ``diagonals``: a part exceeds a limit of the compiler; nothing of that size was allocated.
    * ``activations``, ``ranges``: calibration data are missing, for the ranges of activations or of values
      that are bootstrapped.
    * ``domain``: calibration data leave the domain of a function, such as a logarithm.
    * ``method``, ``activation``: the requested method does not suit the function, or the model has no such
      function.
    * ``accuracy``, ``overflow``, ``labels``: polynomials do not follow the model as closely as required.
    * ``precision``: encryption would add an error that is large compared with the outputs.
    * ``client``: a part for clients that breaks the rules for their parts.
    * ``mask``: a constant that hides elements only in part, or large negative numbers of an input.

    What to do: change the model as the message says, give calibration data (calibration=), or require less
    (accuracy=, error=, noise=).

    Attributes:
        details: numbers and names of this case, each of which is also an attribute.
        needed, available: levels that the network consumes, and that there are (``depth``, ``ranges``).
        size, allowed: of the part, and the limit (``size``).
    """

    code = "model"
    needed: int
    available: int
    size: int
    allowed: float

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message, code=code, **details)
        self.details = details


class ModelRefusedError(ExceptionGroup[RefusalError], KeywrightError):
    """The model cannot be compiled (``refused``). Its ``exceptions`` are all the reasons.

    What to do: as for each `RefusalError` among them; `codes` are their codes.
    """

    code = "refused"

    def __new__(cls, reasons: Sequence[RefusalError]) -> Self:
        lines = "".join(f"\n  - {reason}" for reason in reasons)
        return super().__new__(cls, f"the model cannot be compiled:{lines}\n", reasons)

    def __init__(self, reasons: Sequence[RefusalError]) -> None:
        """See `ModelRefusedError.exceptions` for the reasons."""

    @property
    def reasons(self) -> list[RefusalError]:
        """All reasons, in order."""
        return [reason for reason in self.exceptions if isinstance(reason, RefusalError)]

    @property
    def codes(self) -> set[str]:
        """Codes of all reasons."""
        return {reason.code for reason in self.reasons}


class OutOfRangeError(KeywrightError):
    """A sample drives a value out of the range that the program is calibrated for: its result would be wrong
    (``out_of_range``).

    What to do: check the sample's scale, or compile with calibration data that cover it.

    Attributes:
        layer: the layer that takes the value.
        value: the value furthest outside.
        low, high: the range.
    """

    code = "out_of_range"

    def __init__(
        self,
        layer: str,
        value: float,
        low: float,
        high: float,
        *,
        approximated: bool = False,
        total: bool = False,
    ) -> None:
        """State the value and its range.

        Args:
            layer, value, low, high: see the attributes.
            approximated: whether polynomials stand for activations before the layer.
            total: whether the value is a sum of what a mask shows.
        """
        finer = ", or with finer polynomials before this layer (activations=, error=)" if approximated else ""
        way = (
            "check the sample's scale, or compile with calibration data that cover it (calibration=)" + finer
        )
        if total and abs(value) < low * NO_SUM:
            way = NOTHING_SHOWN
        far = max(abs(low), abs(high)) / (high - low) if high > low else 1.0
        digits = 6 + round(
            math.log10(min(max(far, 1.0), 1e11))
        )  # six of a narrow range that is far from 0, too
        super().__init__(
            f"{layer} takes values from {low:.{digits}g} to {high:.{digits}g}, but this sample gives "
            f"{value:.{digits}g}, so the encrypted result would be wrong; {way}"
        )
        self.layer, self.value, self.low, self.high = layer, value, low, high


class PackageMissingError(KeywrightError, ImportError):
    """A package of one of Keywright's extras is not installed (``package``).

    What to do: install it with pip install 'keywright[EXTRA]'; the message names the extra.

    Attributes:
        package: its name.
        extra: the extra that installs it.
    """

    code = "package"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install it with: pip install 'keywright[{extra}]'")
        self.package, self.extra = package, extra


def too_deep(
    needed: int, available: int, maxima: Sequence[str] = (), *, approximated: bool = False
) -> RefusalError:
    """Return the refusal of a network that needs more levels than are available.

    Args:
        needed: levels that the network consumes from input to output.
        available: levels that the parameters have above the output level.
        maxima: layers that compare.
        approximated: whether polynomials were chosen that follow the model.
    """
    fewer = f"AveragePool instead of {', '.join(maxima[:3])}" if maxima else "fewer layers"
    follows = ", with the cheapest polynomials that follow the model" if approximated else ""
    less = "a lower accuracy (accuracy=, error=), " if approximated else ""
    return RefusalError(
        f"the network consumes {needed} levels{follows}, but {available} are available; use parameters "
        f"with more levels or with bootstraps (parameters=), {less}activations of lower degree "
        f"(activations=), or {fewer}",
        code="depth",
        needed=needed,
        available=available,
    )


def too_large(what: str, unit: str, size: int, allowed: int, advice: str | None = None) -> RefusalError:
    """Return the refusal of a part of the model that would exceed a limit of the compiler.

    Args:
        what, unit: the part, and what its size counts.
        size: its size.
        allowed: the limit.
        advice: what else to do than to use smaller layers.
    """
    less = advice or "use smaller images, shorter sequences, fewer channels or a stride before wide layers"
    return RefusalError(
        f"{what} takes {size} {unit}, but {allowed} are allowed; {less}",
        code="size",
        size=size,
        allowed=allowed,
    )


def unsupported_operator(node: str, operator: str, advice: str) -> RefusalError:
    """Return the refusal of an ONNX operator without an encrypted form, with advice for it."""
    return RefusalError(
        f"node {node!r}: operator {operator} is not supported; "
        f"{advice or 'replace it by operators that have an encrypted form'}",
        code="operator",
        node=node,
        operator=operator,
    )


def unsupported_attribute(
    node: str, operator: str, attribute: str, value: object, allowed: str
) -> RefusalError:
    """Return the refusal of an attribute or operand that has no encrypted form. Without a node, it is of an
    object of a library."""
    where = f"node {node!r}: {operator}" if node else operator
    return RefusalError(
        f"{where} with {attribute} = {value} is not supported; it needs {allowed}",
        code="attribute",
        node=node,
        operator=operator,
        attribute=attribute,
    )


def mask_without_effect(node: str, constant: float, gap: float) -> RefusalError:
    """Return the refusal of a finite mask that leaves elements a share of their row.

    Args:
        constant: the lowest of the mask.
        gap: by how much the largest element of a row exceeds a hidden one, on the calibration data.
    """
    return RefusalError(
        f"node {node!r}: Softmax reads the constant {constant:g} as a mask, and on the calibration data an "
        f"element that it hides is {gap:.4g} below the largest of its row, where 36 are needed; export the "
        "model with minus infinity in its mask",
        code="mask",
        node=node,
    )


def too_far_apart(node: str, farthest: float) -> RefusalError:
    """Return the refusal of a softmax whose operand no polynomial of the exponential takes.

    Args:
        farthest: distance of an element from the mean of its row, on the calibration data.
    """
    return RefusalError(
        f"node {node!r}: an element of the operand of Softmax is {farthest:.4g} above the mean of its row on "
        "the calibration data, which no polynomial of the exponential takes; if the input has a mask of "
        "large negative numbers, give it as 1 for tokens and 0 for padding, from which the model makes them",
        code="mask",
        node=node,
    )


def no_batch_axis(name: str, shape: Sequence[int], *, calibrated: bool) -> RefusalError:
    """Return the refusal of an input whose first axis is no batch.

    Args:
        calibrated: whether the samples of calibration data have the input's own shape, which shows it.
            Otherwise the model can use the input in no other way.
    """
    shown = ", ".join(map(str, shape))
    why = f"the calibration data have samples of shape ({shown})" if calibrated else "no sample would be left"
    return RefusalError(
        f"input {name!r} has shape ({shown}), whose first axis would be the batch, but {why}; export "
        f"the model with a batch axis, for inputs of shape (batch, {shown})",
        code="dynamic_shape",
        name=name,
    )


def dynamic_shape(name: str, shape: Sequence[object]) -> RefusalError:
    """Return the refusal of a dimension other than the batch that is not a number."""
    return RefusalError(
        f"value {name!r} has shape ({', '.join(map(str, shape))}); give calibration data "
        "of as many axes (calibration=), from which open dimensions are taken, or fix every dimension but "
        "the first when exporting the model",
        code="dynamic_shape",
        name=name,
    )


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


def mask_of_clients(least: float) -> RefusalError:
    """Return the refusal of a model whose mask no program can read, so that a client would encrypt it."""
    return RefusalError(
        f"the client's first steps give {least:.3g}, as masks do, which cannot be encrypted; write the mask "
        "as a choice between 0 and minus infinity (Where) that is added to the operand of a softmax",
        code="client",
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


def cannot_place(
    layer: str,
    need: int,
    consumed: int,
    levels: int,
    offered: Sequence[tuple[int, int]],
    unbounded: dict[str, float],
) -> RefusalError:
    """Return the refusal of a layer that no placement of bootstraps reaches.

    Args:
        layer: kind and ONNX node of the layer.
        need: level at which its result is needed.
        consumed: levels that it consumes.
        levels: highest level of a ciphertext.
        offered: input and output level of each bootstrap.
        unbounded: largest absolute value of layers whose values no constant factor can bring to at most 1, so
            that they cannot be bootstrapped.
    """
    between = ", ".join(f"{low} to {high}" for low, high in offered)
    text = (
        f"{layer} is needed at level {need} and consumes {consumed}, which exceeds the highest level, "
        f"{levels}, and no bootstrap ({between}) can follow it"
    )
    if unbounded:
        shown = ", ".join(f"{name} ({bound:.3g})" for name, bound in list(unbounded.items())[:5])
        text += f"; these have values above 1 that no constant factor can reduce: {shown}"
    return RefusalError(
        f"{text}; use a bootstrap with more levels, activations of lower degree, or a normalisation "
        "before a layer with large values",
        code="placement",
        layer=layer,
        need=need,
        consumed=consumed,
        levels=levels,
        unbounded=unbounded,
    )


def too_wide(needed: int, allowed: int) -> RefusalError:
    """Return the refusal of layers whose plaintext diagonals need more bytes than allowed."""
    return RefusalError(
        f"the network's diagonals take {needed} bytes, but {allowed} are allowed; use smaller layers, or "
        "fewer samples in shared ciphertexts (batch=)",
        code="diagonals",
        needed=needed,
        allowed=allowed,
    )


def not_a_statistic(label: str) -> RefusalError:
    """Return the refusal of a stored constant for a function of values."""
    return RefusalError(
        f"{label} is not the inverse of a statistic, so no constant can replace it; use stored "
        "only in normalisations, such as LayerNormalization, and chebyshev:DEGREE here",
        code="method",
        label=label,
    )


def not_piecewise(layer: str, method: str) -> RefusalError:
    """Return the refusal of a composition of minimax polynomials for a function that is not piecewise
    linear."""
    return RefusalError(
        f"{layer} is not piecewise linear, which {method} needs; use chebyshev:DEGREE for it (activations=)",
        code="method",
        layer=layer,
        method=method,
    )


def unknown_activation(names: Sequence[str], known: Sequence[str]) -> RefusalError:
    """Return the refusal of a method for a name that is neither a function nor a node of the model."""
    way_out = f"use one of {', '.join(known)}" if known else "the model has none; leave activations= out"
    return RefusalError(
        f"no activation is called {', '.join(map(repr, names))}; {way_out}",
        code="activation",
        names=tuple(names),
    )


def inaccurate(
    accuracy: float | None,
    error: float | None,
    agreement: float | None,
    change: float,
    levels: int,
    *,
    default: str | None = None,
    loosest: str = "",
    bins: int = 0,
) -> RefusalError:
    """Return the refusal of a model that no choice of polynomials follows as closely as required.

    Args:
        accuracy, error: the requirement; with a default, the `error` that the finest choice meets.
        agreement: share of calibration samples with equal predictions that the finest choice reaches; None
            for one output.
        change: the largest change of an output with it; of that which the default names.
        levels: levels that the network consumes with it.
        default: the default rule, if nothing else is required.
        loosest: the worst fit.
        bins: bins of each feature of trees, where nothing else is approximated.
    """
    required = [] if accuracy is None else [f"{accuracy:.4%} equal predictions"]
    share = "" if bins else ", of which encryption has a sixteenth"
    required += [] if error is None else [f"outputs within {error:g}{share}"]
    reached = "" if agreement is None else f"{agreement:.4%} equal predictions and "
    within = f"outputs within {change:.3g}" if default is None or bins else f"{change:.3g} for that output"
    first = ""
    if loosest.startswith(("Greater", "Less")):
        first = (
            "; clients compute a comparison of features exactly in a Binarizer before the estimator, "
            "such as BernoulliNB(binarize=None)"
        )
    less = f"{'require less' if default is None else 'allow more'} (accuracy=, error=)"
    if default is not None and error is not None:
        less = f"allow more (error={rounded_up(error)}, or accuracy= if predictions alone count)"
    finest = f"{bins} bins of each feature" if bins else "the finest polynomials, or those requested,"
    way_out = (
        f"{less}, allow more bins (bins=), or publish thresholds (thresholds=)"
        if bins
        else f"the loosest fit is {loosest}; {less}, request a higher degree for it (activations=), "
        "give calibration data that cover the inputs (calibration=), or normalise before activations of "
        "large values"
    )
    way_out += first
    return RefusalError(
        f"the {'requirement' if default is None else 'default'} on calibration data is "
        f"{default or ' and '.join(required)}; {finest} reach {reached}{within}, "
        f"with {levels} levels; {way_out}",
        code="accuracy",
        agreement=agreement,
        change=change,
        levels=levels,
    )


def overflowing(
    layer: str, method: str, low: float, high: float, change: float, excess: float | None
) -> RefusalError:
    """Return the refusal of requested polynomials with which outputs grow beyond any use.

    Args:
        layer: function and node of the first polynomial whose input leaves its range, or of the loosest.
        method: the method of its approximation.
        low, high: its range.
        change: the largest change of an output.
        excess: how far values leave the range, as a share of its width; None if they do not.
    """
    leaves = "" if excess is None else f", which calibration data leave by {excess:.3g} times its width"
    return RefusalError(
        f"the outputs change by {change:.3g} on calibration data, first because of {layer}: {method} on "
        f"{low:.6g} to {high:.6g}{leaves}; request a finer method (activations=) or none, give "
        "calibration data that cover the inputs (calibration=), or a larger margin (ranges=)",
        code="overflow",
        layer=layer,
        method=method,
        low=low,
        high=high,
        change=change,
    )


def no_labels() -> RefusalError:
    """Return the refusal of a required accuracy for a model whose outputs are no labels."""
    return RefusalError(
        "the model's outputs are values and not labels, so it has no predictions; bound the change of "
        "the outputs instead (error=)",
        code="labels",
    )


def ranges_missing(needed: int, available: int) -> RefusalError:
    """Return the refusal of bootstraps, whose inputs must be at most 1, without calibration data."""
    return RefusalError(
        f"the network consumes {needed} levels, but {available} are available before a bootstrap, "
        "whose inputs must be at most 1; give typical inputs to measure them on (calibration=)",
        code="ranges",
        needed=needed,
        available=available,
    )


def calibration_missing(functions: Sequence[str]) -> RefusalError:
    """Return the refusal of activations whose input range is unknown without calibration data."""
    shown = ", ".join(functions[:3]) + (f" and {len(functions) - 3} more" if len(functions) > 3 else "")
    return RefusalError(
        f"{shown} must be fitted on measured ranges; give typical inputs (calibration=)",
        code="activations",
        functions=tuple(functions),
    )


def out_of_domain(layer: str, low: float, high: float, *, both: bool, total: bool = False) -> RefusalError:
    """Return the refusal of a function that calibration data drive out of its domain.

    Args:
        layer: the function and its node.
        low, high: of the values that enter it.
        both: whether it is defined on both sides of 0.
        total: whether the values are sums of what a mask shows.
    """
    domain = "whose values have to be on one side of 0" if both else "which needs values above 0"
    way = "add a constant before it that keeps them there"
    if total and abs(low) < high * NO_SUM:
        way = NOTHING_SHOWN
    return RefusalError(
        f"calibration data drive values from {low:.6g} to {high:.6g} into {layer}, {domain}; {way}, or leave "
        "out these samples (calibration=)",
        code="domain",
        layer=layer,
        low=low,
        high=high,
    )


def imprecise(
    text: str,
    share: float,
    allowed: float,
    *,
    ways: Sequence[str] = (),
    divisor: float = 1.0,
    preset: str | None = None,
) -> RefusalError:
    """Return the refusal of a model whose error of encryption is too large a ``share`` of the spread of an
    output.

    Args:
        text: states the error.
        share, allowed: the share, and the largest that is allowed.
        ways: other ways out.
        divisor: by which clients divide inputs, so that the error of inputs grows as much.
        preset: parameters that are precise enough, if they are known.
    """
    cause = (
        f"; clients divide inputs by {divisor:g} because of their range, and errors of inputs grow by as much"
        if divisor > 1
        else ""
    )
    larger = "parameters with a larger scale (parameters=)"
    uses = [larger if preset is None else f"parameters={preset!r}", *ways]
    uses += ["features scaled to a smaller range before the model"] if divisor > 1 else []
    return RefusalError(
        f"{text}{cause}; use {', '.join(uses)}, outputs of similar size, or allow more than {allowed:g} "
        "times the spread (noise=)",
        code="precision",
        share=share,
        allowed=allowed,
    )
