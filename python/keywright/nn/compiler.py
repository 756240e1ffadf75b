"""`compile`: an ONNX model becomes a program, or is refused with every reason."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike

from keywright._core import polynomial_relinearizations

from .assembly import Assembly
from .bootstraps import Bootstrap
from .bounding import bound_values
from .costs import CostTable, Work
from .errors import (
    CalibrationMissing,
    InvalidBootstrap,
    InvalidSamples,
    ModelRefused,
    RangesMissing,
    RefusalReason,
    TooDeep,
    TooWide,
)
from .fitting import replace_activations
from .graph import Activation, Graph, Input, Linear, Multiply, Polynomial
from .importer import import_model, load_model
from .layout import Layout, next_power_of_two
from .lowering import LoweredLinear, lower
from .operators import ACTIVATIONS
from .packing import choose_layouts
from .placement import Problem, assign_levels, place
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
    output_level: int | None = None,
    bootstraps: Sequence[Bootstrap] = (),
    fixed_slots: bool = False,
    headroom: float = 2.0,
    costs: CostTable | None = None,
    max_plaintext_bytes: int = 4 << 30,
) -> Program:
    """Compile an ONNX model into a program on ciphertexts.

    Linear layers that follow each other are merged, batch normalisation and the mapping of activation ranges
    disappear in the layers around them, activations of degree 2 become one product. Every value is as low in
    levels as possible. Where levels do not suffice, values are bootstrapped: see `keywright.nn.placement`.

    Args:
        model: the model, its bytes, or its path.
        slots: most slots per ciphertext, N/2 at full packing; fewer are used if the network fits.
        levels: highest level of the parameters at which to compute; with a bootstrap, its output level.
        calibration: typical inputs, (count, *input_shape), on which the ranges of activations and of the
            output are measured. Without them the output is not scaled and must fit under the last prime as it
            is.
        degrees: degree of the polynomial that stands for each ONNX activation ("Relu": 15); 7 where not
            given. Degree 2 takes one level, degree d otherwise ceil(log2(d + 1)).
        margin: by which share of its width each measured range is widened on both sides.
        input_level: at which ciphertexts enter; the lowest possible where not given.
        output_level: at which the result leaves: 0 where not given, or the highest input level of the
            bootstraps, since primes below it have other widths.
        bootstraps: ways to bootstrap, of equal slots, to choose from; the program then has these slots.
        fixed_slots: whether the program has exactly ``slots`` slots, as its place between the stages of a
            bootstrapping asks for.
        headroom: how many times the values of the calibration data a bootstrapped value may reach; each
            doubling costs a bit.
        costs: what operations cost; the shipped table where not given.
        max_plaintext_bytes: bound on the memory of the diagonals, in double precision.

    Raises:
        ModelRefused: with every reason found: `UnsupportedOperator`, `UnsupportedAttribute`, `DynamicShape`,
            `InvalidModel`, `TooDeep`, `TooWide`, `CalibrationMissing`, `CannotPlace`, `RangesMissing`.
        InvalidSamples: calibration data of the wrong shape or not finite.
        InvalidBootstrap: bootstraps of different or too many slots, or above the highest level.
        ValueError: arguments out of their bounds.
    """
    degrees, options = dict(degrees or {}), tuple(bootstraps)
    if output_level is None:
        output_level = max((option.input_level for option in options), default=0)
    _check_arguments(slots, levels, degrees, margin, input_level, output_level)
    _check_bootstraps(options, slots, levels, headroom)
    entry = levels if input_level is None else input_level
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
        reasons += _too_deep(graph, entry - output_level, options, calibration is not None)
    if reasons:
        raise ModelRefused(reasons)

    samples = _samples(graph, calibration)
    graph, fitted = replace_activations(graph, samples, margin)
    graph = simplify(graph)
    if too_deep := _too_deep(graph, entry - output_level, options, len(samples) > 0):
        raise ModelRefused(too_deep)
    output_scale = _bound_output(graph, samples, margin)
    costs = CostTable.default() if costs is None else costs
    source = next(number for number, node in graph.nodes.items() if isinstance(node, Input))
    _, needs = assign_levels(Problem(graph, {}, {}, (), {}, levels, entry, output_level, costs), {})
    if needs[source] <= entry:
        options = ()
    largest = bound_values(graph, samples, headroom) if options else {}
    fixed = fixed_slots or bool(options)
    layouts = choose_layouts(graph, options[0].slots if options else slots, fixed=fixed)
    lowered = {
        number: lower(node, [layouts[o] for o in node.operands], layouts[number])
        for number, node in graph.nodes.items()
        if isinstance(node, Linear)
    }
    work = _work(graph, layouts, lowered)
    ciphertexts = {number: layout.ciphertexts for number, layout in layouts.items()}
    problem = Problem(graph, work, ciphertexts, options, largest, levels, entry, output_level, costs)
    try:
        placement = place(problem)
    except RefusalReason as reason:
        raise ModelRefused([reason]) from reason
    if input_level is None:
        entry = placement.needs[source]
    program = Assembly(
        graph, layouts, lowered, work, placement, options, costs, entry, tuple(fitted), output_scale
    ).program()
    size = sum(d.nbytes for t in program.transforms for diagonals in t.diagonals for d in diagonals.values())
    if size > max_plaintext_bytes:
        raise ModelRefused([TooWide(size, max_plaintext_bytes)])
    return program


def _work(
    graph: Graph, layouts: Mapping[int, Layout], lowered: Mapping[int, LoweredLinear]
) -> dict[int, Work]:
    """Operations on all ciphertexts of every value."""
    work = {}
    for number, node in graph.nodes.items():
        match node:
            case Linear():
                work[number] = lowered[number].work
            case Multiply():
                work[number] = Work(multiplications=(1,)).times(layouts[number].ciphertexts)
            case Polynomial(coefficients=coefficients):
                offsets = polynomial_relinearizations(coefficients, "chebyshev")
                counts = tuple(offsets.count(offset) for offset in range(max(offsets, default=-1) + 1))
                work[number] = Work(multiplications=counts).times(layouts[number].ciphertexts)
            case _:
                work[number] = Work()
    return work


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


def _check_bootstraps(options: Sequence[Bootstrap], slots: int, levels: int, headroom: float) -> None:
    if not 1 <= headroom < 2**20:
        raise ValueError(f"headroom is a factor between 1 and 2^20, got {headroom}")
    for option in options:
        if option.slots != options[0].slots or option.slots > slots:
            raise InvalidBootstrap(
                f"a bootstrap of {option.slots} slots; all must have the same number, at most {slots}"
            )
        if option.output_level > levels:
            raise InvalidBootstrap(f"a bootstrap to level {option.output_level} above the highest, {levels}")


def _too_deep(
    graph: Graph, available: int, options: Sequence[Bootstrap], measured: bool
) -> list[RefusalReason]:
    depth = graph.depth()
    if depth <= available or (options and measured):
        return []
    return [RangesMissing(depth, available) if options else TooDeep(depth, available)]


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
