"""Two halves of a batch in the same ciphertexts, as real and imaginary parts.

Rotations, sums and maps of real weights act on both parts of complex values alike: of two halves, they take
the work of one. Products, polynomials and bootstraps act on each part, and two bootstraps share most of their
work (`Program.bootstrap_pairs`). A value of the program for one half has up to three forms here:

* its *parts*, ciphertexts of a and of b: inputs, outputs, and what products, polynomials and bootstraps take
  and give;
* *joined*, a + i b, made of its parts without a key switch;
* *halved*, (a + i b) / 2: what maps give, whose weights are divided by 2 where they read joined values.

The sum of a halved value and its conjugate is a, and their difference is i b: both parts take one key switch,
and no level. It runs in the layer that first reads a part, and is counted in the map's. A joined value keeps
its parts, so that nothing is divided by 2 but weights and added vectors.

Errors have both parts. An error e of a halved value is 2 Re(e) in a, twice that of a map by itself. The
imaginary part of b's error adds to a when they are joined. Taking parts removes imaginary parts: what b adds
are errors of the operations since then, which are as large as a's own of these. Estimates of the engine bound
the absolute value of an error, so that they hold for both parts of a sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from keywright.program.arrays import Vector
from keywright.program.instructions import Instruction, Opcode
from keywright.program.operands.diagonals import DiagonalMatrix, Diagonals, copies_of, distinct_of, period_of
from keywright.program.operands.layout import Layout
from keywright.program.program import Program

PARTS = 2


@dataclass
class _Forms:
    """The numbers of the forms of a value, as far as they are made.

    Attributes:
        moved: makes it of another value, in the forms that are read: a lower level, or another ring.
    """

    parts: tuple[int, int] | None = None
    joined: int | None = None
    halved: int | None = None
    moved: Instruction | None = None


def join_halves(program: Program) -> Program:
    """Return the program for two batches of a program at once.

    Args:
        program: of values that are real; its bootstraps take pairs.
    """
    return _Joining(program).program()


class _Joining:
    def __init__(self, program: Program) -> None:
        self.given = program
        self.instructions: list[Instruction] = []
        self.values: dict[int, _Forms] = {}
        self.transforms: list[DiagonalMatrix] = []
        self.vectors: list[Vector] = []
        self.taken: dict[tuple[int, tuple[bool, ...]], int] = {}

    def program(self) -> Program:
        """Return the program, see `join_halves`."""
        given, ends = self.given, [0]
        inputs = [step for step in given.instructions if step.opcode == "input"]
        first, second = (
            [self._emit("input", (), each.level, each.argument + behind) for each in inputs]
            for behind in (0, len(inputs))
        )
        for step, *parts in zip(inputs, first, second, strict=True):
            self.values[step.result] = _Forms((parts[0], parts[1]))
        for step in given.instructions:
            if step.opcode != "input":
                self._step(step)
            ends.append(len(self.instructions))
        outputs = zip(*(self._parts(number) for number in given.output.ciphertexts), strict=True)
        ends[-1] = len(self.instructions)
        moved = [replace(each, start=ends[each.start], stop=ends[each.stop]) for each in given.layers]
        return replace(
            given,
            input=replace(given.input, layout=_of_both(given.input.layout)),
            output=replace(
                given.output,
                layout=_of_both(given.output.layout),
                ciphertexts=tuple(number for part in outputs for number in part),
            ),
            instructions=tuple(self.instructions),
            operands=replace(given.operands, transforms=tuple(self.transforms), vectors=tuple(self.vectors)),
            layers=tuple(each for each in moved if each.start < each.stop),
            ranges=tuple(
                replace(each, result=part) for each in given.ranges for part in self._parts(each.result)
            ),
        )

    def _step(self, step: Instruction) -> None:
        operands, value = step.operands, self.values.setdefault(step.result, _Forms())
        together = all(map(self._is_halved, operands))
        match step.opcode:
            case "linear_transform":
                whole = tuple(not self._is_halved(operand) for operand in operands)
                read = tuple(map(self._complex, operands))
                value.halved = self._emit(step.opcode, read, step.level, self._weights(step.argument, whole))
            case "drop_level" | "switch_ring":
                value.moved = step
            case "add_plain":
                vector, index = self.given.operands.vectors[step.argument], len(self.vectors)
                self.vectors.append(vector / 2 if together else vector)
                if together:
                    value.halved = self._emit("add_both", (self._halved(operands[0]),), step.level, index)
                else:
                    value.parts = self._on_parts(replace(step, argument=index))
            case "rotate" | "add" if together:
                read = tuple(map(self._halved, operands))
                value.halved = self._emit(step.opcode, read, step.level, step.argument)
            case _:
                value.parts = self._on_parts(step)

    def _on_parts(self, step: Instruction) -> tuple[int, int]:
        """Do the same with each part of the operands."""
        columns = zip(*map(self._parts, step.operands), strict=True)
        first, second = (self._emit(step.opcode, each, step.level, step.argument) for each in columns)
        return first, second

    def _is_halved(self, number: int) -> bool:
        """Whether a value has its halved form, or is moved from one that has."""
        value = self.values[number]
        if value.halved is None and value.moved is not None:
            return self._is_halved(value.moved.operands[0])
        return value.halved is not None

    def _complex(self, number: int) -> int:
        """Return the halved form of a value, or the joined one if it has none."""
        return self._halved(number) if self._is_halved(number) else self._joined(number)

    def _halved(self, number: int) -> int:
        value = self.values[number]
        if value.halved is None:
            assert value.moved is not None, "it has this form"
            value.halved = self._move(value.moved, self._halved(value.moved.operands[0]))
        return value.halved

    def _joined(self, number: int) -> int:
        value = self.values[number]
        if value.joined is None:
            if value.moved is not None:
                value.joined = self._move(value.moved, self._joined(value.moved.operands[0]))
            else:
                parts = self._parts(number)
                value.joined = self._emit("join", parts, self._level(parts[0]))
        return value.joined

    def _parts(self, number: int) -> tuple[int, int]:
        value = self.values[number]
        if value.parts is None:
            moved, halved = value.moved, self._is_halved(number)
            # A sum brings what was dropped to another scale. Another ring is smaller.
            if moved is not None and not (halved and moved.opcode == "switch_ring"):
                first, second = (self._move(moved, part) for part in self._parts(moved.operands[0]))
                value.parts = first, second
            else:
                own = self._halved(number)
                level = self._level(own)
                both = own, self._emit("conjugate", (own,), level)
                value.parts = self._emit("real", both, level), self._emit("imaginary", both, level)
        return value.parts

    def _move(self, step: Instruction, number: int) -> int:
        return self._emit(step.opcode, (number,), step.level, step.argument)

    def _level(self, number: int) -> int:
        return self.instructions[number].level

    def _emit(self, opcode: Opcode, operands: Sequence[int], level: int, argument: int = 0) -> int:
        result = len(self.instructions)
        self.instructions.append(Instruction(opcode, result, tuple(operands), level, argument))
        return result

    def _weights(self, index: int, whole: tuple[bool, ...]) -> int:
        """Return the number of a transform whose weights of some operands are divided by 2."""
        if (index, whole) not in self.taken:
            self.taken[index, whole] = len(self.transforms)
            given = self.given.operands.transforms[index]
            rows = tuple(
                _by_half(each) if halved else each
                for each, halved in zip(given.diagonals, whole, strict=True)
            )
            self.transforms.append(replace(given, diagonals=rows))
        return self.taken[index, whole]


def _by_half(diagonals: Mapping[int, Vector]) -> Diagonals:
    return Diagonals(
        sorted(diagonals), period_of(diagonals), lambda: distinct_of(diagonals) / 2, copies_of(diagonals)
    )


def _of_both(layout: Layout) -> Layout:
    """Return the layout of both halves, each in ciphertexts of its own."""
    return replace(layout, batch=PARTS * layout.batch, parts=PARTS)
