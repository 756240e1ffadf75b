"""Ciphertexts of a simulated run."""

from dataclasses import dataclass

from keywright.program.arrays import Numbers


@dataclass(frozen=True, eq=False)
class SimulatedCiphertext:
    """The slots of one ciphertext in all simultaneous runs.

    Attributes:
        values: (batches, 1 + repetitions, slots); the first row of each batch of samples has no errors.
        level, scale: as in `keywright.Ciphertext`.
        ring: log2 of the degree of the smaller ring; 0 for the largest.
    """

    values: Numbers
    level: int
    scale: float
    ring: int = 0
