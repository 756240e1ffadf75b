"""From a graph, its layouts and its levels to the instructions of a program."""

from collections.abc import Mapping
from dataclasses import dataclass

from .activations.polynomials import PolynomialSpec
from .activations.report import FitReport
from .compiled.instructions import Instruction, Layer, Opcode, ValueRange
from .graph.graph import (
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
from .graph.sparse import Vector
from .layout.diagonals import DiagonalMatrix
from .layout.layer_work import LayerWork
from .layout.layout import Layout
from .layout.lowering import LoweredLinear
from .placement.bootstraps import Bootstrap
from .placement.costs import CostTable
from .placement.placement import Placement
from .program import Program


@dataclass(frozen=True, eq=False)
class Assembly:
    """What a program is made of.

    Attributes:
        graph: without activations.
        layouts: of every value.
        lowered: every linear map as operations.
        work: of every value.
        placement: levels and bootstraps.
        options: what the placement chose from.
        costs: for the predicted times.
        input_level: at which the input enters; at least its needed level.
        fit_report, output_scale: for the attributes of the program.
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

    def program(self) -> Program:
        """The program."""
        graph, layouts = self.graph, self.layouts
        assembler = _Assembler(self)
        for number in graph.nodes:
            assembler.node(number)
        source = next(number for number, node in graph.nodes.items() if isinstance(node, Input))
        output_level = self.placement.needs[graph.output]
        return Program(
            slots=layouts[source].slots,
            input_shape=graph.nodes[source].shape,
            output_shape=graph.nodes[graph.output].shape,
            input_layout=layouts[source],
            output_layout=layouts[graph.output],
            input_level=self.input_level,
            output_level=output_level,
            instructions=tuple(assembler.instructions),
            outputs=tuple(assembler.at(graph.output, output_level)),
            transforms=tuple(assembler.transforms),
            vectors=tuple(assembler.vectors),
            polynomials=tuple(assembler.polynomials),
            fit_report=self.fit_report,
            ranges=tuple(assembler.ranges),
            output_scale=self.output_scale,
            bootstraps=self.options if self.placement.bootstraps else (),
            layers=tuple(assembler.layers),
        )


class _Assembler:
    def __init__(self, assembly: Assembly) -> None:
        self.assembly, self.graph, self.layouts = assembly, assembly.graph, assembly.layouts
        self.instructions: list[Instruction] = []
        self.layers: list[Layer] = []
        self.transforms: list[DiagonalMatrix] = []
        self.vectors: list[Vector] = []
        self.polynomials: list[PolynomialSpec] = []
        self.ranges: list[ValueRange] = []
        self.ciphertexts: dict[tuple[int, int], list[int]] = {}

    def node(self, number: int) -> None:
        """Append the instructions that compute one value, and its bootstrap."""
        node, level = self.graph.nodes[number], self.assembly.placement.levels[number]
        layout, first = self.layouts[number], len(self.instructions)
        match node:
            case Input():
                level = self.assembly.input_level
                cts = [self._emit("input", (), level, index) for index in range(layout.ciphertexts)]
            case Linear():
                cts = self._linear(number, node, layout, level)
            case Shift(operands=(source,), vector=vector):
                cts = self._add_plain(self.at(source, level), layout.pack(vector), level)
            case Add(operands=(left, right)) | Multiply(operands=(left, right)):
                spent = levels_consumed(node)
                opcode: Opcode = "add" if isinstance(node, Add) else "mul"
                pairs = zip(self.at(left, level + spent), self.at(right, level + spent), strict=True)
                cts = [self._emit(opcode, pair, level) for pair in pairs]
            case Polynomial(operands=(source,), coefficients=coefficients):
                self.polynomials.append(PolynomialSpec(coefficients))
                index = len(self.polynomials) - 1
                cts = [
                    self._emit("polynomial", (ct,), level, index)
                    for ct in self.at(source, level + levels_consumed(node))
                ]
            case _:
                raise TypeError(f"{type(node).__name__} has no instructions; activations are fitted first")
        self.ciphertexts[number, level] = cts
        if isinstance(node, Multiply | Polynomial) and node.domain is not None:
            self._range(node.label, node.domain, cts)
        if not isinstance(node, Input):
            above, work = level + levels_consumed(node), self.assembly.work[number]
            self._layer(
                describe(number, node),
                type(node).__name__.lower(),
                (above, level),
                work.rotations + work.hoisted,
                self.assembly.costs.seconds(work, above),
                first,
            )
            self._bootstrap(number)

    def at(self, number: int, level: int) -> list[int]:
        """The ciphertexts of a value at a level, dropped from the lowest higher one where need be."""
        if (number, level) not in self.ciphertexts:
            above = min(known for value, known in self.ciphertexts if value == number and known > level)
            cts = [self._emit("drop_level", (ct,), level) for ct in self.ciphertexts[number, above]]
            self.ciphertexts[number, level] = cts
        return self.ciphertexts[number, level]

    def _layer(
        self, name: str, kind: str, levels: tuple[int, int], rotations: int, seconds: float, first: int
    ) -> None:
        if len(self.instructions) > first:
            self.layers.append(
                Layer(name, kind, levels[0], levels[1], rotations, seconds, first, len(self.instructions))
            )

    def _range(self, name: str, domain: Domain, results: list[int]) -> None:
        ends = (domain.low, domain.high, domain.model_low, domain.model_high)
        self.ranges += [ValueRange(result, name, *ends) for result in results]

    def _bootstrap(self, number: int) -> None:
        index = self.assembly.placement.bootstraps.get(number)
        if index is None:
            return
        option, first = self.assembly.options[index], len(self.instructions)
        cts = [
            self._emit("bootstrap", (ct,), option.output_level, index)
            for ct in self.at(number, option.input_level)
        ]
        self.ciphertexts[number, option.output_level] = cts
        seconds = option.seconds
        if seconds is None:
            seconds = self.assembly.costs.bootstrap_seconds(option.output_level)
        name = (
            f"after {describe(number, self.graph.nodes[number])}, which is read at level "
            f"{self.assembly.placement.needs[number]}"
        )
        self._layer(
            name, "bootstrap", (option.input_level, option.output_level), 0, seconds * len(cts), first
        )

    def _emit(self, opcode: Opcode, cts: tuple[int, ...], level: int, argument: int = 0) -> int:
        result = len(self.instructions)
        self.instructions.append(Instruction(opcode, result, cts, level, argument))
        return result

    def _linear(self, number: int, node: Linear, layout: Layout, level: int) -> list[int]:
        lowered = self.assembly.lowered[number]
        sources = [ct for operand in node.operands for ct in self.at(operand, level + 1)]
        results = []
        for used, transform in lowered.rows:
            self.transforms.append(transform)
            index = len(self.transforms) - 1
            ct = self._emit("linear_transform", tuple(sources[i] for i in used), level, index)
            for step in lowered.folds:
                ct = self._emit("add", (ct, self._emit("rotate", (ct,), level, step)), level)
            results.append(ct)
        return self._add_plain(results, layout.pack(node.bias), level)

    def _add_plain(self, cts: list[int], rows: Vector, level: int) -> list[int]:
        results = []
        for ct, row in zip(cts, rows, strict=True):
            if row.any():
                self.vectors.append(row)
                ct = self._emit("add_plain", (ct,), level, len(self.vectors) - 1)
            results.append(ct)
        return results
