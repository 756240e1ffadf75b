"""Values of a run in the clear, as an encrypted run has them."""

from dataclasses import dataclass

from keywright.nn.graph.sparse import Vector


@dataclass(frozen=True, eq=False)
class SimulatedCiphertext:
    """The slots of one ciphertext in all runs that are made at once.

    Attributes:
        values: (batches, 1 + repetitions, slots); of each batch of samples the first row has no errors.
        level, scale: as of `keywright.Ciphertext`.
    """

    values: Vector
    level: int
    scale: float
