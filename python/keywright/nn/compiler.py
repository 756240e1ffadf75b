"""`compile`: an ONNX model becomes a program, or is refused with every reason."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike

from keywright._core import polynomial_relinearizations

from .activations.fit import Fit
from .activations.fitting import replace_activations
from .assembly import Assembly
from .errors import (
    CalibrationMissingError,
    InvalidSamplesError,
    ModelRefusedError,
    RangesMissingError,
    RefusalError,
    TooDeepError,
    TooWideError,
)
from .front_ends.onnx_importer import import_model, load_model
from .graph.graph import Activation, Graph, Input, Linear, Multiply, Polynomial
from .graph.simplify import scale_value, simplify
from .graph.sparse import Vector
from .layout.batches import interleave_layout, interleave_linear
from .layout.layer_work import LayerWork, Prices
from .layout.layout import Layout
from .layout.lowering import LoweredLinear, lower
from .layout.packing import choose_layouts, largest_tensor, useful_slots
from .placement.bootstraps import Bootstrap
from .placement.bounding import bound_values, largest_values
from .placement.costs import CostTable
from .placement.placement import Placement, Problem, assign_levels, place
from .placement.target import Target
from .program import Program


def compile(  # noqa: A001 (read as keywright.nn.compile)
    model: onnx.ModelProto | str | Path | bytes,
    target: Target,
    fit: Fit | None = None,
    *,
    costs: CostTable | None = None,
    max_plaintext_bytes: int = 4 << 30,
) -> Program:
    """Compile an ONNX model into a program on ciphertexts.

    Linear layers that follow each other are merged, batch normalization and the mapping of activation ranges
    disappear in the layers around them, activations of degree 2 become one product. Every value is as low in
    levels as possible. Where levels do not suffice, values are bootstrapped: see
    `keywright.nn.placement.placement`.

    Args:
        model: the model, its bytes, or its path.
        target: slots, levels and bootstraps of the ciphertexts to compute on.
        fit: calibration data, degrees and margins of polynomials; `Fit()` where not given.
        costs: what operations cost; the shipped table where not given.
        max_plaintext_bytes: bound on the memory of the diagonals, in double precision.

    Raises:
        ModelRefusedError: with every reason found: `UnsupportedOperatorError`, `UnsupportedAttributeError`,
            `DynamicShapeError`, `InvalidModelError`, `TooDeepError`, `TooWideError`,
            `CalibrationMissingError`, `CannotPlaceError`, `RangesMissingError`.
        InvalidSamplesError: calibration data of the wrong shape or not finite.
    """
    fit = Fit() if fit is None else fit
    costs = CostTable.default() if costs is None else costs
    graph = _import(model, target, fit)
    samples = _samples(graph, fit.calibration)
    graph, fitted = replace_activations(graph, samples, fit.margin)
    graph = simplify(graph)
    _refuse(_too_deep(graph, target, measured=len(samples) > 0))
    seen = largest_values(graph, samples)
    output_scale = _bound_output(graph, seen, fit.margin)

    options = _needed_bootstraps(graph, target, costs)
    largest = bound_values(graph, seen, fit.headroom) if options else {}
    chosen = _choose_batch(graph, target, options, largest, costs)
    placement, entry = chosen.placement, target.entry_level
    if target.input_level is None:
        entry = placement.needs[_source(graph)]
    layouts = {number: interleave_layout(layout, chosen.batch) for number, layout in chosen.layouts.items()}
    lowered = {number: interleave_linear(linear, chosen.batch) for number, linear in chosen.lowered.items()}
    program = Assembly(
        graph, layouts, lowered, chosen.work, placement, options, costs, entry, tuple(fitted), output_scale
    ).program()
    _require_memory(program, max_plaintext_bytes)
    return program


@dataclass(frozen=True, eq=False)
class _Arrangement:
    """Layouts, operations and levels of one sample, and how many samples share ciphertexts."""

    layouts: Mapping[int, Layout]
    lowered: Mapping[int, LoweredLinear]
    work: Mapping[int, LayerWork]
    placement: Placement
    batch: int

    def seconds(self, samples: int) -> float:
        """Predicted time of so many samples."""
        return self.placement.seconds * -(-samples // self.batch)


def _choose_batch(
    graph: Graph,
    target: Target,
    options: tuple[Bootstrap, ...],
    largest: Mapping[int, float],
    costs: CostTable,
) -> _Arrangement:
    """The arrangement of least time for the target's samples."""
    slots, fixed = (options[0].slots, True) if options else (target.slots, target.fixed_slots)
    prices = Prices()
    found: dict[int, _Arrangement] = {}
    best: _Arrangement | None = None
    for batch in target.batch_options(largest_tensor(graph)):
        room = slots // batch if fixed else useful_slots(graph, slots // batch)
        if room not in found:
            layouts = choose_layouts(graph, room, prices, fixed=fixed)
            found = {room: _arrange(graph, target, layouts, options, largest, costs, prices)}
        tried = replace(found[room], batch=batch)
        if best is None or tried.seconds(target.samples) < best.seconds(target.samples):
            best = tried
    assert best is not None
    return best


