"""The linear transforms of a program for ciphertexts: encoded, and stored as the process plan decides."""

from collections.abc import Callable, Mapping, Sequence

from keywright._core import LinearTransform
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.memory.diagonals import Place, Storage
from keywright.program.instructions import Instruction
from keywright.program.operands.diagonals import DiagonalMatrix, Diagonals, table_of
from keywright.program.program import Program

Used = tuple[DiagonalMatrix, int, int]
"""A transform, the level of its input, and the ring (`Program.rings`)."""

Encoded = tuple[list[int], list[LinearTransform]]
"""The operands that have diagonals, and these diagonals."""

WIDEST_COEFFICIENT = 2.0**62
"""Coefficients of diagonals are words. Wider ones, of large weights, are encoded whatever was planned."""


class EncodedTransforms:
    """Diagonals of a program, encoded for the primes that most key switches of their level remove.

    Args:
        plan: plan of the program's keys.
        storage: how the diagonals of a transform are stored, by its index in the program, the level of its
            input and its ring; encoded by default.
    """

    def __init__(self, plan: PlanExecution, storage: Mapping[Place, Storage]) -> None:
        self._plan, self._storage = plan, storage
        self._encoded: dict[Used, Encoded] = {}
        self._kept: dict[Used, Storage] = {}

    def take(self, program: Program) -> None:
        """Note how the transforms of a program are stored."""
        for (index, level, ring), storage in self._storage.items():
            self._kept[program.operands.transforms[index], level, ring] = storage

    def prepare(
        self,
        program: Program,
        advance: Callable[[int], object] = lambda _: None,
        steps: Sequence[Instruction] | None = None,
    ) -> None:
        """Encode the transforms of a program that are kept; calls `advance` with 1 after each."""
        self.take(program)
        for step in program.instructions if steps is None else steps:
            if step.opcode == "linear_transform":
                transform, level = program.operands.transforms[step.argument], step.level + 1
                ring = program.rings[step.result]
                if self._kept.get((transform, level, ring)) != "streamed":
                    self.of(transform, level, ring)
                advance(1)

    def of(self, transform: DiagonalMatrix, level: int, ring: int) -> Encoded:
        """Return a transform for ciphertexts of a level in a ring: the stored one, or one made for a single
        use."""
        key = (transform, level, ring)
        storage = self._kept.get(key, "encoded")
        result = self._encoded.get(key)
        if result is None:
            operands = [k for k, diagonals in enumerate(transform.diagonals) if diagonals]
            result = operands, [self._encode(transform, k, (level, ring), storage) for k in operands]
            if storage != "streamed":
                self._encoded[key] = result
            Diagonals.release()  # the engine has them now
        return result

    def forget(self) -> None:
        """Drop the stored transforms; each is encoded again at its next use."""
        self._encoded.clear()

    @property
    def bytes(self) -> int:
        """Bytes of the stored diagonals."""
        return sum(each.bytes for _, encoded in self._encoded.values() for each in encoded)

    def _encode(
        self, transform: DiagonalMatrix, operand: int, place: tuple[int, int], storage: Storage
    ) -> LinearTransform:
        (level, ring), diagonals = place, transform.diagonals[operand]
        execution = self._plan.in_ring(ring)
        table = table_of(diagonals)
        # Coefficients are at most as large as values, times the scale.
        largest = max(table.max(initial=0.0), -table.min(initial=0.0))  # without a copy
        fit = float(largest) * execution.parameters.q[level] < WIDEST_COEFFICIENT
        # For a single use coefficients are enough: each diagonal is transformed once anyway.
        kept = "encoded" if storage == "encoded" or not fit else "coefficients"
        return LinearTransform.from_rows(
            execution.parameters,
            sorted(diagonals),
            table,
            transform.slots,
            level,
            transform.n1,
            execution.special(level, transform),
            storage=kept,
        )
