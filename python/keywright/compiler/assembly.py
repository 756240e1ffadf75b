"""Assembles a graph, its layouts and its levels into the instructions of a program."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from keywright.compiler.graph.graph import (
    Add,
    Domain,
    Graph,
    Input,
    Linear,
    Multiply,
    Polynomial,
    Shift,
    describe,
    levels_consumed,
)
from keywright.compiler.layout.layer_work import LayerWork
from keywright.compiler.layout.lowering import LoweredLinear
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.placement import Placement
from keywright.compiler.placement.ring import Ring
from keywright.program.arrays import Shape, Vector
from keywright.program.client.client_part import ClientPart
from keywright.program.client.first_steps import FirstSteps
from keywright.program.fit_report import FitReport
from keywright.program.instructions import Instruction, Layer, Opcode, ValueRange
from keywright.program.operands.binning import Binning
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.layout import Layout
from keywright.program.operands.normalisation import Normalisation
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.program.program import Program


@dataclass(frozen=True, eq=False)
class Assembly:
    """The parts of a program.

    Attributes:
        graph: without activations.
        layouts: of every value.
        lowered: every linear map as operations.
        work: of every value.
        placement: levels and bootstraps.
        options: the bootstraps that the placement chose from.
        costs: for the predicted times.
        rings: rings of values, the largest first; empty if the target names none.
        ring_of: ring of every value, as an index; a bootstrap's result is in the first ring.
        switches: to smaller rings: the level at which a value is switched to each ring.
        bootstrap_ring: the ring in which all bootstraps begin.
        output_ring: ring of the output; None for the one that it is computed in.
        input_level: level of the input; at least the level needed.
        fit_report, output_scale, input_range, input_scale, output_shape, client_part, input_normalisation,
            output_normalisation, binning, first_steps: attributes of the program.
    """

    graph: Graph
    layouts: Mapping[int, Layout]
    lowered: Mapping[int, LoweredLinear]
    work: Mapping[int, LayerWork]
    placement: Placement
    options: tuple[Bootstrap, ...]
    costs: CostTable
    input_level: int
    fit_report: FitReport | None
    output_scale: float
    input_range: tuple[float, float] | None
    input_scale: float
    rings: Sequence[Ring] = ()
    ring_of: Mapping[int, int] = field(default_factory=dict)
    switches: Mapping[tuple[int, int], int] = field(default_factory=dict)
    bootstrap_ring: int = 0
    output_ring: int | None = None
    output_shape: Shape = ()
    client_part: ClientPart | None = None
    input_normalisation: Normalisation | None = None
    output_normalisation: Normalisation | None = None
    binning: Binning | None = None
    first_steps: FirstSteps | None = None

    def program(self) -> Program:
        """Return the program."""
        graph, layouts = self.graph, self.layouts
        assembler = _Assembler(self)
        for number in graph.nodes:
            assembler.node(number)
        source = next(number for number, node in graph.nodes.items() if isinstance(node, Input))
        output_level = self.placement.needs[graph.output]
        outputs = tuple(assembler.outputs(output_level))
        return Program(
            slots=layouts[source].slots,
            input_shape=graph.nodes[source].shape if self.binning is None else (self.binning.features,),
            output_shape=self.output_shape,
            input_layout=layouts[source],
            output_layout=layouts[graph.output],
            input_level=self.input_level,
            output_level=output_level,
            instructions=tuple(assembler.instructions),
            outputs=outputs,
            transforms=tuple(assembler.transforms),
            vectors=tuple(assembler.vectors),
            polynomials=tuple(assembler.polynomials),
            fit_report=self.fit_report,
            ranges=tuple(assembler.ranges),
            input_range=self.input_range,
            input_scale=self.input_scale,
            output_scale=self.output_scale,
            client_part=self.client_part,
            input_normalisation=self.input_normalisation,
            output_normalisation=self.output_normalisation,
            binning=self.binning,
            first_steps=self.first_steps,
            bootstraps=tuple(assembler.bootstraps) if self.placement.bootstraps else (),
            layers=tuple(assembler.layers),
            input_log_n=self.log_n(self.ring_of.get(source, 0)),
        )

    def log_n(self, ring: int) -> int:
        """Return a ring's name in instructions: log2 of its degree, or 0 for the largest."""
        return self.rings[ring].log_n if ring else 0

    def slots(self, ring: int) -> int:
        """Return the slots of the ciphertexts of a ring."""
        most = next(iter(self.layouts.values())).slots
        return min(most, self.rings[ring].slots) if ring else most

    def ring_costs(self, ring: int) -> CostTable:
        """Return the costs of operations in a ring."""
        return self.rings[ring].costs if ring else self.costs


