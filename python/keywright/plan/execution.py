"""From a plan to what the engine takes: keys to make, routes to follow, the order in which keys are used."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from keywright import BootstrapperPlan, EvaluationKeys, KeySpec, Parameters
from keywright.errors import PlanMismatchError

from .chain import Chain
from .converters.network import bootstrap_steps, chain_of, convert, steps
from .cost import CostModel
from .key_plan import KeyPlan, PlannedKey

if TYPE_CHECKING:
    from keywright.nn import Program as Network


class PlanExecution:
    """A plan on parameters.

    Args:
        plan: the plan.
        parameters: those that its program is for.
        network: what is to be run; a plan for another one is refused.
        bootstraps: plans of the network's bootstraps, in order.

    Raises:
        PlanMismatchError: the plan is for other primes, or for another program.
    """

    def __init__(
        self,
        plan: KeyPlan,
        parameters: Parameters,
        network: "Network | None" = None,
        bootstraps: Sequence[BootstrapperPlan] = (),
    ) -> None:
        chain = chain_of(parameters)
        if chain != plan.program.chain:
            raise PlanMismatchError(
                f"the plan is for {_describe(plan.program.chain)}, the parameters have {_describe(chain)}"
            )
        if network is not None:
            found = replace(plan.program, noise_bits=None).merged().digest
            expected = convert(network, parameters, plan.program.name, bootstraps).merged().digest
            if found != expected:
                raise PlanMismatchError(
                    f"the plan is for program {found[:16]}, this one is {expected[:16]}; plan it again",
                    found=found,
                    expected=expected,
                )
        self.plan, self.parameters, self.network = plan, parameters, network
        self.bootstraps = tuple(bootstraps)
        self._specs = {key: self._spec(key) for key in plan.keys}

    def key_specs(self) -> list[KeySpec]:
        """Exactly the plan's keys, and those to and from the ephemeral secrets of bootstraps."""
        fixed = [spec for plan in self.bootstraps for spec in plan.fixed_keys]
        return [*self._specs.values(), *dict.fromkeys(fixed)]

    def follow(self, keys: EvaluationKeys) -> EvaluationKeys:
        """The keys, used as the plan says.

        Raises:
            PlanMismatchError: they are not the plan's.
        """
        found, expected = keys_digest(keys), keys_digest(self._specs.values())
        if found != expected:
            raise PlanMismatchError(
                f"the keys have digest {found[:16]}, those of the plan {expected[:16]}; make them with "
                "keywright keygen --plan",
                found=found,
                expected=expected,
            )
        galois = self.plan.program.automorphisms.galois_element
        routes: dict[object, tuple[int, list[int], list[tuple[int, int, KeySpec]]]] = {}
        for group, tree in zip(self.plan.program.groups, self.plan.hops, strict=True):
            hops = [(galois(hop.parent), galois(hop.child), self._specs[hop.key]) for hop in tree]
            routes.setdefault(
                (group.level, group.targets), (group.level, [galois(a) for a in group.targets], hops)
            )
        relinearizations = [(level, self._specs[key]) for level, key in self.plan.relinearization.items()]
        return keys.following(list(routes.values()), relinearizations)

    def special(self, level: int, model: CostModel | None = None) -> list[int]:
        """The primes that most key switches of linear transforms at a level divide by: those to encode
        diagonals for. Others are divided before they meet the diagonals."""
        model = model or CostModel()
        count: dict[tuple[int, ...], int] = {}
        for group, tree in zip(self.plan.program.groups, self.plan.hops, strict=True):
            if group.level == level:
                for hop in tree:
                    use = model.switch(hop.key.shape, level)
                    if use is not None:
                        count[use.removed] = count.get(use.removed, 0) + group.count
        if not count:
            first = self.parameters.max_level + 1
            return list(range(first, first + len(self.parameters.p)))
        most = max(count, key=lambda removed: (count[removed], removed))
        return list(most)

    @property
    def bootstrapper_plans(self) -> list[BootstrapperPlan]:
        """The plans of the bootstraps with diagonals for the primes that most key switches of their level
        divide by: what to make `Bootstrapper`s of."""
        levels = {group.level for group in self.plan.program.groups if group.level > 0}
        special = {level: self.special(level) for level in levels}
        return [plan.with_special_primes(special) for plan in self.bootstraps]

    def key_steps(self) -> list[list[KeySpec]]:
        """The keys of each step of the network, or of one bootstrap, in order: what `EvaluationKeys.stream`
        takes.

        Raises:
            ValueError: there is neither.
        """
        program = self.plan.program
        if self.network is not None:
            listed = steps(self.network, program, self.bootstraps)
        elif len(self.bootstraps) == 1:
            listed = bootstrap_steps(self.bootstraps[0], program, "b")
        else:
            raise ValueError("the order of steps is that of a network or of one bootstrap; none was given")
        trees = {
            (group.level, group.targets): tree
            for group, tree in zip(program.groups, self.plan.hops, strict=True)
        }
        out: list[list[KeySpec]] = []
        for step in listed:
            for group in step.groups:
                used = [self._specs[hop.key] for hop in trees[group.level, group.targets]]
                out.append(list(dict.fromkeys(used)))
            levels = sorted(step.relinearizations, reverse=True)
            out += [[self._specs[self.plan.relinearization[level]]] for level in levels]
            if step.fixed:
                out.append(list(step.fixed))
        return out

    def _spec(self, key: PlannedKey) -> KeySpec:
        shape, parameters = key.shape, self.parameters
        special = list(shape.special_primes)
        # A digit has at most as many primes as there are; a larger alpha says the same.
        alpha = min(shape.alpha, max(shape.level + 1, len(special)))
        if key.automorphism is None:
            spec = KeySpec.relinearization(parameters, shape.level, alpha, True, special)
        else:
            element = self.plan.program.automorphisms.galois_element(key.automorphism)
            spec = KeySpec.galois(parameters, element, shape.level, alpha, True, special)
        if spec.bytes != shape.stored_bytes:
            raise PlanMismatchError(f"{spec!r} has {spec.bytes} bytes, {shape.stored_bytes} are planned")
        return spec


def keys_digest(keys: Iterable[KeySpec]) -> str:
    """SHA-256 of what the keys of automorphisms and relinearisations are, in any order."""
    lines = sorted(
        f"{spec.galois_element or 0} {spec.level} {spec.alpha} {spec.special} {spec.seeded}"
        for spec in keys
        if spec.kind in ("rotation", "conjugation", "galois", "relinearization")
    )
    return sha256("\n".join(lines).encode()).hexdigest()


def _describe(chain: Chain) -> str:
    q, p = (", ".join(f"{width:.2f}" for width in primes) for primes in (chain.q, chain.p))
    return f"primes of {q} and {p} bits in a ring of degree 2^{chain.log_n}"
