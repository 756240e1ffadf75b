"""Runs a program on a back end."""

from collections.abc import Callable

from keywright.errors.engine import OperandError
from keywright.program.instructions import Instruction
from keywright.program.program import Program

from .backend import Backend, Ciphertext


def execute(
    program: Program,
    backend: Backend[Ciphertext],
    inputs: list[Ciphertext],
    look: Callable[[Instruction, list[Ciphertext]], object] | None = None,
) -> list[Ciphertext]:
    """Evaluate a program and return its encrypted result.

    Ciphertexts are released after their last use.

    Args:
        inputs: the encrypted rows of `Program.pack`, at ``program.input.level`` or above.
        look: called with every instruction and its operands before it is executed.

    Raises:
        OperandError: another number of inputs than the program has, or inputs at too low a level.
    """
    expected = program.input.layout.ciphertexts
    if len(inputs) != expected:
        raise OperandError(f"the program takes {expected} ciphertexts, got {len(inputs)}")
    for ct in inputs:
        if backend.level(ct) < program.input.level:
            raise OperandError(
                f"inputs must be at level {program.input.level} or above, got {backend.level(ct)}"
            )
    last_use = {operand: i for i, step in enumerate(program.instructions) for operand in step.operands}
    live: dict[int, Ciphertext] = {}
    pairs = program.bootstrap_pairs
    for index, step in enumerate(program.instructions):
        cts = [live[operand] for operand in step.operands]
        if look is not None:
            look(step, cts)
        result: Ciphertext
        match step.opcode:
            case "input":
                result = inputs[step.argument]
                if backend.level(result) > step.level:
                    result = backend.drop_level(result, step.level)
            case "linear_transform":
                result = backend.linear_transform(cts, program.operands.transforms[step.argument])
            case "rotate":
                result = backend.rotate(cts[0], step.argument)
            case "add":
                result = backend.add(cts[0], cts[1])
            case "add_plain":
                result = backend.add_plain(cts[0], program.operands.vectors[step.argument])
            case "mul":
                result = backend.mul(cts[0], cts[1])
            case "polynomial":
                result = backend.polynomial(cts[0], program.operands.polynomials[step.argument])
            case "add_both":
                result = backend.add_both(cts[0], program.operands.vectors[step.argument])
            case "conjugate":
                result = backend.conjugate(cts[0])
            case "join":
                result = backend.join(cts[0], cts[1])
            case "real":
                result = backend.real(cts[0], cts[1])
            case "imaginary":
                result = backend.imaginary(cts[0], cts[1])
            case "switch_ring":
                result = backend.switch_ring(cts[0], step.argument)
            case "bootstrap" if step.result in live:
                result = live[step.result]
            case "bootstrap":
                together = program.instructions[index : pairs.get(index, index) + 1]
                results = backend.bootstrap([live[each.operands[0]] for each in together], step.argument)
                live |= {each.result: value for each, value in zip(together, results, strict=True)}
                result = results[0]
            case _:
                result = backend.drop_level(cts[0], step.level)
        live[step.result] = result
        for operand in set(step.operands):
            if last_use[operand] == index and operand not in program.output.ciphertexts:
                del live[operand]
    return [live[number] for number in program.output.ciphertexts]
