"""Published strategies for choosing keys, behind one interface."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from keywright.plan.cost.model import CostModel
from keywright.plan.keys.key_plan import KeyPlan
from keywright.plan.ring.galois import Automorphism, AutomorphismGroup
from keywright.plan.workload.workload import Group, Workload

from . import powers
from .policy import KeyPolicy
from .rotation_patterns import OURS, TEXT, Interpretation, pattern_keys
from .routes import plan_routes

Routes = Callable[[AutomorphismGroup, Group, Workload], dict[Automorphism, Sequence[Automorphism]]]


@dataclass(frozen=True)
class Strategy:
    """A published strategy: which automorphisms have keys, and how the others are composed of them.

    Attributes:
        name: as on the command line.
        source: the publication.
        routes: the hops for each target of a group.
        policy: levels and digits of the keys by default.
    """

    name: str
    source: str
    routes: Routes
    policy: KeyPolicy

    def plan(self, workload: Workload, model: CostModel, policy: KeyPolicy | None = None) -> KeyPlan:
        """Return the plan of this strategy; another policy gives the same routes with other keys.

        Raises:
            keywright.plan.workload.workload.WorkloadError: the policy's keys do not fit the parameters.
        """
        group = workload.automorphisms
        return plan_routes(
            self.name,
            workload,
            model,
            policy or self.policy,
            lambda targets: self.routes(group, targets, workload),
        )


def _each(route: Callable[[AutomorphismGroup, Automorphism], Sequence[Automorphism]]) -> Routes:
    def routes(
        group: AutomorphismGroup, targets: Group, workload: Workload
    ) -> dict[Automorphism, Sequence[Automorphism]]:
        del workload
        return {target: route(group, target) for target in targets.targets}

    return routes


def _lowmem(
    group: AutomorphismGroup, targets: Group, workload: Workload
) -> dict[Automorphism, Sequence[Automorphism]]:
    del workload
    return powers.lowmem(group, targets)


class _PatternRoutes:
    """Decompositions of all rotations of a workload, computed once."""

    def __init__(self, priority: Literal["memory", "time"], interpretation: Interpretation) -> None:
        self.priority, self.interpretation = priority, interpretation
        self._of: tuple[str, dict[Automorphism, Sequence[Automorphism]]] | None = None

    def __call__(
        self, group: AutomorphismGroup, targets: Group, workload: Workload
    ) -> dict[Automorphism, Sequence[Automorphism]]:
        if self._of is None or self._of[0] != workload.digest:
            self._of = (workload.digest, self._decompose(group, workload))
        return {target: self._of[1][target] for target in targets.targets}

    def _decompose(
        self, group: AutomorphismGroup, workload: Workload
    ) -> dict[Automorphism, Sequence[Automorphism]]:
        half = group.slots // 2
        signed = {
            a: a.step - group.slots if a.step > half else a.step
            for a in workload.highest_levels
            if not a.conjugate
        }
        result = pattern_keys(signed.values(), self.priority, self.interpretation).decompositions
        out: dict[Automorphism, Sequence[Automorphism]] = {a: [a] for a in workload.highest_levels}
        for a, step in signed.items():
            out[a] = [group.rotation(value) for value in result[step]]
        return out


_PUBLISHED = KeyPolicy("maximum", "all")

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        Strategy("all-required", "FHE-MP-CNN", _each(powers.all_required), _PUBLISHED),
        Strategy("power-of-two", "HEAAN", _each(powers.unsigned_powers), _PUBLISHED),
        Strategy("signed-power-of-two", "SEAL", _each(powers.signed_powers), _PUBLISHED),
        Strategy("fhelipe", "Fhelipe, PLDI 2024", _each(powers.fhelipe), _PUBLISHED),
        Strategy("lowmem", "LowMem, ePrint 2024/998", _lowmem, _PUBLISHED),
        Strategy("ark-memory", "ARK, ePrint 2024/1948", _PatternRoutes("memory", OURS), _PUBLISHED),
        Strategy("ark-time", "ARK, ePrint 2024/1948", _PatternRoutes("time", OURS), _PUBLISHED),
        Strategy("ark-memory-text", "ARK, ePrint 2024/1948", _PatternRoutes("memory", TEXT), _PUBLISHED),
        Strategy("ark-time-text", "ARK, ePrint 2024/1948", _PatternRoutes("time", TEXT), _PUBLISHED),
        Strategy("kds", "KDS, Sensors 2025", _each(powers.all_required), KeyPolicy("dynamic", "needed")),
    )
}
"""The published strategies by name. Their keys are those that libraries make, at the top level with as many
primes per digit as the special primes hold; only `kds` chooses levels and digits."""
