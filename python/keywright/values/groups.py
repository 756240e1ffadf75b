"""Statistics over some of the slots, as numpy computes them without correction of degrees of freedom."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from keywright.errors import EncodeError

from .encrypted import Encrypted
from .refusals import NoArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Group(NoArray):
    """The slots that statistics are taken over. Each statistic is in every slot of its result.

    Thread safety: any number of threads may use one at the same time.

    Every method needs the rotations by powers of two. A group of data is one `Group` for each value of a
    category.

    Args:
        mask: 1 for the slots of the group and 0 for the others, one for every slot: numbers, which the server
            then sees, or encrypted values. The client encrypts such a mask with ``magnitude=1``.
        least: a lower bound on the number of slots of an encrypted mask. It divides by that number with a
            polynomial on the range from it to the number of slots, with an error of at most 2^-12 of the
            quotient, and the results are wrong for fewer.

    Raises:
        EncodeError: a mask of numbers has others than 0 and 1, or no 1.
        ValueError: the bound is below 1, or above the number of slots.
    """

    _computed = "use its methods, such as group.sum(x) and group.mean(x)"

    def __init__(self, mask: "ArrayLike | Encrypted", least: int = 1) -> None:
        self.mask: np.ndarray[tuple[int], np.dtype[np.float64]] | Encrypted
        slots = mask._slots if isinstance(mask, Encrypted) else np.size(mask)
        if not 1 <= least <= slots:
            raise ValueError(f"a group has from 1 to {slots} slots, got least={least}")
        if isinstance(mask, Encrypted):
            self.mask = mask
            count = mask.sum()
            self.share: Encrypted | float = 1.0 / slots
            if least < slots:
                self.share = count.within(least - 0.25, slots + 0.25).inverse(2.0**-12 / least)
            self.count: Encrypted | int = count
            return
        numbers = np.asarray(mask)
        if numbers.dtype.kind not in "biuf" or np.ma.is_masked(mask) or numbers.ndim != 1:
            raise EncodeError("a mask is an array of numbers, 0 or 1 for every slot")
        numbers = numbers.astype(np.float64)
        if not np.isin(numbers, (0.0, 1.0)).all() or not numbers.any():
            raise EncodeError("a mask has one 0 or 1 for every slot, and a 1")
        self.mask, self.count = numbers, int(numbers.sum())
        self.share = 1.0 / self.count

    def sum(self, values: Encrypted) -> Encrypted:
        """Return the sum of the group's values; one level.

        Raises:
            EncodeError: a mask of numbers has another length than the values.
        """
        return (values * self._numbers(values)).sum()

    def mean(self, values: Encrypted) -> Encrypted:
        """Return the mean of the group's values: one level, or two with an encrypted mask, behind the inverse
        of its number of slots."""
        if isinstance(self.mask, Encrypted):
            result = self.sum(values) * self.share
        else:
            result = (values * (self._numbers(values) * self.share)).sum()
        return result._declared(values.ciphertext.magnitude_bound)

    def _numbers(self, values: Encrypted) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | Encrypted":
        """Return the mask, one for every value: a mask of one number would be the same for all."""
        if isinstance(self.mask, np.ndarray) and len(self.mask) != values._slots:
            raise EncodeError(
                f"the mask of the group has {len(self.mask)} numbers, and the ciphertext {values._slots} "
                "slots; give one 0 or 1 for every slot, 0 for unused ones",
                count=len(self.mask),
                bound=values._slots,
            )
        return self.mask

    def variance(self, values: Encrypted) -> Encrypted:
        """Return the variance, the mean square of the distance from the mean: three levels, or five with an
        encrypted mask."""
        return self.covariance(values, values)

    def covariance(self, first: Encrypted, second: Encrypted) -> Encrypted:
        """Return the covariance of two vectors; see `variance`."""
        if isinstance(self.mask, Encrypted):
            left, right = ((each - self.mean(each)) * self.mask for each in (first, second))
            return (left * right).sum() * self.share
        weights = self.mask * math.sqrt(1.0 / self.mask.sum())
        left = (first - self.mean(first)) * weights
        right = left if second is first else (second - self.mean(second)) * weights
        return (left * right).sum()

    def correlation(
        self, first: Encrypted, second: Encrypted, deviations: tuple[float, float], error: float = 2.0**-10
    ) -> Encrypted:
        """Return Pearson's correlation.

        Args:
            deviations: a range above 0 that holds the standard deviations of both vectors; the result is
                wrong for others.
            error: bound on the error of each polynomial, as a share of the inverse of a deviation.
        """
        low, high = (float(end) for end in deviations)
        if not 0 < low < high < math.inf:
            raise ValueError(f"deviations are a range above 0, got {low} to {high}")
        result = self.covariance(first, second)
        for each in (first, second):
            variance = self.variance(each).within(low * low, high * high)
            result = result * variance.inverse_sqrt(error / high)
        return result._declared((1 + error) ** 2)

    def histogram(
        self,
        values: Encrypted,
        edges: Sequence[float],
        bits: int = 8,
        *,
        range: float = 1.0,  # noqa: A002
    ) -> list[Encrypted]:
        """Return the number of values between each edge and the next.

        Args:
            edges: two or more, increasing, in [-range, range].
            bits, range: of `Encrypted.compare`, for an error of 2^-bits. A value closer to an edge than twice
                the range times the jump of `keywright.minimax.composite.sign_composite(bits)`, 0.09 for 8
                bits and 0.007 for 12, counts as a fraction on both sides. Of every other value a count is off
                by at most 2^-bits, so that n values make at most n 2^-bits; the errors of encryption come on
                top.
        """
        ends = np.asarray(edges, np.float64)
        if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all() or np.abs(ends).max() > range:
            raise ValueError(f"edges are two or more increasing numbers in [-{range}, {range}]")
        above = [self.sum(values.compare(edge, bits, range=range)) for edge in ends.tolist()]
        return [left - right for left, right in pairwise(above)]
