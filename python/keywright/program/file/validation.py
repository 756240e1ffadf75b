"""Checks that a program read from a file is consistent: operands, levels, indices, plaintexts."""

import numpy as np

from keywright._core import polynomial_depth
from keywright.errors.engine import FormatError
from keywright.program.arrays import Vector
from keywright.program.instructions import OPCODES, Instruction
from keywright.program.operands.diagonals import DiagonalMatrix, distinct_of
from keywright.program.operands.layout import Layout
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.program.program import Program

OPERAND_COUNT = {
    "input": 0,
    "rotate": 1,
    "add": 2,
    "add_plain": 1,
    "mul": 2,
    "polynomial": 1,
    "drop_level": 1,
    "switch_ring": 1,
    "bootstrap": 1,
    "add_both": 1,
    "conjugate": 1,
    "join": 2,
    "real": 2,
    "imaginary": 2,
}
COMPLEX = ("conjugate", "real", "imaginary", "add_both")
REAL = ("join", "mul", "polynomial", "bootstrap", "add_plain")
"""Operations on complex and on real values; others take either."""
MAX_DEGREE = 1 << 12
MIN_LOG_N, MAX_LOG_N = 3, 17
"""Bounds on log2 of the degree of a smaller ring."""

ADVICE = "Compile the model again, and write the program with keywright.compiler.save"


def validate(program: Program) -> None:
    """Check that every instruction of a program can be executed.

    Raises:
        FormatError: names the first inconsistency.
    """
    for transform in program.operands.transforms:
        _transform(transform)
    for polynomial in program.operands.polynomials:
        _polynomial(polynomial)
    for vector in program.operands.vectors:
        _finite("a vector", vector)
    for option in program.operands.bootstraps:
        held = program.ring_slots(option.input_log_n)
        _require(option.slots <= held, f"a bootstrap of {option.slots} slots, and its ring has {held}")
    _require(
        program.input.log_n == 0 or _is_ring(program.input.log_n), _no_ring("the input", program.input.log_n)
    )
    levels: dict[int, int] = {}
    inputs = []
    for step in program.instructions:
        levels[step.result] = _instruction(program, step, levels)
        if step.opcode == "input":
            inputs.append(step.argument)
    _kinds(program)
    numbers = {step.result: step.opcode for step in program.instructions}
    for range_ in program.ranges:
        _require(
            numbers.get(range_.result) in ("polynomial", "mul"),
            f"a range of ciphertext {range_.result}, which is not the result of a polynomial or a product",
        )
        held = program.ring_slots(program.rings[range_.result])
        _require(max(range_.slots, default=0) < held, f"a range of slot {max(range_.slots, default=0)}")
    for layer in program.layers:
        _require(
            0 <= layer.start < layer.stop <= len(program.instructions),
            f"a layer of instructions {layer.start} to {layer.stop} of {len(program.instructions)}",
        )
    _layout("input", program.input.layout, len(inputs))
    _layout("output", program.output.layout, len(program.output.ciphertexts))
    _require(inputs == list(range(len(inputs))), f"inputs are numbered {inputs}, not from 0 upwards")
    _require(bool(program.output.ciphertexts), "there are no outputs")
    for ct in program.output.ciphertexts:
        _require(ct in levels, f"output {ct} is never computed")
        _require(
            levels[ct] == program.output.level,
            f"output {ct} is at level {levels[ct]} instead of {program.output.level}",
        )


def _kinds(program: Program) -> None:
    """Check that every operation has operands of its kind, real or complex, that parts are taken of a value
    and its conjugate, and that outputs are real."""
    joined: dict[int, bool] = {}
    conjugates = {step.result: step.operands for step in program.instructions if step.opcode == "conjugate"}
    for step in program.instructions:
        kinds = {joined[operand] for operand in step.operands}
        name = "complex" if True in kinds else "real"
        wrong = step.opcode in (REAL if True in kinds else COMPLEX) or len(kinds) > 1
        _require(not wrong, f"{step.opcode} has operands with {name} values")
        parted = step.opcode in ("real", "imaginary")
        both = not parted or conjugates.get(step.operands[1]) == step.operands[:1]
        _require(both, f"{step.opcode} has operands that are not a value and its conjugate")
        joined[step.result] = step.opcode == "join" or (True in kinds and not parted)
    for ct in program.output.ciphertexts:
        _require(not joined.get(ct), f"output {ct} has complex values")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise FormatError(f"inconsistent program: {message}. {ADVICE}", code="program")


def _is_ring(log_n: int) -> bool:
    return MIN_LOG_N <= log_n <= MAX_LOG_N


def _no_ring(what: str, log_n: int) -> str:
    return f"{what} is in a ring of degree 2^{log_n}; degrees are 2^{MIN_LOG_N} to 2^{MAX_LOG_N}"


def _finite(name: str, values: Vector) -> None:
    _require(bool(np.isfinite(values).all()), f"{name} has values that are not finite")


