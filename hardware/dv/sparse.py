"""Sparse moduli as the RTL describes them (rtl/arithmetic/sparse_moduli_pkg.sv)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sparse:
    """`2^bits - c` with `c = 2^high + 2^low - 1`, or `2^high - 2^low - 1` if `negative`."""

    bits: int
    high: int
    low: int
    negative: bool = False

    @property
    def c(self) -> int:
        return (1 << self.high) + (-1 if self.negative else 1) * (1 << self.low) - 1

    @property
    def value(self) -> int:
        return (1 << self.bits) - self.c

    def form(self, width: int) -> int:
        """The word `{high, low, negative, shift}`."""
        return self.high << 13 | self.low << 7 | self.negative << 6 | (width - self.bits)


def moduli(forms: list[Sparse], width: int) -> str:
    """A `Moduli` parameter."""
    word = sum(form.form(width) << 19 * i for i, form in enumerate(forms))
    return f"{19 * len(forms)}'h{word:x}"


# The 60-bit primes, then the 51-bit ones, in the order in which configurations take them.
WIDE = [Sparse(60, 17, 17), Sparse(60, 23, 18, True), Sparse(60, 24, 17)]
NARROW = [
    Sparse(51, 16, 16),
    Sparse(51, 23, 17),
    Sparse(51, 23, 20, True),
    Sparse(51, 24, 19, True),
    Sparse(51, 26, 17, True),
    Sparse(51, 27, 19),
]
