"""`compile`: an ONNX model becomes a program, or is refused with every reason."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from keywright._core import polynomial_relinearizations

from .activations.choosing import report
from .activations.fit import Fit
from .activations.ranges import MARGIN
from .approximating import ApproximatedModel, Source, put_polynomials, read_model
from .assembly import Assembly
from .errors import (
    InvalidSamplesError,
    ModelRefusedError,
    RangesMissingError,
    RefusalError,
    TooDeepError,
    TooWideError,
)
from .graph.graph import Graph, Input, Linear, Multiply, Polynomial
from .graph.simplify import scale_value
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
    model: Source | ApproximatedModel,
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
        model: the model, its bytes, or its path; or what `approximate` made of it, without a fit.
        target: slots, levels and bootstraps of the ciphertexts to compute on.
        fit: calibration data, and methods of activations or how closely to follow the model; `Fit()` where
            not given.
        costs: what operations cost; the shipped table where not given.
        max_plaintext_bytes: bound on the memory of the diagonals, in double precision.

    Raises:
        ModelRefusedError: with every reason found: `UnsupportedOperatorError`, `UnsupportedAttributeError`,
            `DynamicShapeError`, `InvalidModelError`, `TooDeepError`, `TooWideError`,
            `CalibrationMissingError`, `CannotPlaceError`, `RangesMissingError`, `MethodError`,
            `UnknownActivationError`, `AccuracyError`.
        InvalidSamplesError: calibration data of the wrong shape or not finite.
    """
    costs = CostTable.default() if costs is None else costs
    approximated = _approximated(model, target, fit)
    run, fit = approximated.run, approximated.fit
    samples, graph = run.samples, Graph(dict(approximated.graph.nodes), approximated.graph.output)
    _refuse(_too_deep(graph, target, measured=len(samples) > 0))
    seen = largest_values(graph, samples)
    output_scale = _bound_output(graph, seen, MARGIN if fit.margin is None else fit.margin)

    options = _needed_bootstraps(graph, target, costs)
    largest = bound_values(graph, seen, fit.headroom) if options else {}
    chosen = _choose_batch(graph, target, options, largest, costs)
    placement, entry = chosen.placement, target.entry_level
    if target.input_level is None:
        entry = placement.needs[_source(graph)]
    layouts = {number: interleave_layout(layout, chosen.batch) for number, layout in chosen.layouts.items()}
    lowered = {number: interleave_linear(linear, chosen.batch) for number, linear in chosen.lowered.items()}
    fit_report = report(graph, run, approximated.fitted, output_scale, fit) if len(samples) else None
    program = Assembly(
        graph, layouts, lowered, chosen.work, placement, options, costs, entry, fit_report, output_scale
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


def _approximated(model: Source | ApproximatedModel, target: Target, fit: Fit | None) -> ApproximatedModel:
    """The model with polynomials, as deep as the target allows where nothing was asked for."""
    if isinstance(model, ApproximatedModel):
        if fit is not None:
            raise TypeError("an approximated model has its fit; give none")
        return model
    fit = Fit() if fit is None else fit
    graph, reasons = read_model(model, fit)
    if graph.output >= 0:
        reasons += _too_deep(graph, target, measured=fit.calibration is not None)
    _refuse(reasons)
    return put_polynomials(graph, fit, None if target.bootstraps else target.depth)


def _refuse(reasons: Sequence[RefusalError]) -> None:
    if reasons:
        raise ModelRefusedError(reasons)


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
