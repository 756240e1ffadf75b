"""How a polynomial is evaluated: its depth and its relinearizations."""

from .backend import Basis


def polynomial_depth(degree: int) -> int:
    """Levels that evaluation consumes: ceil(log2(degree + 1))."""
    return degree.bit_length()


def polynomial_relinearizations(degree: int, basis: Basis) -> list[int]:
    """How far below the input's level each relinearization happens, ascending.

    Paterson-Stockmeyer with powers (or Chebyshev polynomials) up to 2^k, k = ceil(depth / 2), and their
    doublings: power n is the product of powers ceil(n/2) and floor(n/2), at ceil(log2 n) - 1 below the input;
        the polynomial is split at
    2^j, largest first, and each split multiplies its quotient by power 2^j. Both bases take the same
    products.

    Args:
        degree: at least 1.
        basis: "monomial" or "chebyshev".
    """
    depth = polynomial_depth(degree)
    small = 1 << ((depth + 1) // 2)
    powers: set[int] = set()

    def need(power: int) -> None:
        if power > 1 and power not in powers:
            powers.add(power)
            need((power + 1) // 2)
            need(power // 2)

    offsets: list[int] = []

    def split(top: int, below: int) -> None:
        """Evaluate a part of degree ``top`` so that its value is ``below`` levels under the input."""
        if top < small:
            for power in range(2, top + 1):
                need(power)
            return
        giant = 1 << (top.bit_length() - 1)
        need(giant)
        if top > giant:
            offsets.append(below - 1)
            split(top - giant, below - 1)
        split(giant - 1, below)

    split(degree, depth)
    offsets.extend((power - 1).bit_length() - 1 for power in powers)
    return sorted(offsets)
