"""What the planner reads of a compiled network: `keywright.nn.Program` has this form."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class KeySwitchLike(Protocol):
    """As of `keywright.nn.KeySwitch`."""

    @property
    def instruction(self) -> int:
        """Index of the instruction."""

    @property
    def kind(self) -> Literal["rotation", "relinearization", "conjugation"]:
        """What the key is for."""

    @property
    def step(self) -> int:
        """Slots to the left, of a rotation."""

    @property
    def level(self) -> int:
        """Level of what is switched."""

    @property
    def count(self) -> int:
        """How many times."""

    @property
    def source(self) -> str:
        """What is switched."""

    @property
    def log_n(self) -> int:
        """Of the degree of the smaller ring that it is in; 0 for the largest."""


class InstructionLike(Protocol):
    """As of `keywright.nn.Instruction`."""

    @property
    def opcode(self) -> str:
        """Its name."""

    @property
    def result(self) -> int:
        """Number of the ciphertext that it makes."""

    @property
    def operands(self) -> tuple[int, ...]:
        """Numbers of those that it reads."""

    @property
    def level(self) -> int:
        """Level of the result."""

    @property
    def argument(self) -> int:
        """Index of a transform, a polynomial or a bootstrap."""


class TransformLike(Protocol):
    """As of `keywright.nn.DiagonalMatrix`."""

    @property
    def diagonals(self) -> Sequence[Mapping[int, Vector]]:
        """For each input, by index."""

    @property
    def periods(self) -> tuple[int, ...]:
        """Of each input, how many values a diagonal has."""

    @property
    def n1(self) -> int:
        """Number of possible baby steps."""


class PolynomialLike(Protocol):
    """As of `keywright.nn.PolynomialSpec`."""

    @property
    def coefficients(self) -> Vector:
        """By ascending degree."""

    @property
    def basis(self) -> str:
        """Of powers or of Chebyshev polynomials."""

    @property
    def degree(self) -> int:
        """The highest index of a coefficient."""


class NetworkLike(Protocol):
    """As of `keywright.nn.Program`."""

    @property
    def instructions(self) -> Sequence[InstructionLike]:
        """In order of execution."""

    @property
    def transforms(self) -> Sequence[TransformLike]:
        """What linear transforms refer to."""

    @property
    def polynomials(self) -> Sequence[PolynomialLike]:
        """What polynomials refer to."""

    @property
    def key_switches(self) -> Sequence[KeySwitchLike]:
        """All of them, in order of execution."""

    @property
    def rings(self) -> Mapping[int, int]:
        """For each ciphertext log2 of the degree of the smaller ring that it is in; 0 for the largest."""
