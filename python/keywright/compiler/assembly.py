"""Assembles a graph, its layouts and its levels into the instructions of a program."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from keywright.compiler.graph.graph import (
    Add,
    Domain,
    Input,
    Linear,
    Multiply,
    Polynomial,
    Shift,
    describe,
    levels_consumed,
)
from keywright.compiler.layout.layer_work import LayerWork
from keywright.compiler.placement.costs import CostTable
from keywright.compiler.placement.ring import Ring
from keywright.program.arrays import Vector
from keywright.program.instructions import Instruction, Layer, Opcode, Scales, ValueRange
from keywright.program.interface import ProgramInput, ProgramOutput
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.layout import Layout
from keywright.program.operands.operands import Operands
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.program.program import Program

from .arrangement import Arrangement


@dataclass(frozen=True, eq=False)
class Assembly:
    """The parts of a program.

    Attributes:
        arrangement: layouts, operations and levels, of all samples that share ciphertexts; see
            `Arrangement.interleaved`.
        costs: for the predicted times.
        input_level: level of the input; at least the level needed.
        rings: rings of values, the largest first; empty if the target names none.
        output_ring: ring of the output; None for the one that it is computed in.
    """

    arrangement: Arrangement
    costs: CostTable
    input_level: int
    rings: Sequence[Ring] = ()
    output_ring: int | None = None

    def program(self) -> Program:
        """Return the program, with the input and the output of the graph, for one part of the samples."""
        chosen, graph = self.arrangement, self.arrangement.graph
        assembler = _Assembler(self)
        for number in graph.nodes:
            assembler.node(number)
        source, level = graph.source, chosen.placement.needs[graph.output]
        outputs = tuple(assembler.outputs(level))
        log_n = self.log_n(chosen.rings.of.get(source, 0))
        return Program(
            ProgramInput(graph.nodes[source].shape, chosen.layouts[source], self.input_level, log_n=log_n),
            ProgramOutput(graph.nodes[graph.output].shape, chosen.layouts[graph.output], level, outputs),
            tuple(assembler.instructions),
            Operands(
                tuple(assembler.transforms),
                tuple(assembler.vectors),
                tuple(assembler.polynomials),
                tuple(assembler.bootstraps) if chosen.placement.bootstraps else (),
            ),
            tuple(assembler.layers),
            tuple(assembler.ranges),
        )

    def log_n(self, ring: int) -> int:
        """Return a ring's name in instructions: log2 of its degree, or 0 for the largest."""
        return self.rings[ring].log_n if ring else 0

    def slots(self, ring: int) -> int:
        """Return the slots of the ciphertexts of a ring."""
        most = next(iter(self.arrangement.layouts.values())).slots
        return min(most, self.rings[ring].slots) if ring else most

    def ring_costs(self, ring: int) -> CostTable:
        """Return the costs of operations in a ring."""
        return self.rings[ring].costs if ring else self.costs


class _Assembler:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly, self.arrangement = assembly, assembly.arrangement
        self.graph, self.layouts = self.arrangement.graph, self.arrangement.layouts
        self.instructions: list[Instruction] = []
        self.scales = Scales()
        self.layers: list[Layer] = []
        self.transforms: list[DiagonalMatrix] = []
        self.vectors: list[Vector] = []
        self.polynomials: list[PolynomialSpec] = []
        self.ranges: list[ValueRange] = []
        bootstrapped = self.arrangement.placement.bootstraps
        parts = self.arrangement.parts
        several = any(parts * self.layouts[number].ciphertexts > 1 for number in bootstrapped)
        self.options = [
            replace(each, pairs=each.pairs and several) for each in self.arrangement.placement.options
        ]
        self.bootstraps: list[Bootstrap] = [*self.options] if not assembly.rings else []
        self.ciphertexts: dict[tuple[int, int, int], list[int]] = {}

    def node(self, number: int) -> None:
        """Append the instructions that compute one value, and its bootstrap."""
        node, level = self.graph.nodes[number], self.arrangement.placement.levels[number]
        layout, first = self.layouts[number], len(self.instructions)
        ring = self.arrangement.rings.of.get(number, 0)
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
            above, work = level + levels_consumed(node), self.arrangement.work[number]
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
        number, target = self.graph.output, self.assembly.output_ring
        ring = self.offered(number)
        cts = self.at(number, level, ring)
        if target is None or target == ring:
            return cts
        return [self._emit("switch_ring", (ct,), level, self.assembly.log_n(target)) for ct in cts]

    def offered(self, number: int) -> int:
        """Return the largest ring that a value is in, as an index."""
        return (
            0 if number in self.arrangement.placement.bootstraps else self.arrangement.rings.of.get(number, 0)
        )

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
        for (value, ring), level in self.arrangement.rings.switches.items():
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
            self.ranges.append(ValueRange(result, node.label, *ends, slots, domain.total))

    def _bootstrap(self, number: int) -> None:
        index = self.arrangement.placement.bootstraps.get(number)
        if index is None:
            return
        assembly, first = self.assembly, len(self.instructions)
        option, ring = self.options[index], self.arrangement.rings.of.get(number, 0)
        operands = self.at(number, option.input_level, ring)
        seconds = assembly.costs.bootstrap_seconds(option, self.arrangement.parts * len(operands))
        if assembly.rings:
            begin = self.arrangement.rings.bootstraps
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
            f"{self.arrangement.placement.needs[number]}"
        )
        self._layer(name, "bootstrap", (option.input_level, option.output_level), 0, seconds, first)

    def _emit(self, opcode: Opcode, cts: tuple[int, ...], level: int, argument: int = 0) -> int:
        result = len(self.instructions)
        self.instructions.append(Instruction(opcode, result, cts, level, argument))
        self.scales.follow(self.instructions[-1])
        return result

    def _linear(self, number: int, node: Linear, layout: Layout, level: int, ring: int) -> list[int]:
        lowered = self.arrangement.lowered[number]
        sources = [ct for operand in node.operands for ct in self.at(operand, level + 1, ring)]
        results = []
        for used, transform in lowered.rows:
            used, transform = self._with_scale(sources, used, transform)
            self.transforms.append(transform.on_slots(self.assembly.slots(ring)))
            index = len(self.transforms) - 1
            ct = self._emit("linear_transform", tuple(sources[i] for i in used), level, index)
            for step in lowered.folds:
                ct = self._emit("add", (ct, self._emit("rotate", (ct,), level, step)), level)
            results.append(ct)
        return self._add_plain(results, layout.pack(node.bias), level, ring)

    def _with_scale(
        self, sources: list[int], used: tuple[int, ...], transform: DiagonalMatrix
    ) -> tuple[tuple[int, ...], DiagonalMatrix]:
        """Let a row that only reads operands that were dropped also read zero times one that was not, if that
        has another scale: the ciphertexts of a result then have one."""
        kept = [i for i, ct in enumerate(sources) if self.instructions[ct].opcode != "drop_level"]
        scales = [self.scales.of[sources[i]] for i in (*kept[:1], *used)]
        if not kept or set(kept) & set(used) or all(scale == scales[0] for scale in scales):
            return used, transform
        zero: Mapping[int, Vector] = {0: np.zeros(1)}
        return (*used, kept[0]), replace(transform, diagonals=(*transform.diagonals, zero))

    def _add_plain(self, cts: list[int], rows: Vector, level: int, ring: int) -> list[int]:
        results = []
        for ct, row in zip(cts, rows, strict=True):
            if row.any():
                self.vectors.append(row[: self.assembly.slots(ring)])
                ct = self._emit("add_plain", (ct,), level, len(self.vectors) - 1)
            results.append(ct)
        return results