def _layout(name: str, layout: Layout, ciphertexts: int) -> None:
    positions, batch = layout.positions, layout.batch
    _require(len(positions) > 0, f"the {name} layout has no positions")
    _require(int(positions.min()) >= 0, f"the {name} layout has a negative position, {int(positions.min())}")
    _require(len(np.unique(positions)) == len(positions), f"the {name} layout uses a slot twice")
    _require(
        layout.parts in (1, 2) and batch % layout.parts == 0,
        f"the {name} layout has {layout.parts} parts for {batch} samples",
    )
    each, own = batch // layout.parts, ciphertexts // layout.parts
    _require(
        layout.ciphertexts == ciphertexts,
        f"the {name} layout takes {layout.ciphertexts} ciphertexts, and the program has {ciphertexts}",
    )
    bound = layout.period if own == 1 else layout.slots * own
    last = int(positions.max())
    _require(last < bound, f"the {name} layout has the position {last}, and positions end below {bound}")
    _require(
        layout.period % each == 0 and not (positions % each).any(),
        f"the {name} layout does not interleave {each} samples",
    )
    _require(
        own == 1 or layout.period == layout.slots,
        f"the {name} layout of {ciphertexts} ciphertexts has period {layout.period}, not {layout.slots}",
    )


def _transform(transform: DiagonalMatrix) -> None:
    _require(
        1 <= transform.n1 <= transform.slots,
        f"a transform has {transform.n1} baby steps; from 1 to its {transform.slots} slots are possible",
    )
    _require(bool(transform.diagonals), "a transform has no inputs")
    for diagonals in transform.diagonals:
        _require(bool(diagonals), "a transform has an input without diagonals")
        for r in diagonals:
            _require(0 <= r < transform.slots, f"a transform of {transform.slots} slots has a diagonal {r}")
        _finite("a diagonal", distinct_of(diagonals))


def _polynomial(polynomial: PolynomialSpec) -> None:
    _require(
        polynomial.basis in ("monomial", "chebyshev"),
        f"a polynomial has the basis {polynomial.basis!r}; a basis is monomial or chebyshev",
    )
    _require(polynomial.coefficients.ndim == 1, "polynomial coefficients are not a list of numbers")
    _require(
        1 <= polynomial.degree <= MAX_DEGREE,
        f"a polynomial has degree {polynomial.degree}; degrees are 1 to {MAX_DEGREE}",
    )
    _finite("a polynomial", polynomial.coefficients)


def _instruction(program: Program, step: Instruction, levels: dict[int, int]) -> int:
    """Check one instruction against the levels computed so far and return its result's level."""
    _require(step.opcode in OPCODES, f"{step.opcode!r} is not an operation")
    _require(step.result not in levels, f"ciphertext {step.result} is computed twice")
    for operand in step.operands:
        _require(operand in levels, f"ciphertext {operand} is read before it is computed")
    before = [levels[operand] for operand in step.operands]
    rings = {program.rings[operand] for operand in step.operands}
    _require(len(rings) <= 1, f"{step.opcode} has operands in the rings {sorted(rings)} instead of one")
    slots = program.ring_slots(min(rings, default=program.input.log_n))
    known = len(step.operands)
    if step.opcode == "linear_transform":
        _require(
            step.argument < len(program.operands.transforms), f"transform {step.argument} does not exist"
        )
        expected = len(program.operands.transforms[step.argument].diagonals)
        result = program.operands.transforms[step.argument].slots
        _require(result == slots, f"a transform of {result} slots in a ring of {slots} slots")
    else:
        expected = OPERAND_COUNT[step.opcode]
    _require(known == expected, f"{step.opcode} has {known} operands instead of {expected}")
    if step.opcode == "input":
        _require(
            step.level == program.input.level,
            f"an input at level {step.level} instead of {program.input.level}",
        )
        return step.level
    _require(len(set(before)) == 1, f"{step.opcode} has operands at the levels {before} instead of one")
    spent = 0
    if step.opcode in ("linear_transform", "mul"):
        spent = 1
    elif step.opcode == "polynomial":
        _require(
            step.argument < len(program.operands.polynomials), f"polynomial {step.argument} does not exist"
        )
        spent = polynomial_depth(program.operands.polynomials[step.argument].degree)
    elif step.opcode in ("add_plain", "add_both"):
        _require(step.argument < len(program.operands.vectors), f"vector {step.argument} does not exist")
        result = len(program.operands.vectors[step.argument])
        _require(result == slots, f"a vector of {result} values in a ring of {slots} slots")
    elif step.opcode == "rotate":
        _require(0 < step.argument < slots, f"a rotation by {step.argument} of {slots} slots")
    if step.opcode == "bootstrap":
        _require(
            step.argument < len(program.operands.bootstraps), f"bootstrap {step.argument} does not exist"
        )
        option = program.operands.bootstraps[step.argument]
        _require(
            before[0] >= option.input_level,
            f"a bootstrap of a ciphertext at level {before[0]}, below its input level {option.input_level}",
        )
        asked = option.input_log_n
        _require(rings == {asked}, f"a bootstrap from ring {asked} has an operand in ring {min(rings)}")
        _require(
            step.level == option.output_level,
            f"a bootstrap to level {step.level} instead of {option.output_level}",
        )
    elif step.opcode == "switch_ring":
        _require(
            step.argument == 0 or _is_ring(step.argument), _no_ring("the result of a switch", step.argument)
        )
        _require(rings != {step.argument}, f"a switch from ring {step.argument} to itself")
        _require(step.level == before[0], f"a switch of rings from level {before[0]} to {step.level}")
    elif step.opcode == "drop_level":
        _require(step.level <= before[0], f"a drop from level {before[0]} up to {step.level}")
    else:
        _require(
            step.level == before[0] - spent,
            f"{step.opcode} from level {before[0]} to {step.level} instead of {before[0] - spent}",
        )
    return step.level
