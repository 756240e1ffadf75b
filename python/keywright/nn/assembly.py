"""From a graph and its layouts to the instructions of a program."""

import numpy as np

from .backend import LinearTransform, PolynomialSpec
from .fitting import FittedActivation
from .graph import Add, Graph, Input, Linear, Multiply, Polynomial, Shift, levels_consumed, operands
from .layout import Layout
from .lowering import place, transforms
from .program import Instruction, Operation, Program
from .sparse import Vector


def needed_levels(graph: Graph, output_level: int) -> dict[int, int]:
    """The level of every value, as low as what reads it allows: keys are then as small as they can be."""
    levels = dict.fromkeys(graph.nodes, output_level)
    for number in reversed(graph.nodes):
        node = graph.nodes[number]
        for operand in operands(node):
            levels[operand] = max(levels[operand], levels[number] + levels_consumed(node))
    return levels


def assemble(
    graph: Graph,
    layouts: dict[int, Layout],
    levels: dict[int, int],
    input_level: int,
    fitted: list[FittedActivation],
    output_scale: float,
) -> Program:
    """The program of a graph without activations.

    Args:
        levels: of every value; see `needed_levels`.
        input_level: at which the input enters; at least its needed level.
        fitted, output_scale: for the attributes of the program.
    """
    assembler = _Assembler(graph, layouts, levels, input_level)
    for number in graph.nodes:
        assembler.node(number)
    source = next(number for number, node in graph.nodes.items() if isinstance(node, Input))
    return Program(
        slots=layouts[source].slots,
        input_shape=graph.nodes[source].shape,
        output_shape=graph.nodes[graph.output].shape,
        input_layout=layouts[source],
        output_layout=layouts[graph.output],
        input_level=input_level,
        output_level=levels[graph.output],
        instructions=tuple(assembler.instructions),
        outputs=tuple(assembler.at(graph.output, levels[graph.output])),
        transforms=tuple(assembler.transforms),
        vectors=tuple(assembler.vectors),
        polynomials=tuple(assembler.polynomials),
        fitted=tuple(fitted),
        output_scale=output_scale,
    )


class _Assembler:
    def __init__(
        self, graph: Graph, layouts: dict[int, Layout], levels: dict[int, int], input_level: int
    ) -> None:
        self.graph, self.layouts, self.levels, self.input_level = graph, layouts, levels, input_level
        self.instructions: list[Instruction] = []
        self.transforms: list[LinearTransform] = []
        self.vectors: list[Vector] = []
        self.polynomials: list[PolynomialSpec] = []
        self.ciphertexts: dict[tuple[int, int], list[int]] = {}

    def node(self, number: int) -> None:
        """Append the instructions that compute one value."""
        node, level = self.graph.nodes[number], self.levels[number]
        layout = self.layouts[number]
        match node:
            case Input():
                level = self.input_level
                cts = [self._emit("input", (), level, index) for index in range(layout.ciphertexts)]
            case Linear():
                cts = self._linear(node, layout, level)
            case Shift(operands=(source,), vector=vector):
                cts = self._add_plain(self.at(source, level), layout.pack(vector), level)
            case Add(operands=(left, right)) | Multiply(operands=(left, right)):
                spent = levels_consumed(node)
                operation: Operation = "add" if isinstance(node, Add) else "mul"
                pairs = zip(self.at(left, level + spent), self.at(right, level + spent), strict=True)
                cts = [self._emit(operation, pair, level) for pair in pairs]
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

    def at(self, number: int, level: int) -> list[int]:
        """The ciphertexts of a value at a level, dropped from the lowest higher one where need be."""
        if (number, level) not in self.ciphertexts:
            above = min(known for value, known in self.ciphertexts if value == number and known > level)
            cts = [self._emit("drop_level", (ct,), level) for ct in self.ciphertexts[number, above]]
            self.ciphertexts[number, level] = cts
        return self.ciphertexts[number, level]

    def _emit(self, operation: Operation, cts: tuple[int, ...], level: int, argument: int = 0) -> int:
        result = len(self.instructions)
        self.instructions.append(Instruction(operation, result, cts, level, argument))
        return result

    def _linear(self, node: Linear, layout: Layout, level: int) -> list[int]:
        placement = place(list(node.matrices), [self.layouts[o] for o in node.operands], layout)
        sources = [ct for operand in node.operands for ct in self.at(operand, level + 1)]
        results = []
        for transform in transforms(placement, layout.slots):
            used = [i for i, diagonals in enumerate(transform.diagonals) if diagonals] or [0]
            diagonals = tuple(transform.diagonals[i] or {0: np.zeros(1)} for i in used)
            self.transforms.append(LinearTransform(transform.slots, diagonals, transform.n1))
            index = len(self.transforms) - 1
            ct = self._emit("linear_transform", tuple(sources[i] for i in used), level, index)
            for step in placement.folds:
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
