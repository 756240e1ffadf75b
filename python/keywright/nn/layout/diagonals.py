"""A matrix by its diagonals, as rotations meet it: what linear maps between layouts become."""

from dataclasses import dataclass

import numpy as np

from keywright.nn.graph.sparse import Vector


@dataclass(frozen=True, eq=False)
class DiagonalMatrix:
    """A block row of matrices by their diagonals: the sum over inputs k of M_k v_k.

    Diagonal r of M is ``M[i, (i + r) mod slots]``. Diagonals are evaluated by baby and giant steps: r = i + j
    with the baby step i = r mod n1, a rotation of the input, and the giant step j = r - i, a rotation of the
    sum over inputs and baby steps.

    Attributes:
        slots: slots of the ciphertexts; a power of two.
        diagonals: for each input, the nonzero diagonals by r in [0, slots); each of length ``slots``, or of a
            smaller power of two, which then repeats.
        n1: number of possible baby steps.
    """

    slots: int
    diagonals: tuple[dict[int, Vector], ...]
    n1: int

    def baby_steps(self, operand: int) -> list[int]:
        """Rotations of one input, ascending; 0 needs no key."""
        return sorted({r % self.n1 for r in self.diagonals[operand]})

    def giant_steps(self) -> list[int]:
        """Rotations of partial sums, ascending; 0 needs no key."""
        return sorted({r - r % self.n1 for diagonals in self.diagonals for r in diagonals})

    def full_diagonal(self, operand: int, r: int) -> Vector:
        """One diagonal with as many values as there are slots."""
        diagonal = self.diagonals[operand][r]
        return np.tile(diagonal, self.slots // len(diagonal))
