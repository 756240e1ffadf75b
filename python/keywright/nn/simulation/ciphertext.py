"""Values of a run in the clear, as an encrypted run has them."""

from dataclasses import dataclass

from keywright.nn.graph.sparse import Vector


@dataclass(frozen=True, eq=False)
class SimulatedCiphertext:
    """The slots of one ciphertext in all runs that are made at once.

    Attributes:
        values: (batches, 1 + repetitions, slots); of each batch of samples the first row has no errors.
        level, scale: as of `keywright.Ciphertext`.
        ring: log2 of the degree of the smaller ring that it is in; 0 for the largest.
    """

    values: Vector
    level: int
    scale: float
    ring: int = 0
