"""The interface of a compiled network for the planner, which `keywright.compiler.Program` implements."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class KeySwitchLike(Protocol):
    """See `keywright.program.key_switches.KeySwitch`."""

    @property
    def instruction(self) -> int:
        """Index of the instruction."""

    @property
    def kind(self) -> Literal["rotation", "relinearization", "conjugation"]:
        """Kind of key."""

    @property
    def step(self) -> int:
        """Slots to the left, for a rotation."""

    @property
    def level(self) -> int:
        """Level of the switched ciphertext."""

    @property
    def count(self) -> int:
        """Number of times."""

    @property
    def source(self) -> str:
        """The switched polynomial."""

    @property
    def log_n(self) -> int:
        """log2 of the degree of the smaller ring; 0 for the largest."""


class InstructionLike(Protocol):
    """See `keywright.program.instructions.Instruction`."""

    @property
    def opcode(self) -> str:
        """Its name."""

    @property
    def result(self) -> int:
        """Number of the result."""

    @property
    def operands(self) -> tuple[int, ...]:
        """Numbers of the operands."""

    @property
    def level(self) -> int:
        """Level of the result."""

    @property
    def argument(self) -> int:
        """Index of a transform, a polynomial or a bootstrap."""


class TransformLike(Protocol):
    """See `keywright.program.operands.diagonals.DiagonalMatrix`."""

    @property
    def diagonals(self) -> Sequence[Mapping[int, Vector]]:
        """Diagonals of each input, by index."""

    @property
    def periods(self) -> tuple[int, ...]:
        """For each input, the number of values of a diagonal."""

    @property
    def n1(self) -> int:
        """Number of possible baby steps."""


class PolynomialLike(Protocol):
    """See `keywright.program.operands.polynomials.PolynomialSpec`."""

    @property
    def coefficients(self) -> Vector:
        """By ascending degree."""

    @property
    def basis(self) -> str:
        """Powers or Chebyshev polynomials."""

    @property
    def degree(self) -> int:
        """The highest index of a coefficient."""


class NetworkLike(Protocol):
    """See `keywright.compiler.Program`."""

    @property
    def instructions(self) -> Sequence[InstructionLike]:
        """In order of execution."""

    @property
    def transforms(self) -> Sequence[TransformLike]:
        """Operands of linear transforms."""

    @property
    def polynomials(self) -> Sequence[PolynomialLike]:
        """Operands of polynomials."""

    @property
    def key_switches(self) -> Sequence[KeySwitchLike]:
        """All key switches, in order of execution."""

    @property
    def rings(self) -> Mapping[int, int]:
        """For each ciphertext, log2 of the degree of the smaller ring; 0 for the largest."""
