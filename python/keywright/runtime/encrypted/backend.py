"""Programs on ciphertexts: keys, encryption, evaluation, decryption."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, get_args

from keywright._copies import Unpicklable
from keywright._core import Bootstrapper, BootstrapperPlan, Ciphertext, Evaluator, polynomial_depth
from keywright.errors.choices import require_choice
from keywright.errors.engine import OperandError
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.diagonals import Place, Storage
from keywright.plan.workload.arithmetic import input_ring
from keywright.program.arrays import Numbers, Vector
from keywright.program.instructions import Instruction
from keywright.program.operands.bootstraps import LARGEST
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.operands.polynomials import PolynomialSpec
from keywright.program.program import Program
from keywright.runtime.executor import execute
from keywright.runtime.scales import LevelDropped, as_ciphertext, at_one_scale, level_dropped

from .encoded_transforms import EncodedTransforms


def _match(program: Program, plans: Sequence[BootstrapperPlan]) -> None:
    needed = program.operands.bootstraps
    offered = [(plan.slots, plan.input_level, plan.output_level, input_ring(plan)) for plan in plans]
    asked = [(b.slots, b.input_level, b.output_level, b.input_log_n) for b in needed]
    if asked and asked != offered:
        raise OperandError(
            f"the program needs bootstraps with (slots, input level, output level, input's ring) {asked}, "
            f"got {offered}"
        )
    if any(b.pairs and plan.values != "pair" for b, plan in zip(needed, plans, strict=False)):
        raise OperandError("the program bootstraps pairs of ciphertexts, and a plan is for single ones")


Value: TypeAlias = Ciphertext | LevelDropped[Ciphertext]

RESULT_SHARE = 1 / 4
"""Share of a modulus that a result declares at most: decryption refuses values above twice that."""


class EncryptedBackend(
    Unpicklable, elsewhere="load the model in the other process with keywright.load_server"
):
    """Evaluates programs on ciphertexts, with the keys of an evaluator; implements `Backend`.

    Linear transforms preserve the scale of their input, and polynomials give it to their result. A product
    has a scale of its own. A sum with it brings the operand that was dropped to a lower level to that scale.

    Diagonals are encoded at their first use, or by `prepare`, and stored as `storage` says. By default they
    are kept encoded: 8 p (level + 1 + special primes) bytes each, where p is their period.

    Thread safety: one thread at a time.

    Args:
        evaluator: with the keys of the plan; `PlanExecution.follow` describes their use.
        bootstrappers: of the program's bootstraps, in order, from `PlanExecution.bootstrapper_plans`.
        plan: plan of the program's keys; determines the primes for which diagonals are encoded.
        storage: storage of the diagonals of each transform, from `ProcessPlan`.
        on_step: called after each operation.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        bootstrappers: Sequence[Bootstrapper] = (),
        *,
        plan: PlanExecution,
        storage: Mapping[Place, Storage] | None = None,
        on_step: Callable[[], object] | None = None,
    ) -> None:
        self.evaluator, self.bootstrappers = evaluator, tuple(bootstrappers)
        self._on_step, self._slots = on_step, 0
        self._largest: dict[int, float] = {}
        for way in (storage or {}).values():
            require_choice("storage", way, get_args(Storage))
        self._transforms = EncodedTransforms(plan, storage or {})

    def with_keys(
        self, evaluator: Evaluator, on_step: Callable[[], object] | None = None
    ) -> "EncryptedBackend":
        """Return the same with another owner's keys; encoded diagonals are shared."""
        other = self._snapshot()
        other.evaluator, other._on_step = evaluator, on_step
        return other

    def prepare(
        self,
        program: Program,
        advance: Callable[[int], object] = lambda _: None,
        steps: Sequence[Instruction] | None = None,
    ) -> None:
        """Encode all linear transforms of a program that are kept, instead of at their first use.

        Args:
            advance: called with 1 after each.
            steps: instructions whose transforms are encoded; by default all.
        """
        self._transforms.prepare(program, advance, steps)

    def forget_transforms(self) -> None:
        """Drop encoded linear transforms; they are encoded again at their next use."""
        self._transforms.forget()

    def run(
        self,
        program: Program,
        inputs: Sequence[Ciphertext],
    ) -> list[Ciphertext]:
        """Evaluate a program and return its encrypted result.

        Args:
            inputs: the ciphertexts of one batch, as `Program.pack` packs it.

        Raises:
            OperandError: another number of ciphertexts or of slots than the program takes, low levels,
                or other bootstraps.
            MissingKeyError: a key is missing.
        """
        self._transforms.take(program)
        _match(program, [bootstrapper.plan for bootstrapper in self.bootstrappers])
        ring = program.input.log_n
        for ciphertext in inputs:
            if (ciphertext.slots, self._ring(ciphertext)) != (program.ring_slots(ring), ring):
                raise OperandError(
                    f"the program takes ciphertexts of {program.ring_slots(ring)} slots in a ring of degree "
                    f"2^{ring or self.evaluator.parameters.log_n}, got {ciphertext!r}"
                )
        self._slots = program.slots
        self._largest = {each.result: max(abs(each.low), abs(each.high)) for each in program.ranges}
        values: list[Value] = list(inputs)
        results = execute(program, self, values, self.before)
        return [self._fitting(as_ciphertext(result)) for result in results]

    def _fitting(self, result: Ciphertext) -> Ciphertext:
        """Return a result that declares at most `RESULT_SHARE` of what its modulus holds. Programs divide
        results so that those of calibration data are at most 1, and decryption refuses values above the
        declaration."""
        room = sum(math.log2(prime) for prime in self.evaluator.parameters.q[: result.level + 1])
        return self._at_most(result, RESULT_SHARE * math.exp2(room - 1 - math.log2(result.scale)))

    def _at_most(self, ct: Ciphertext, largest: float) -> Ciphertext:
        """Return a ciphertext that declares at most ``largest``, which its program states. Bounds that follow
        from operations alone exceed all numbers after a few layers."""
        return ct if ct.magnitude_bound <= largest else self.evaluator.declare(ct, largest)

    def before(self, step: Instruction, operands: list[Value]) -> None:
        """Declare the operands of the next instruction if they have a calibrated range, which clients keep
        to (`guard`)."""
        largest = self._largest.get(step.result)
        if largest is not None:
            operand = as_ciphertext(operands[0])
            declared = self._at_most(operand, largest)
            if declared is not operand:
                operands[:] = [declared] * len(operands)

    def level(self, ct: Value) -> int:
        """See `Backend.level`."""
        return as_ciphertext(ct).level

    def linear_transform(self, cts: list[Value], transform: DiagonalMatrix) -> Ciphertext:
        """See `Backend.linear_transform`.

        Raises:
            ScaleError: scales differ between operands that were not dropped from a higher level.
        """
        first = as_ciphertext(cts[0])
        operands, encoded = self._transforms.of(transform, first.level, self._ring(first))
        values = self._at_one_scale([cts[k] for k in operands])
        return self._done(self.evaluator.linear_transform(values, encoded))

    def rotate(self, ct: Value, step: int) -> Ciphertext:
        """See `Backend.rotate`."""
        return self._done(self.evaluator.rotate(as_ciphertext(ct), step))

    def add(self, left: Value, right: Value) -> Ciphertext:
        """See `Backend.add`.

        Raises:
            ScaleError: the scales differ and neither operand was dropped from a higher level.
        """
        return self._done(self.evaluator.add(*self._at_one_scale([left, right])))

    def add_plain(self, ct: Value, vector: Numbers) -> Ciphertext:
        """See `Backend.add_plain`."""
        return self._done(self.evaluator.add(as_ciphertext(ct), vector))

    def mul(self, left: Value, right: Value) -> Ciphertext:
        """See `Backend.mul`."""
        a, b = as_ciphertext(left), as_ciphertext(right)
        return self._done(self.evaluator.square(a) if a is b else self.evaluator.multiply(a, b))

    def polynomial(self, ct: Value, polynomial: PolynomialSpec) -> Ciphertext:
        """See `Backend.polynomial`."""
        a = as_ciphertext(ct)
        result = self.evaluator.polynomial(a, polynomial.coefficients, polynomial.basis)
        # Trailing zero coefficients can make the depth smaller than the degree suggests.
        return self._done(self.evaluator.drop_to_level(result, a.level - polynomial_depth(polynomial.degree)))

    def add_both(self, ct: Value, vector: Vector) -> Ciphertext:
        """See `Backend.add_both`."""
        return self.add_plain(ct, vector * (1 + 1j))

    def conjugate(self, ct: Value) -> Ciphertext:
        """See `Backend.conjugate`."""
        return self._done(self.evaluator.conjugate(as_ciphertext(ct)))

    def join(self, real: Value, imaginary: Value) -> Ciphertext:
        """See `Backend.join`."""
        a, b = self._at_one_scale([real, imaginary])
        return self._done(self.evaluator.add(a, self.evaluator.multiply_by_i(b)))

    def real(self, ct: Value, conjugate: Value) -> Ciphertext:
        """See `Backend.real`."""
        return self._real(self.evaluator.add(as_ciphertext(ct), as_ciphertext(conjugate)))

    def imaginary(self, ct: Value, conjugate: Value) -> Ciphertext:
        """See `Backend.imaginary`."""
        difference = self.evaluator.sub(as_ciphertext(conjugate), as_ciphertext(ct))
        return self._real(self.evaluator.multiply_by_i(difference))

    def drop_level(self, ct: Value, level: int) -> Value:
        """See `Backend.drop_level`."""
        lowered = self._done(self.evaluator.drop_to_level(as_ciphertext(ct), level))
        return level_dropped(ct, lowered)

    def bootstrap(self, cts: list[Value], index: int) -> list[Value]:
        """See `Backend.bootstrap`. Operands declare `LARGEST`. Values above cannot be detected; their results
        are wrong."""
        bootstrapper, evaluator = self.bootstrappers[index], self.evaluator
        declared = [self._at_most(as_ciphertext(ct), LARGEST) for ct in cts]
        operands = [evaluator.view_slots(ct, bootstrapper.plan.slots) for ct in declared]
        together = bootstrapper.bootstrap if len(operands) == 1 else bootstrapper.bootstrap_pair
        results = together(evaluator, *operands)
        listed = results if isinstance(results, tuple) else (results,)
        return [self._done(evaluator.view_slots(result, self._slots)) for result in listed]

    def switch_ring(self, ct: Value, log_n: int) -> Ciphertext:
        """See `Backend.switch_ring`."""
        a, evaluator = as_ciphertext(ct), self.evaluator
        ring = evaluator.parameters.log_n if log_n == 0 else log_n
        slots = min(self._slots, 1 << (ring - 1))
        repeating = evaluator.view_slots(a, min(a.slots or slots, slots))
        switched = evaluator.switch_ring(repeating, ring)
        return self._done(evaluator.view_slots(switched, slots))

    @property
    def plaintext_bytes(self) -> int:
        """Bytes of the stored diagonals."""
        return self._transforms.bytes

    def _real(self, part: Ciphertext) -> Ciphertext:
        largest = max(part.magnitude_bound, sys.float_info.min)  # it is 0 for rows of zeros
        return self._done(self.evaluator.declare(part, largest, real=True))

    def _at_one_scale(self, values: list[Value]) -> list[Ciphertext]:
        return at_one_scale(values, self._set_scale)

    def _set_scale(self, source: Ciphertext, level: int, scale: float) -> Ciphertext:
        """Return the value at a lower level and at another scale."""
        return self.evaluator.set_scale(self.evaluator.drop_to_level(source, level + 1), scale)

    def _ring(self, ct: Ciphertext) -> int:
        """Return the name of a ciphertext's ring in programs."""
        return 0 if ct.log_n == self.evaluator.parameters.log_n else ct.log_n

    def _done(self, result: Ciphertext) -> Ciphertext:
        if self._on_step is not None:
            self._on_step()
        return result
