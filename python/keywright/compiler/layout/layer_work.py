"""The number of operations of a layer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerWork:
    """Operation counts of a layer.

    Attributes:
        rotations: key switches without a shared decomposition: giant steps, foldings, and conjugations that
            take the parts of joined halves.
        hoisted: rotations that share the decomposition of their input: baby steps.
        diagonals: products with a plaintext diagonal.
        multiplications: products of ciphertexts by level, relative to the layer's operands: entry 0 at their
            level, entry 1 one level below, and so on.
    """

    rotations: int = 0
    hoisted: int = 0
    diagonals: int = 0
    multiplications: tuple[int, ...] = ()

    def times(self, count: int) -> "LayerWork":
        """Return the work on so many ciphertexts."""
        return LayerWork(
            self.rotations * count,
            self.hoisted * count,
            self.diagonals * count,
            tuple(number * count for number in self.multiplications),
        )


@dataclass(frozen=True)
class Prices:
    """Costs of operations in seconds, for comparing layouts.

    Attributes:
        rotation: a giant step or a folding.
        hoisted: a baby step.
        diagonal: a product with a diagonal.
        ciphertext: the extra cost of one more ciphertext per value: one product of ciphertexts.
    """

    rotation: float
    hoisted: float
    diagonal: float
    ciphertext: float