class _Assembler:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly, self.graph, self.layouts = assembly, assembly.graph, assembly.layouts
        self.instructions: list[Instruction] = []
        self.layers: list[Layer] = []
        self.transforms: list[DiagonalMatrix] = []
        self.vectors: list[Vector] = []
        self.polynomials: list[PolynomialSpec] = []
        self.ranges: list[ValueRange] = []
        self.bootstraps: list[Bootstrap] = [*assembly.options] if not assembly.rings else []
        self.ciphertexts: dict[tuple[int, int, int], list[int]] = {}

    def node(self, number: int) -> None:
        """Append the instructions that compute one value, and its bootstrap."""
        node, level = self.graph.nodes[number], self.assembly.placement.levels[number]
        layout, first = self.layouts[number], len(self.instructions)
        ring = self.assembly.ring_of.get(number, 0)
        match node:
            case Input():
                level = self.assembly.input_level
                cts = [self._emit("input", (), level, index) for index in range(layout.ciphertexts)]
            case Linear():
                cts = self._linear(number, node, layout, level, ring)
            case Shift(operands=(source,), vector=vector):
                cts = self._add_plain(self.at(source, level, ring), layout.pack(vector), level, ring)
            case Add(operands=(left, right)) | Multiply(operands=(left, right)):
                spent = levels_consumed(node)
                opcode: Opcode = "add" if isinstance(node, Add) else "mul"
                lefts, rights = (self.at(operand, level + spent, ring) for operand in (left, right))
                cts = [self._emit(opcode, pair, level) for pair in zip(lefts, rights, strict=True)]
            case Polynomial(operands=(source,), coefficients=coefficients):
                self.polynomials.append(PolynomialSpec(coefficients))
                index = len(self.polynomials) - 1
                cts = [
                    self._emit("polynomial", (ct,), level, index)
                    for ct in self.at(source, level + levels_consumed(node), ring)
                ]
            case _:
                raise TypeError(f"{type(node).__name__} has no instructions; activations are fitted first")
        self.ciphertexts[number, level, ring] = cts
        if isinstance(node, Multiply | Polynomial) and node.domain is not None:
            self._range(node, node.domain, layout, cts, ring)
        if not isinstance(node, Input):
            above, work = level + levels_consumed(node), self.assembly.work[number]
            self._layer(
                describe(number, node),
                type(node).__name__.lower(),
                (above, level),
                work.rotations + work.hoisted,
                self.assembly.ring_costs(ring).seconds(work, above),
                first,
            )
            self._bootstrap(number)
        self._switch_rings(number)

    def outputs(self, level: int) -> list[int]:
        """Return the ciphertexts of the result, in the output ring."""
        number, wanted = self.graph.output, self.assembly.output_ring
        ring = self.offered(number)
        cts = self.at(number, level, ring)
        if wanted is None or wanted == ring:
            return cts
        return [self._emit("switch_ring", (ct,), level, self.assembly.log_n(wanted)) for ct in cts]

    def offered(self, number: int) -> int:
        """Return the largest ring that a value is in, as an index."""
        return 0 if number in self.assembly.placement.bootstraps else self.assembly.ring_of.get(number, 0)

    def at(self, number: int, level: int, ring: int) -> list[int]:
        """Return the ciphertexts of a value at a level in a ring, dropped from the lowest higher level if
        necessary."""
        if (number, level, ring) not in self.ciphertexts:
            known = [at for value, at, where in self.ciphertexts if (value, where) == (number, ring)]
            above = min(at for at in known if at > level)
            cts = [self._emit("drop_level", (ct,), level) for ct in self.ciphertexts[number, above, ring]]
            self.ciphertexts[number, level, ring] = cts
        return self.ciphertexts[number, level, ring]

    def _switch_rings(self, number: int) -> None:
        """Switch a value to the smaller rings in which it is read."""
        source = self.offered(number)
        for (value, ring), level in self.assembly.switches.items():
            if value == number:
                first, log_n = len(self.instructions), self.assembly.log_n(ring)
                above = self.at(number, level, source)
                cts = [self._emit("switch_ring", (ct,), level, log_n) for ct in above]
                self.ciphertexts[number, level, ring] = cts
                work = LayerWork(rotations=len(cts))
                seconds = self.assembly.ring_costs(source).seconds(work, level)
                name = f"to ring 2^{log_n} after {describe(number, self.graph.nodes[number])}"
                self._layer(name, "switch", (level, level), 0, seconds, first)

    def _layer(
        self, name: str, kind: str, levels: tuple[int, int], rotations: int, seconds: float, first: int
    ) -> None:
        if len(self.instructions) > first:
            self.layers.append(
                Layer(name, kind, levels[0], levels[1], rotations, seconds, first, len(self.instructions))
            )

    def _range(
        self, node: Multiply | Polynomial, domain: Domain, layout: Layout, results: list[int], ring: int
    ) -> None:
        ends = (domain.low, domain.high, domain.model_low, domain.model_high)
        used = layout.pack(np.ones(math.prod(node.shape)))[:, : self.assembly.slots(ring)] != 0
        for result, row in zip(results, used, strict=True):
            partial = isinstance(node, Multiply) and not row.all()
            slots = tuple(np.flatnonzero(row).tolist()) if partial else ()
            self.ranges.append(ValueRange(result, node.label, *ends, slots))

    def _bootstrap(self, number: int) -> None:
        index = self.assembly.placement.bootstraps.get(number)
        if index is None:
            return
        assembly, first = self.assembly, len(self.instructions)
        option, ring = assembly.options[index], assembly.ring_of.get(number, 0)
        seconds = option.seconds
        if seconds is None:
            seconds = assembly.costs.bootstrap_seconds(option.output_level)
        operands = self.at(number, option.input_level, ring)
        if assembly.rings:
            begin = assembly.bootstrap_ring
            log_n, slots = assembly.log_n(begin), assembly.slots(begin)
            if ring != begin:
                operands = [self._emit("switch_ring", (ct,), option.input_level, log_n) for ct in operands]
            option = replace(option, slots=slots, input_log_n=log_n)
            seconds *= assembly.rings[begin].bootstraps
            if option not in self.bootstraps:
                self.bootstraps.append(option)
            index = self.bootstraps.index(option)
        cts = [self._emit("bootstrap", (ct,), option.output_level, index) for ct in operands]
        self.ciphertexts[number, option.output_level, 0] = cts
        name = (
            f"after {describe(number, self.graph.nodes[number])}, which is read at level "
            f"{assembly.placement.needs[number]}"
        )
        self._layer(
            name, "bootstrap", (option.input_level, option.output_level), 0, seconds * len(cts), first
        )

    def _emit(self, opcode: Opcode, cts: tuple[int, ...], level: int, argument: int = 0) -> int:
        result = len(self.instructions)
        self.instructions.append(Instruction(opcode, result, cts, level, argument))
        return result

    def _linear(self, number: int, node: Linear, layout: Layout, level: int, ring: int) -> list[int]:
        lowered = self.assembly.lowered[number]
        sources = [ct for operand in node.operands for ct in self.at(operand, level + 1, ring)]
        results = []
        for used, transform in lowered.rows:
            self.transforms.append(transform.on_slots(self.assembly.slots(ring)))
            index = len(self.transforms) - 1
            ct = self._emit("linear_transform", tuple(sources[i] for i in used), level, index)
            for step in lowered.folds:
                ct = self._emit("add", (ct, self._emit("rotate", (ct,), level, step)), level)
            results.append(ct)
        return self._add_plain(results, layout.pack(node.bias), level, ring)

    def _add_plain(self, cts: list[int], rows: Vector, level: int, ring: int) -> list[int]:
        results = []
        for ct, row in zip(cts, rows, strict=True):
            if row.any():
                self.vectors.append(row[: self.assembly.slots(ring)])
                ct = self._emit("add_plain", (ct,), level, len(self.vectors) - 1)
            results.append(ct)
        return results
