"""What a compiled network does, step by step: its instructions, and the layers that they compute."""

from dataclasses import dataclass
from typing import Literal, get_args

Opcode = Literal[
    "input",
    "linear_transform",
    "rotate",
    "add",
    "add_plain",
    "mul",
    "polynomial",
    "drop_level",
    "switch_ring",
    "bootstrap",
]
OPCODES: tuple[Opcode, ...] = get_args(Opcode)


@dataclass(frozen=True)
class Instruction:
    """One step of a program. Ciphertexts are numbered; each number is written once, before it is read.

    Attributes:
        opcode: method of `Backend`, or "input".
        result: number of the ciphertext that it makes.
        operands: numbers of the ciphertexts that it reads.
        level: level of the result.
        argument: index of the input ciphertext, transform, vector, polynomial or bootstrap; step of a
            rotation; log2 of the degree of the ring that is switched to, 0 for the largest; otherwise 0.
    """

    opcode: Opcode
    result: int
    operands: tuple[int, ...]
    level: int
    argument: int = 0


@dataclass(frozen=True)
class ValueRange:
    """The values that an instruction is for: a polynomial or a square that stands for a function.

    Attributes:
        result: of the instruction; the range is of its operand.
        name: function and ONNX node.
        low, high: as they are computed on.
        model_low, model_high: the same in the model's own numbers.
    """

    result: int
    name: str
    low: float
    high: float
    model_low: float
    model_high: float


@dataclass(frozen=True)
class Layer:
    """Instructions that compute one value of the network, for reports.

    Attributes:
        name: kind of layer and ONNX node; of a bootstrap, what it follows and which level is asked for.
        kind: "linear", "multiply", "polynomial", "add", "shift" or "bootstrap".
        input_level, output_level: levels of its operands and of its result.
        rotations: how many it takes.
        seconds: predicted time, as good as the cost table.
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
