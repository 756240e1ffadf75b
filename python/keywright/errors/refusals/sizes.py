"""Refusals of networks that need more levels, bootstraps or memory than there are."""

from collections.abc import Sequence

from keywright.errors.network import RefusalError


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


def ranges_missing(needed: int, available: int) -> RefusalError:
    """Return the refusal of bootstraps, whose inputs must be at most 1, without calibration data."""
    return RefusalError(
        f"the network consumes {needed} levels, but {available} are available before a bootstrap, "
        "whose inputs must be at most 1; give typical inputs to measure them on (calibration=)",
        code="ranges",
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


def too_wide(needed: int, allowed: int) -> RefusalError:
    """Return the refusal of layers whose plaintext diagonals need more bytes than allowed."""
    return RefusalError(
        f"the network's diagonals take {needed} bytes, but {allowed} are allowed; use smaller layers, or "
        "fewer samples in shared ciphertexts (batch=)",
        code="diagonals",
        needed=needed,
        allowed=allowed,
    )
