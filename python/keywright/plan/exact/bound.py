"""Lower bounds for all plans: bytes within a time, time within bytes.

A linear program bounds the key switches for automorphisms (`relaxation`). Relinearizations are bounded by the
cheapest key; switches to and from an ephemeral secret have a fixed cost. The other operations of the workload
depend on the primes that key switches remove: the least over all keys is counted, and for an open part the
fastest alternative.

A bound by counting: automorphisms commute, so m keys make at most C(m + h, h) - 1 of them with h hops. For
every level l the keys of levels from l up make all targets that are needed at such a level; let m_l be the
fewest keys for which the count allows this. Then the k-th highest key has at least the highest level l with
m_l >= k, and at least the bytes of the smallest key of that level. This holds for keys of any automorphisms,
and for any time.
"""

from collections.abc import Iterable
from functools import cache
from math import comb

from keywright.plan.cost.model import CostModel
from keywright.plan.cost.operations import Operation
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.open_workload import OpenWorkload
from keywright.plan.workload.workload import Workload

from .least_costs import LeastCosts
from .relaxation import Relaxation


class LowerBound:
    """Bounds of one workload."""

    def __init__(
        self,
        workload: Workload | OpenWorkload,
        model: CostModel,
        extra: Iterable[Automorphism] = (),
        *,
        max_hops: int = 2,
    ) -> None:
        """Set up.

        Args:
            workload: the workload.
            model: predicts times.
            extra: automorphisms that may have a key although nothing needs them.
            max_hops: maximum hops of a target.
        """
        opened = OpenWorkload.of(workload)
        workload = opened.workload
        self._model, self._least = model, LeastCosts(workload, model)
        self._relaxation = Relaxation(opened, self._least, extra, max_hops=max_hops)
        self._fixed_bytes = float(workload.ephemeral_bytes)
        self._fixed_seconds = workload.ephemeral_seconds(model)
        for use in workload.relinearizations:
            self._fixed_seconds += use.count * self._least.switch(use.level)
        if workload.relinearizations:
            highest = max(use.level for use in workload.relinearizations)
            self._fixed_bytes += self._least.stored_bytes(highest)
        self.rest = self._least_rest(opened)
        """A lower bound on the seconds besides key switches."""
        self.counted_bytes = self._count(workload, max_hops)
        """A lower bound on the bytes of any plan with so many hops, by counting."""

    def _least_rest(self, opened: OpenWorkload) -> float:
        workload, weights = opened.workload, self._model.of_degree(opened.workload.chain.log_n)
        removed = cache(self._least.removed)

        def least(operation: Operation) -> float:
            chain, level = workload.chain, operation.level
            top = chain.max_level + 1
            special = tuple(range(top, top + len(chain.p)))
            first = {special, *removed(level)}
            second = removed(level) if operation.merged else [()]
            works = (operation.work(chain, one, other) for one in first for other in second or [()])
            return operation.count * min(work.seconds(weights) for work in works)

        total = sum(map(least, workload.operations))
        for choice in opened.choices:
            ways = (sum(map(least, way.operations)) for way in choice.alternatives)
            total += len(choice.places) * min(ways)
        return total

    def _count(self, workload: Workload, max_hops: int) -> float:
        """Return the bytes of the fewest keys at each level that can make the targets there."""
        levels = sorted(workload.highest_levels.values(), reverse=True)
        total, keys = self._fixed_bytes, 0
        for result, level in enumerate(levels, 1):
            while comb(keys + max_hops, max_hops) - 1 < result:
                keys += 1
                total += self._least.stored_bytes(level)
        return total

    def stored_bytes(self, seconds: float) -> float:
        """Return a lower bound on the bytes of plans that take at most these seconds; infinite if there are
        none."""
        switches = seconds - self.rest - self._fixed_seconds
        return max(self.counted_bytes, self._fixed_bytes + self._relaxation.stored_bytes(switches))

    def seconds(self, stored_bytes: float) -> float:
        """Return a lower bound on the time of plans with at most these bytes; infinite if there are none."""
        if stored_bytes < self.counted_bytes:
            return float("inf")
        switches = self._relaxation.seconds(stored_bytes - self._fixed_bytes)
        return switches + self._fixed_seconds + self.rest
