"""A ring for ciphertexts."""

from dataclasses import dataclass

from .costs import CostTable


@dataclass(frozen=True, eq=False)
class Ring:
    """A ring for ciphertexts.

    Attributes:
        log_n: log2 of its degree N.
        level: the highest level of its ciphertexts.
        costs: of operations in it.
        bootstraps: time of a bootstrap that begins in it, relative to one that begins in the largest ring.
    """

    log_n: int
    level: int
    costs: CostTable
    bootstraps: float = 1.0

    @property
    def slots(self) -> int:
        """Maximum slots of its ciphertexts."""
        return 1 << (self.log_n - 1)
