"""`compile`: an ONNX model becomes a program, or is refused with every reason."""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike

from .assembly import assemble, needed_levels
from .errors import CalibrationMissing, InvalidSamples, ModelRefused, RefusalReason, TooDeep, TooWide
from .fitting import replace_activations
from .graph import Activation, Graph, Input
from .importer import import_model, load_model
from .layout import next_power_of_two
from .operators import ACTIVATIONS
from .packing import choose_layouts
from .program import Program
from .simplify import scale_value, simplify
from .sparse import Vector

MAX_DEGREE = 63


def compile(  # noqa: A001 (read as keywright.nn.compile)
    model: onnx.ModelProto | str | Path | bytes,
    *,
    slots: int,
    levels: int,
    calibration: ArrayLike | None = None,
    degrees: Mapping[str, int] | None = None,
    margin: float = 0.1,
    input_level: int | None = None,
    output_level: int = 0,
    max_plaintext_bytes: int = 4 << 30,
) -> Program:
    """Compile an ONNX model into a program on ciphertexts.

    Linear layers that follow each other are merged, batch normalisation and the mapping of activation ranges
    disappear in the layers around them, activations of degree 2 become one product. Every value is as low in
    levels as possible.

    Args:
        model: the model, its bytes, or its path.
        slots: most slots per ciphertext, N/2 at full packing; fewer are used if the network fits.
        levels: highest level of the parameters.
        calibration: typical inputs, (count, *input_shape), on which the ranges of activations and of the
            output are measured. Without them the output is not scaled and must fit under the last prime as it
            is.
        degrees: degree of the polynomial that stands for each ONNX activation ("Relu": 15); 7 where not
            given. Degree 2 takes one level, degree d otherwise ceil(log2(d + 1)).
        margin: by which share of its width each measured range is widened on both sides.
        input_level: at which ciphertexts enter; the lowest possible where not given.
        output_level: at which the result leaves.
        max_plaintext_bytes: bound on the memory of the diagonals, in double precision.

    Raises:
        ModelRefused: with every reason found: `UnsupportedOperator`, `UnsupportedAttribute`, `DynamicShape`,
            `InvalidModel`, `TooDeep`, `TooWide`, `CalibrationMissing`.
        InvalidSamples: calibration data of the wrong shape or not finite.
        ValueError: arguments out of their bounds.
    """
    degrees = dict(degrees or {})
    _check_arguments(slots, levels, degrees, margin, input_level, output_level)
    try:
        loaded = load_model(model)
    except RefusalReason as reason:
        raise ModelRefused([reason]) from reason
    graph, reasons = import_model(loaded, degrees)
    if graph.output >= 0:
        graph = simplify(graph)
        labels = [node.label for node in graph.nodes.values() if isinstance(node, Activation)]
        if labels and calibration is None:
            reasons.append(CalibrationMissing(labels))
        reasons += _too_deep(graph, levels, input_level, output_level)
    if reasons:
        raise ModelRefused(reasons)

    samples = _samples(graph, calibration)
    graph, fitted = replace_activations(graph, samples, margin)
    graph = simplify(graph)
    if too_deep := _too_deep(graph, levels, input_level, output_level):
        raise ModelRefused(too_deep)
    output_scale = _bound_output(graph, samples, margin)
    layouts = choose_layouts(graph, slots)
    needed = needed_levels(graph, output_level)
    source = next(number for number, node in graph.nodes.items() if isinstance(node, Input))
    entry = needed[source] if input_level is None else input_level
    program = assemble(graph, layouts, needed, entry, fitted, output_scale)
    size = sum(d.nbytes for t in program.transforms for diagonals in t.diagonals for d in diagonals.values())
    if size > max_plaintext_bytes:
        raise ModelRefused([TooWide(size, max_plaintext_bytes)])
    return program


def _check_arguments(
    slots: int,
    levels: int,
    degrees: dict[str, int],
    margin: float,
    input_level: int | None,
    output_level: int,
) -> None:
    if slots < 1 or next_power_of_two(slots) != slots:
        raise ValueError(f"slots must be a power of two, got {slots}")
    if not 0 <= output_level <= levels:
        raise ValueError(f"output_level must be between 0 and levels = {levels}, got {output_level}")
    if input_level is not None and not output_level <= input_level <= levels:
        raise ValueError(f"input_level must be between {output_level} and {levels}, got {input_level}")
    if not 0 <= margin < 10:
        raise ValueError(f"margin is a share of the measured width between 0 and 10, got {margin}")
    for name, degree in degrees.items():
        if name not in ACTIVATIONS:
            raise ValueError(f"degrees names {name!r}; activations are {', '.join(sorted(ACTIVATIONS))}")
        if not 1 <= degree <= MAX_DEGREE:
            raise ValueError(f"the degree of {name} must be between 1 and {MAX_DEGREE}, got {degree}")


def _too_deep(graph: Graph, levels: int, input_level: int | None, output_level: int) -> list[RefusalReason]:
    available = (levels if input_level is None else input_level) - output_level
    depth = graph.depth()
    return [TooDeep(depth, available)] if depth > available else []


def _bound_output(graph: Graph, samples: Vector, margin: float) -> float:
    """Divide the output by a power of two so that samples give at most 1, and return that power."""
    peak = max((float(np.abs(graph.evaluate(sample)[graph.output]).max()) for sample in samples), default=0.0)
    scale = 2.0 ** max(math.ceil(math.log2(peak * (1 + margin))), 0) if peak > 0 else 1.0
    return scale if scale > 1 and scale_value(graph, graph.output, 1 / scale, reader=None) else 1.0


def _samples(graph: Graph, calibration: ArrayLike | None) -> Vector:
    shape = next(node.shape for node in graph.nodes.values() if isinstance(node, Input))
    size = int(np.prod(shape, dtype=np.int64))
    if calibration is None:
        return np.zeros((0, size))
    samples = np.asarray(calibration, np.float64)
    if samples.ndim == 0 or samples.shape[1:] != shape or len(samples) == 0:
        raise InvalidSamples(f"calibration data have shape (count, {shape}), got {samples.shape}")
    if not np.isfinite(samples).all():
        raise InvalidSamples(
            f"calibration data hold {int((~np.isfinite(samples)).sum())} values that are not finite"
        )
    return samples.reshape(len(samples), size)
