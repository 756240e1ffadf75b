"""The key switches of a program: input of the key planner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from keywright._core import polynomial_depth
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.polynomials import PolynomialSpec

from .instructions import Instruction

Kind = Literal["rotation", "relinearization", "conjugation"]


@dataclass(frozen=True)
class KeySwitch:
    """Key switches with one key at one place of a program.

    Attributes:
        order: position in the program's list.
        instruction: index of the instruction that performs it.
        kind: kind of key.
        step: left rotation in slots, in [1, slots); 0 for other kinds.
        level: level of the ciphertext that is switched.
        count: number of times.
        source: the polynomial that is switched: "c7" is ciphertext 7; "c7/64" is the partial sum of giant
            step 64 of the transform that makes ciphertext 7; "c7/p" a product inside the polynomial that
            makes it. Equal sources share a decomposition.
        log_n: log2 of the degree of the smaller ring; 0 for the largest.
    """

    order: int
    instruction: int
    kind: Kind
    step: int
    level: int
    count: int
    source: str
    log_n: int = 0


@dataclass(frozen=True)
class RequiredKey:
    """One key of a ring (see `KeySwitch`) and the highest level at which it is used."""

    kind: Kind
    step: int
    level: int
    log_n: int = 0

    def galois_element(self, log_n: int) -> int | None:
        """Return 5^step modulo 2N for a rotation in the ring of degree N = 2^log_n; None for a
        relinearization key."""
        two_n = 2 << log_n
        if self.kind == "relinearization":
            return None
        return two_n - 1 if self.kind == "conjugation" else pow(5, self.step, two_n)


def list_key_switches(
    instructions: Sequence[Instruction],
    transforms: Sequence[DiagonalMatrix],
    polynomials: Sequence[PolynomialSpec],
    rings: Mapping[int, int],
) -> tuple[KeySwitch, ...]:
    """Return the key switches of every instruction, in order of execution; see `Backend` for the operations.
    Switches between rings are left out: their keys are no rotation keys.

    Args:
        rings: ring of each ciphertext; see `Program.rings`.
    """
    results: list[KeySwitch] = []

    def note(index: int, kind: Kind, step: int, level: int, source: str, count: int = 1) -> None:
        ring = rings[instructions[index].result]
        results.append(KeySwitch(len(results), index, kind, step, level, count, source, ring))

    for index, step in enumerate(instructions):
        if step.opcode == "rotate":
            note(index, "rotation", step.argument, step.level, f"c{step.operands[0]}")
        elif step.opcode == "conjugate":
            note(index, "conjugation", 0, step.level, f"c{step.operands[0]}")
        elif step.opcode == "mul":
            note(index, "relinearization", 0, step.level + 1, f"c{step.result}/p")
        elif step.opcode == "polynomial":
            polynomial = polynomials[step.argument]
            top = step.level + polynomial_depth(polynomial.degree)
            offsets = polynomial.relinearizations
            for offset in sorted(set(offsets)):
                count = offsets.count(offset)
                note(index, "relinearization", 0, top - offset, f"c{step.result}/p", count)
        elif step.opcode == "linear_transform":
            transform = transforms[step.argument]
            for position, operand in enumerate(step.operands):
                for baby in transform.baby_steps(position):
                    if baby:
                        note(index, "rotation", baby, step.level + 1, f"c{operand}")
            for giant in transform.giant_steps:
                if giant:
                    note(index, "rotation", giant, step.level + 1, f"c{step.result}/{giant}")
    return tuple(results)


def required_keys(switches: Sequence[KeySwitch]) -> tuple[RequiredKey, ...]:
    """Return each key with the highest level at which it is used, by ring: relinearization first, then
    rotations by step."""
    highest: dict[tuple[int, Kind, int], int] = {}
    for switch in switches:
        key = (switch.log_n, switch.kind, switch.step)
        highest[key] = max(highest.get(key, 0), switch.level)
    return tuple(
        RequiredKey(kind, step, level, log_n) for (log_n, kind, step), level in sorted(highest.items())
    )
