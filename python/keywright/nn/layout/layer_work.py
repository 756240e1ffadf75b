"""How much work a layer is, counted in operations."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerWork:
    """How much of each operation a layer takes.

    Attributes:
        rotations: key switches of rotations that share nothing: giant steps and foldings.
        hoisted: rotations that share the decomposition of their input: baby steps.
        diagonals: products with a plaintext diagonal.
        multiplications: products of ciphertexts by the level of their operands, counted from the layer's
            operands: entry 0 at their level, entry 1 one level below, and so on.
    """

    rotations: int = 0
    hoisted: int = 0
    diagonals: int = 0
    multiplications: tuple[int, ...] = ()

    def times(self, count: int) -> "LayerWork":
        """The work on that many ciphertexts."""
        return LayerWork(
            self.rotations * count,
            self.hoisted * count,
            self.diagonals * count,
            tuple(number * count for number in self.multiplications),
        )


@dataclass(frozen=True)
class Prices:
    """What operations cost where layouts are compared, in seconds.

    Attributes:
        rotation: of a giant step or a folding.
        hoisted: of a baby step.
        diagonal: of a product with a diagonal.
        ciphertext: of carrying a value in one ciphertext more: of one product of ciphertexts.
    """

    rotation: float
    hoisted: float
    diagonal: float
    ciphertext: float