def _arrange(
    graph: Graph,
    target: Target,
    layouts: Mapping[int, Layout],
    options: tuple[Bootstrap, ...],
    largest: Mapping[int, float],
    costs: CostTable,
    prices: Prices,
) -> _Arrangement:
    """Operations and levels of one sample."""
    lowered = _lower(graph, layouts, prices)
    work = _work(graph, layouts, lowered)
    ciphertexts = {number: layout.ciphertexts for number, layout in layouts.items()}
    levels, entry, lowest = target.levels, target.entry_level, target.exit_level
    problem = Problem(graph, work, ciphertexts, options, largest, levels, entry, lowest, costs)
    return _Arrangement(layouts, lowered, work, _place(problem), 1)


def _refuse(reasons: Sequence[RefusalError]) -> None:
    if reasons:
        raise ModelRefusedError(reasons)


def _import(model: onnx.ModelProto | str | Path | bytes, target: Target, fit: Fit) -> Graph:
    """The model's graph, simplified, if nothing about it is to be refused before it is measured."""
    try:
        loaded = load_model(model)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    graph, reasons = import_model(loaded, fit.degrees)
    if graph.output >= 0:
        graph = simplify(graph)
        measured = fit.calibration is not None
        labels = [node.label for node in graph.nodes.values() if isinstance(node, Activation)]
        if labels and not measured:
            reasons.append(CalibrationMissingError(labels))
        reasons += _too_deep(graph, target, measured=measured)
    _refuse(reasons)
    return graph


def _source(graph: Graph) -> int:
    """The number of the input."""
    return next(number for number, node in graph.nodes.items() if isinstance(node, Input))


def _needed_bootstraps(graph: Graph, target: Target, costs: CostTable) -> tuple[Bootstrap, ...]:
    """The target's bootstraps; none if the levels suffice without them."""
    levels, entry, lowest = target.levels, target.entry_level, target.exit_level
    _, needs = assign_levels(Problem(graph, {}, {}, (), {}, levels, entry, lowest, costs), {})
    return target.bootstraps if needs[_source(graph)] > entry else ()


def _place(problem: Problem) -> Placement:
    try:
        return place(problem)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason


def _lower(graph: Graph, layouts: Mapping[int, Layout], prices: Prices) -> dict[int, LoweredLinear]:
    """The diagonals of every linear map between the layouts of its operands and its own."""
    return {
        number: lower(node, [layouts[o] for o in node.operands], layouts[number], prices)
        for number, node in graph.nodes.items()
        if isinstance(node, Linear)
    }


def _work(
    graph: Graph, layouts: Mapping[int, Layout], lowered: Mapping[int, LoweredLinear]
) -> dict[int, LayerWork]:
    """Operations on all ciphertexts of every value."""
    work = {}
    for number, node in graph.nodes.items():
        match node:
            case Linear():
                work[number] = lowered[number].work
            case Multiply():
                work[number] = LayerWork(multiplications=(1,)).times(layouts[number].ciphertexts)
            case Polynomial(coefficients=coefficients):
                offsets = polynomial_relinearizations(coefficients, "chebyshev")
                counts = tuple(offsets.count(offset) for offset in range(max(offsets, default=-1) + 1))
                work[number] = LayerWork(multiplications=counts).times(layouts[number].ciphertexts)
            case _:
                work[number] = LayerWork()
    return work


def _too_deep(graph: Graph, target: Target, *, measured: bool) -> list[RefusalError]:
    """Why the levels do not suffice, if they do not: bootstraps help where ranges are measured."""
    depth, available = graph.depth(), target.depth
    if depth <= available or (target.bootstraps and measured):
        return []
    return [RangesMissingError(depth, available) if target.bootstraps else TooDeepError(depth, available)]


def _require_memory(program: Program, most: int) -> None:
    """Refuse diagonals of more bytes than are allowed."""
    size = sum(transform.bytes for transform in program.transforms)
    _refuse([TooWideError(size, most)] if size > most else [])


def _bound_output(graph: Graph, largest: dict[int, float], margin: float) -> float:
    """Divide the output by a power of two so that samples give at most 1, and return that power; ``largest``
    holds the values' largest absolute values, and follows."""
    peak = largest[graph.output]
    if not math.isfinite(peak):
        raise InvalidSamplesError("calibration data drive the output out of the finite numbers")
    scale = 2.0 ** max(math.ceil(math.log2(peak * (1 + margin))), 0) if peak > 0 else 1.0
    factors = scale_value(graph, graph.output, 1 / scale, reader=None) if scale > 1 else {}
    for number, factor in factors.items():
        largest[number] *= factor
    return scale if factors else 1.0


def _samples(graph: Graph, calibration: ArrayLike | None) -> Vector:
    shape = next(node.shape for node in graph.nodes.values() if isinstance(node, Input))
    size = int(np.prod(shape, dtype=np.int64))
    if calibration is None:
        return np.zeros((0, size))
    samples = np.asarray(calibration, np.float64)
    if samples.ndim == 0 or samples.shape[1:] != shape or len(samples) == 0:
        raise InvalidSamplesError(f"calibration data have shape (count, {shape}), got {samples.shape}")
    if not np.isfinite(samples).all():
        raise InvalidSamplesError(
            f"calibration data hold {int((~np.isfinite(samples)).sum())} values that are not finite"
        )
    return samples.reshape(len(samples), size)
