"""Refusals of polynomials, bins and parameters that follow a model less closely than required."""

from collections.abc import Sequence

from keywright._units import numbered, rounded_up
from keywright.errors.network import NO_SUM, NOTHING_SHOWN, RefusalError


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


def calibration_missing(functions: Sequence[str]) -> RefusalError:
    """Return the refusal of activations whose input range is unknown without calibration data."""
    shown = ", ".join(functions[:3]) + (f" and {len(functions) - 3} more" if len(functions) > 3 else "")
    return RefusalError(
        f"{shown} must be fitted on measured ranges; give typical inputs (calibration=)",
        code="activations",
        functions=tuple(functions),
    )


def out_of_domain(
    layer: str, low: float, high: float, rows: Sequence[int], *, both: bool, total: bool = False
) -> RefusalError:
    """Return the refusal of a function that calibration data drive out of its domain.

    Args:
        layer: the function and its node.
        low, high: of the values that enter it.
        rows: of the calibration data, that have values on its wrong side, or on the side of fewer.
        both: whether it is defined on both sides of 0.
        total: whether the values are sums of what a mask shows.
    """
    domain = "whose values have to be on one side of 0" if both else "which needs values above 0"
    way = "add a constant before it that keeps them there"
    if total and abs(low) < high * NO_SUM:
        way = NOTHING_SHOWN
    return RefusalError(
        f"calibration data drive values from {low:.6g} to {high:.6g} into {layer}, {domain}; {way}, or leave "
        f"out {numbered(rows)} (calibration=)",
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
