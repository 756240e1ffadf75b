"""Chooses layouts, operations and levels together, for the least time."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from keywright._core import polynomial_relinearizations
from keywright.compiler.graph.graph import Graph, Linear, Multiply, Polynomial
from keywright.compiler.layout.batches import interleave_layout, interleave_linear
from keywright.compiler.layout.cyclic import repack_before_strides
from keywright.compiler.layout.layer_work import LayerWork, Prices
from keywright.compiler.layout.layout_choice import choose_layouts, largest_tensor, useful_slots
from keywright.compiler.layout.lowering import LoweredLinear, lower
from keywright.compiler.placement.bounding import bound_values
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.placement import LevelLimits, Placement, Problem, assign_levels, place
from keywright.compiler.placement.rings import RingProblem, holding_slots
from keywright.compiler.placement.target import Target
from keywright.errors.network import RefusalError
from keywright.errors.refusals.sizes import too_wide
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.layout import Layout

from .joining import PARTS


@dataclass(frozen=True, eq=False)
class RingChoice:
    """The rings of values, as indices of the target's rings.

    Attributes:
        of: the ring of every value; empty if the target has none. A bootstrap's result is in the first ring.
        switches: to smaller rings: the level at which a value is switched to each ring.
        bootstraps: the ring in which all bootstraps begin.
        seconds: predicted time with them; None if the target has no rings.
    """

    of: Mapping[int, int] = field(default_factory=dict)
    switches: Mapping[tuple[int, int], int] = field(default_factory=dict)
    bootstraps: int = 0
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Layouts, operations and levels of one sample, and the number of samples.

    Attributes:
        graph: the arranged graph: bounded if it is bootstrapped, repacked if that is faster.
        layouts, work: of every value.
        lowered: of every linear map; empty behind `without_diagonals`.
        placement: levels and bootstraps.
        batch: samples at a time.
        rings: of every value.
        parts: 1, or 2 if half of the samples are the imaginary parts of the others; see `joining`.
    """

    graph: Graph
    layouts: Mapping[int, Layout]
    lowered: Mapping[int, LoweredLinear]
    work: Mapping[int, LayerWork]
    placement: Placement
    batch: int
    rings: RingChoice = field(default_factory=RingChoice)
    parts: int = 1

    def seconds(self, samples: int) -> float:
        """Return the predicted time of ``samples`` samples."""
        each = self.placement.seconds if self.rings.seconds is None else self.rings.seconds
        return each * -(-samples // self.batch)

    def interleaved(self) -> "Arrangement":
        """Return the arrangement of all samples that share ciphertexts."""
        return replace(
            self,
            layouts=self.interleaved_layouts,
            lowered={n: interleave_linear(linear, self.interleaving) for n, linear in self.lowered.items()},
        )

    def without_diagonals(self) -> "Arrangement":
        """Return the arrangement without its diagonals, which are large."""
        return replace(self, lowered={})

    def with_diagonals(self, target: Target, costs: CostTable) -> "Arrangement":
        """Return the arrangement with its diagonals, for the target and the costs that it is for."""
        lowered = self.lowered or _lower(self.graph, self.layouts, _middle_prices(target, costs))
        return replace(self, lowered=lowered)

    @property
    def interleaving(self) -> int:
        """Samples per ciphertext; joined ones count as one."""
        return self.batch // self.parts

    @property
    def interleaved_layouts(self) -> dict[int, Layout]:
        """The layouts of all samples that share ciphertexts."""
        return {n: interleave_layout(layout, self.interleaving) for n, layout in self.layouts.items()}

    @property
    def entry_level(self) -> int:
        """The level of the input."""
        return self.placement.needs[self.graph.source]


def arrange(
    graph: Graph,
    seen: Mapping[int, float],
    target: Target,
    headroom: float,
    costs: CostTable,
    max_plaintext_bytes: int,
) -> Arrangement:
    """Return the arrangement with the least predicted time for the target's samples.

    Args:
        graph: without activations; it is not changed.
        seen: result of `largest_values`.
        headroom: see `bound_values`.
        max_plaintext_bytes: maximum bytes of the diagonals.

    Raises:
        RefusalError: no placement of bootstraps reaches a layer, or a layer is too large.
    """
    options = _needed_bootstraps(graph, target, costs)
    results: list[Arrangement] = []
    refusal: RefusalError | None = None
    try:
        results += _of_batches(
            graph, seen, target, headroom, costs, options, max_plaintext_bytes, cyclic=False
        )
    except RefusalError as reason:
        if reason.code != "diagonals":
            raise
        refusal = reason  # the diagonals of another layout may be fewer
    repacked = repack_before_strides(graph)
    if repacked is not None and _needed_bootstraps(repacked[0], target, costs) == options:
        graph, origin = repacked
        seen = {number: seen[old] for number, old in origin.items()}
        # This takes one more level, which not every placement has.
        with suppress(RefusalError):
            results += _of_batches(
                graph, seen, target, headroom, costs, options, max_plaintext_bytes, cyclic=True
            )
    if refusal is not None and not results:
        raise refusal
    return min(results, key=lambda result: result.seconds(target.samples))


def _of_batches(
    graph: Graph,
    seen: Mapping[int, float],
    target: Target,
    headroom: float,
    costs: CostTable,
    options: tuple[Bootstrap, ...],
    max_plaintext_bytes: int,
    *,
    cyclic: bool,
) -> Iterator[Arrangement]:
    """Yield one arrangement for each batch that is tried: the first of `Target.batch_range`; larger ones as
    long as all samples take less time; smaller ones if none did. Diagonals are counted before levels are
    searched: of a batch whose diagonals exceed their bound, the half is tried instead. Where bootstraps take
    pairs, the halves of a batch are joined if that takes less time."""
    graph = Graph(dict(graph.nodes), graph.output)
    largest = bound_values(graph, seen, headroom) if options else {}
    slots, fixed = (options[0].slots, True) if options else (target.slots, target.thin)
    prices = _middle_prices(target, costs)
    least, first, most = target.batch_range(largest_tensor(graph))
    joinable = any(option.pairs for option in options)

    @lru_cache(1 + joinable)  # joined halves have the room of half the batch
    def laid_out(room: int) -> tuple[Mapping[int, Layout], Mapping[int, LoweredLinear]]:
        layouts = choose_layouts(graph, room, prices, fixed=fixed, cyclic=cyclic)
        return layouts, _lower(graph, layouts, prices)

    @lru_cache(1)
    def placed(room: int, parts: int) -> tuple[Arrangement, Problem]:
        layouts, lowered = laid_out(room)
        work = _work(graph, layouts, lowered, parts)
        counts = {number: parts * layout.ciphertexts for number, layout in layouts.items()}
        held = {number: holding_slots(number, graph, layouts, target.rings) for number in graph.nodes}
        limits = LevelLimits(target.levels, target.levels, target.exit_level)
        placement, problem = _place(Problem(graph, work, counts, options, largest, limits, costs, held))
        return Arrangement(graph, layouts, lowered, work, placement, 1, parts=parts), problem

    def arranged(batch: int) -> Arrangement:
        results, refusal = [], None
        for parts in (PARTS, 1) if joinable and batch > 1 else (1,):
            try:
                results.append(in_parts(batch, parts))
            except RefusalError as reason:
                if reason.code != "diagonals":
                    raise
                refusal = reason
        if results:
            return min(results, key=lambda each: (each.seconds(batch), each.parts))
        if refusal is not None and batch == least:
            raise refusal
        return arranged(batch // 2)

    def in_parts(batch: int, parts: int) -> Arrangement:
        together = batch // parts
        room = slots // together if fixed else useful_slots(graph, slots // together)
        size = together * _plaintext_bytes(laid_out(room)[1])
        if size > max_plaintext_bytes:
            raise too_wide(size, max_plaintext_bytes)
        result, problem = placed(room, parts)
        return _in_rings(replace(result, batch=batch), problem, target)

    best = arranged(first)
    yield best
    for larger in (True, False):
        while (best.batch < most) if larger else (least < best.batch <= first):
            tried = arranged(best.batch * 2 if larger else best.batch // 2)
            if tried.seconds(target.samples) >= best.seconds(target.samples):
                break
            best = tried
            yield best


def _middle_prices(target: Target, costs: CostTable) -> Prices:
    return costs.prices((target.levels + target.exit_level) // 2)


def _place(problem: Problem) -> tuple[Placement, Problem]:
    """Return the fastest placement in which all bootstraps have one output level, and the problem with these
    bootstraps alone.

    Raises:
        RefusalError: no output level reaches a layer; this is the error for the highest.
    """
    placed, refusals = [], []
    for reached in sorted({option.output_level for option in problem.options}) or [problem.limits.highest]:
        alike = [option for option in problem.options if option.output_level == reached]
        limited = replace(problem, options=alike)
        try:
            placed.append((place(limited), limited))
        except RefusalError as reason:
            refusals.append(reason)
    if not placed:
        raise refusals[-1]
    return min(placed, key=lambda entry: entry[0].seconds)


def _in_rings(arranged: Arrangement, problem: Problem, target: Target) -> Arrangement:
    """Return an arrangement with the rings of its values, chosen among the target's."""
    if not target.rings:
        return arranged
    layouts = arranged.interleaved_layouts
    rings = RingProblem(problem, arranged.placement, layouts, target.rings, target.thin)
    ring_of = rings.assign()
    switches, seconds = rings.switches(ring_of), rings.seconds(ring_of)
    return replace(arranged, rings=RingChoice(ring_of, switches, rings.bootstrap_ring, seconds))


def _plaintext_bytes(lowered: Mapping[int, LoweredLinear]) -> int:
    """Return the bytes of the diagonals of one sample in double precision."""
    return sum(transform.bytes for linear in lowered.values() for _, transform in linear.rows)


def _needed_bootstraps(graph: Graph, target: Target, costs: CostTable) -> tuple[Bootstrap, ...]:
    """Return the target's bootstraps; none if the levels suffice without them. Ciphertexts of thin clients
    enter one by one."""
    limits = LevelLimits(target.levels, target.levels, target.exit_level)
    _, needs = assign_levels(Problem(graph, {}, {}, (), {}, limits, costs), {})
    if needs[graph.source] <= limits.input:
        return ()
    return tuple(replace(each, pairs=each.pairs and not target.thin) for each in target.bootstraps)


def _lower(graph: Graph, layouts: Mapping[int, Layout], prices: Prices) -> dict[int, LoweredLinear]:
    """Return the diagonals of every linear map between the layouts of its operands and its own."""
    return {
        number: lower(node, [layouts[o] for o in node.operands], layouts[number], prices)
        for number, node in graph.nodes.items()
        if isinstance(node, Linear)
    }


def _work(
    graph: Graph, layouts: Mapping[int, Layout], lowered: Mapping[int, LoweredLinear], parts: int
) -> dict[int, LayerWork]:
    """Return the operations on all ciphertexts of every value; of two parts, a map's result is taken apart
    for what is no map, and for the output."""
    work, readers = {}, graph.consumers()
    for number, node in graph.nodes.items():
        count = layouts[number].ciphertexts
        match node:
            case Linear():
                work[number] = lowered[number].work
                together = all(isinstance(graph.nodes[each], Linear) for each in readers[number])
                if parts > 1 and (number == graph.output or not together):
                    work[number] = replace(work[number], rotations=work[number].rotations + count)
            case Multiply():
                work[number] = LayerWork(multiplications=(1,)).times(parts * count)
            case Polynomial(coefficients=coefficients):
                offsets = polynomial_relinearizations(coefficients, "chebyshev")
                counts = tuple(offsets.count(offset) for offset in range(max(offsets, default=-1) + 1))
                work[number] = LayerWork(multiplications=counts).times(parts * count)
            case _:
                work[number] = LayerWork()
    return work
