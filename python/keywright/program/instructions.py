"""The instructions of a compiled network, and the layers that they compute."""

from dataclasses import dataclass
from typing import Literal, get_args

Opcode = Literal[
    "input", "linear_transform", "rotate", "add", "add_plain", "mul", "polynomial", "drop_level",
    "switch_ring", "bootstrap", "add_both", "conjugate", "join", "real", "imaginary",
]  # fmt: skip
OPCODES: tuple[Opcode, ...] = get_args(Opcode)


@dataclass(frozen=True)
class Instruction:
    """One step of a program. Ciphertexts are numbered; each number is written once, before it is read.

    Attributes:
        opcode: method of `Backend`, or "input".
        result: number of the result.
        operands: numbers of the operands.
        level: level of the result.
        argument: index of the input ciphertext, transform, vector, polynomial or bootstrap; step of a
            rotation; log2 of the degree of the new ring, 0 for the largest; otherwise 0.
    """

    opcode: Opcode
    result: int
    operands: tuple[int, ...]
    level: int
    argument: int = 0


Scale = object
"""Represents a scale: equal objects are equal scales."""


class Scales:
    """Follows scales through a program: a sum brings operands that were dropped to the others' scale.

    Attributes:
        of: the scale of each ciphertext so far.
    """

    def __init__(self) -> None:
        self.of: dict[int, Scale] = {}
        self._dropped: set[int] = set()

    def follow(self, step: Instruction) -> list[int]:
        """Return the levels at which operands of a step are brought to another scale."""
        scales, dropped, result = self.of, self._dropped, step.result
        operands = [scales[operand] for operand in step.operands]
        changed: list[int] = []
        match step.opcode:
            case "input":
                scales[result] = "input"
            case "mul":
                scales[result] = (step.level, frozenset(operands))
            case "bootstrap":
                scales[result] = "input"
            case "add" | "join" | "linear_transform":
                kept = [scales[o] for o in step.operands if o not in dropped] or operands
                scales[result] = kept[0]
                level = step.level + (step.opcode == "linear_transform")
                others = (o for o in step.operands if o in dropped and scales[o] != kept[0])
                changed = [level for _ in others]
            case _:
                scales[result] = operands[0]
        if step.opcode == "drop_level":
            dropped.add(result)
        return changed


OUTSIDE = 1e-6
"""Share of a range's width by which a value may exceed it: rounding."""


@dataclass(frozen=True)
class ValueRange:
    """The calibrated range of a polynomial's or square's operand, if it approximates a function.

    Attributes:
        result: result of the instruction.
        name: function and ONNX node.
        low, high: range of the operand as it is computed.
        model_low, model_high: the same in the model's own numbers.
        slots: the slots that hold values, if others may leave the range without harm; empty for all. A
            polynomial corrupts every slot if one leaves its range, a square does not.
        total: whether the operand is the sum of what a mask shows of a row: 0 where it shows nothing.
    """

    result: int
    name: str
    low: float
    high: float
    model_low: float
    model_high: float
    slots: tuple[int, ...] = ()
    total: bool = False


@dataclass(frozen=True)
class Layer:
    """Instructions that compute one value of the network, for reports.

    Attributes:
        name: kind of layer and ONNX node; for a bootstrap, the layer before it and the level required.
        kind: "linear", "multiply", "polynomial", "add", "shift" or "bootstrap".
        input_level, output_level: levels of its operands and of its result.
        rotations: number of rotations, and of conjugations that take parts of joined halves.
        seconds: time predicted by the cost table.
        start, stop: range of its instructions.
    """

    name: str
    kind: str
    input_level: int
    output_level: int
    rotations: int
    seconds: float
    start: int
    stop: int
