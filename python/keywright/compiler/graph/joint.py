"""Sums of products in the clear, without the joint elements of both factors.

A product of two encrypted matrices is two maps that spread the factors over all joint elements, their
product, and a map that sums; see `keywright.compiler.front_ends.operators.attention.products`. Of a long
sentence, joint elements are nearly all values of a graph. Here, a few at a time are computed and summed, in
the order of the maps: results have the same bits.
"""

from dataclasses import dataclass, replace

import numpy as np

from keywright.program.arrays import Vector

from .sparse import Indices, SparseMatrix

BLOCK = 1 << 15
"""Joint elements of all samples that are computed at a time, so that they stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class JointSum:
    """What is summed of which elements.

    Attributes:
        terms: the element of each factor before it is spread, by term and sum, (terms, sums); the number of
            its elements where it has none.
        used: which of them each factor has.
        rows: the number of each sum in the result.
        size: elements of the result.
        weights: of the factors and of the terms.
    """

    terms: tuple[Indices, Indices]
    used: tuple[Indices, Indices]
    rows: Indices
    size: int
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @staticmethod
    def of(total: SparseMatrix, left: SparseMatrix, right: SparseMatrix) -> "JointSum | None":
        """Return the sums of the products of two values behind the maps ``left`` and ``right``; None if they
        are no such maps. They are kept with the places of the entries of ``total``."""
        for matrix, kinds in ((total, ("other",)), (left, ("moves", "picks")), (right, ("moves", "picks"))):
            if matrix.kind not in kinds or (matrix.values != matrix.values[:1]).any():
                return None
        key = ("joint sums", id(left.of_places), id(right.of_places))
        if key not in total.of_places:
            # Places of entries stay alive, so that no others get their identities.
            total.of_places[key] = _read(total, left, right), left.of_places, right.of_places
        sums: JointSum | None = total.of_places[key][0]
        weights = (float(left.values[0]), float(right.values[0]), float(total.values[0]))
        return sums and replace(sums, weights=weights)

    def apply(self, left: Vector, right: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the sums, (samples, rows), and three arrays that have the least and largest elements of the
        joint elements and of both factors, spread.

        Args:
            left, right: the factors before they are spread, (samples, elements).
        """
        samples, weight = len(left), self.weights[2]
        one, other = (np.zeros((factor.shape[1] + 1, samples)) for factor in (left, right))
        one[:-1], other[:-1] = left.T, right.T
        one *= self.weights[0]
        other *= self.weights[1]
        block = max(BLOCK // samples, 1)
        out, low, high = np.zeros((self.size, samples)), np.inf, -np.inf
        memory = np.empty((2, min(block, len(self.rows)), samples))
        for first in range(0, len(self.rows), block):
            rows = self.rows[first : first + block]
            product, second = memory[:, : len(rows)]
            sums = np.zeros_like(product)
            for a, b in zip(*(each[:, first : first + block] for each in self.terms), strict=True):
                np.take(one, a, axis=0, out=product, mode="clip")
                product *= np.take(other, b, axis=0, out=second, mode="clip")
                low, high = np.minimum(low, product.min()), np.maximum(high, product.max())
                if weight != 1:
                    product *= weight
                sums += product
            out[rows] = sums
        return np.ascontiguousarray(out.T), np.array([[low, high]]), one[self.used[0]], other[self.used[1]]


def _read(total: SparseMatrix, left: SparseMatrix, right: SparseMatrix) -> JointSum | None:
    counts = total.row_counts()
    rows = np.flatnonzero(counts)
    if (counts[rows] != counts[rows[0]]).any() or (total.column_counts() != 1).any():
        return None
    joint = total.columns[np.argsort(total.rows, kind="stable")].reshape(len(rows), -1).T
    terms, used = [], []
    for each in (left, right):
        chosen = np.full(each.shape[0], each.shape[1])
        chosen[each.rows] = each.columns
        terms.append(chosen[joint])
        used.append(np.flatnonzero(np.bincount(chosen)))
    return JointSum((terms[0], terms[1]), (used[0], used[1]), rows, total.shape[0])
