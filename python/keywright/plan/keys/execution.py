"""Translates a plan for the engine: keys to make, routes to follow, the order in which keys are used."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from keywright._copies import Unpicklable
from keywright._core import (
    DEFAULT_DERIVATION_HOPS,
    BootstrapperPlan,
    EvaluationKeys,
    KeySpec,
    MasterKeys,
    Parameters,
    SecretKey,
    master_key_bytes,
)
from keywright.errors import MismatchError, ParameterError
from keywright.plan.cost.model import CostModel
from keywright.plan.ring.chain import Chain
from keywright.plan.ring.chain_sources import chain_of
from keywright.plan.ring.galois import Automorphism
from keywright.plan.workload.network import (
    SwitchBundle,
    bootstrap_bundles,
    convert,
    convert_bootstrap,
    planned_part,
    switch_bundles,
)
from keywright.plan.workload.ring_switches import ring_keys
from keywright.plan.workload.workload import Group, Workload
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.program import Program

from .key_plan import Hop, KeyPlan, Masters, PlannedKey


class PlanExecution(
    Unpicklable, elsewhere="pickle its plan, and make one of the plan and the parameters in the other process"
):
    """A plan on parameters.

    Thread safety: one thread at a time.

    Args:
        plan: the plan.
        parameters: parameters of its workload (`Workload.on_parameters`), with all rings.
        network: the program to run; a plan for another one is refused.
        bootstraps: plans of the network's bootstraps, in order; without a network, of the one bootstrap that
            the plan is for. Their factors are evaluated as the plan's workload states, if it does.
        log_n: the network's ring for which the plan is made: the smaller ring of degree 2^log_n, or 0 for the
            largest, whose plan contains the others.

    Attributes:
        subrings: the plans of smaller rings, by the logarithms of their degrees.

    Raises:
        MismatchError: the plan is for other primes, for another workload, or for other rings.
    """

    def __init__(
        self,
        plan: KeyPlan,
        parameters: Parameters,
        network: Program | None = None,
        bootstraps: Sequence[BootstrapperPlan] = (),
        log_n: int = 0,
    ) -> None:
        ring = parameters.subring(log_n) if log_n else parameters
        _require_chain(plan.workload.chain, ring)
        bootstraps = as_planned(plan.workload, bootstraps)
        if network is not None:
            expected = convert(network, parameters, plan.workload.name, bootstraps, log_n)
            _require_workload(plan.workload, expected)
        elif bootstraps:
            _require_workload(plan.workload, convert_bootstrap(bootstraps[0], plan.workload.name))
        self.plan, self.parameters, self.network, self.log_n = plan, ring, network, log_n
        self.bootstraps = tuple(bootstraps)
        self._specs = {key: self._spec(key) for key in plan.keys}
        self._model = CostModel()
        self._primes: dict[tuple[DiagonalMatrix | None, int], tuple[int, ...]] = {}
        if plan.masters is not None:
            self._check_master_bytes(plan.masters)
        if network is not None and log_n == 0:
            _require_rings(plan, smaller_rings(network))
        self.subrings = {
            (smaller := subplan.workload.chain.log_n): PlanExecution(
                subplan, parameters, network, bootstraps, smaller
            )
            for subplan in plan.subrings
        }

    def in_ring(self, log_n: int) -> "PlanExecution":
        """Return the execution for one of the network's rings: a smaller one, or this one for 0."""
        return self.subrings[log_n] if log_n else self

    @property
    def key_specs(self) -> list[KeySpec]:
        """The keys that the owner of the secret key makes besides master keys: the plan's keys that are not
        derived, the keys to and from the ephemeral secrets of bootstraps, and the keys of smaller rings."""
        results = [spec for key, spec in self._specs.items() if not self.plan.derives(key)]
        fixed = [spec for plan in self.bootstraps for spec in plan.fixed_keys] if self.log_n == 0 else []
        for ring in (0, *self.subrings) if self.log_n == 0 else ():
            fixed += self.in_ring(ring).key_specs if ring else []
            fixed += [spec for specs in self._ring_specs(ring).values() for spec in specs]
        return list(dict.fromkeys([*results, *fixed]))

    def _ring_specs(self, log_n: int) -> dict[int, list[KeySpec]]:
        """Return the keys for ciphertexts that are switched into a ring, by the logarithm of the degree of
        their previous ring."""
        workload, parameters = self.in_ring(log_n).plan.workload, self.parameters
        out = {}
        for keys in ring_keys(workload.chain, workload.common.ring_switches):
            shape, source, ring = keys.shape, keys.source, workload.chain.log_n
            level, alpha, special = shape.level, shape.alpha, list(shape.special_primes)
            if source > ring:
                out[source] = KeySpec.ring_down(parameters, ring, level, alpha, True, special, source)
            else:
                out[source] = [KeySpec.ring_up(parameters, source, level, alpha, True, special, ring)]
        return out

    @property
    def derived_specs(self) -> list[KeySpec]:
        """The plan's keys that are derived from master keys."""
        return [spec for key, spec in self._specs.items() if self.plan.derives(key)]

    def make_masters(
        self, secret: SecretKey, progress: Callable[[int, int], object] | None = None
    ) -> MasterKeys:
        """Make the plan's master keys; the owner of the secret key calls this.

        Args:
            secret: of the execution's parameters.
            progress: as for `MasterKeys.generate`.

        Raises:
            MismatchError: the plan has no master keys.
        """
        masters = self._masters()
        level = masters.shape.level - len(self.parameters.p)
        return MasterKeys.generate(
            secret,
            [],
            masters.extra_bits,
            level,
            galois_elements=[element for element, *_ in self._master_shapes()],
            special=masters.shape.special,
            progress=progress,
        )

    def load_keys(
        self,
        path: Path,
        masters: MasterKeys | None = None,
        memory: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Load the plan's keys from a file, and derive the others, with the plan's routes.

        Args:
            path: a file of `key_specs`.
            masters: result of `make_masters`, if the plan has master keys.
            memory: maximum bytes of keys in memory, including master keys: keys are read and derived ahead of
                their use, evicted, and made again. By default all are in memory.
            progress: called after each key that is derived now, with the number of keys and their total.

        Raises:
            MismatchError: the keys or the master keys are not the plan's.
            OutOfMemoryError: a key exceeds the budget.
        """
        if masters is not None or self.plan.masters is not None:
            self._match_masters(masters)
        if memory is None:
            return self.complete(EvaluationKeys.load(path, self.parameters), masters, progress)
        derived, steps = self.derived_specs, self.key_steps
        keys = EvaluationKeys.stream(path, self.parameters, memory, steps, masters, derived, self._max_hops)
        return self.follow(keys)

    def complete(
        self,
        keys: EvaluationKeys,
        masters: MasterKeys | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> EvaluationKeys:
        """Return the plan's keys in memory: the given keys, and the others, which are derived now, with the
        plan's routes.

        Args:
            keys: of `key_specs`; the derived ones are added to them.
            masters: result of `make_masters`, if the plan has master keys.
            progress: called after each key that is derived, with the number of keys and their total.

        Raises:
            MismatchError: the keys or the master keys are not the plan's.
        """
        if masters is not None or self.plan.masters is not None:
            self._match_masters(masters)
        if masters is not None:
            derived = self.derived_specs
            for done, key in enumerate(masters.derivation(derived, self._max_hops), 1):
                keys.add(key)
                if progress is not None:
                    progress(done, len(derived))
        return self.follow(keys)

    @property
    def _max_hops(self) -> int:
        """Return the maximum number of steps in which a key is derived."""
        masters = self.plan.masters
        return DEFAULT_DERIVATION_HOPS if masters is None else masters.max_hops

    @property
    def _making(self) -> str:
        """Return how to make the plan's keys."""
        if self.network is None:
            return "make them with keywright keygen --plan"
        return "make them for this model, with keywright keygen and its folder or with its client's save_keys"

    def _masters(self) -> Masters:
        if self.plan.masters is None:
            raise MismatchError(
                "the plan has no master keys; plan with keywright plan --derived", code="plan"
            )
        return self.plan.masters

    def _master_shapes(self) -> list[tuple[int, int, int, int]]:
        """Return the expected value of `MasterKeys.shapes`."""
        masters, galois = self._masters(), self.plan.workload.automorphisms.galois_element
        shape = masters.shape
        return sorted((galois(a), shape.level, shape.level + 1, shape.special) for a in masters.automorphisms)

    def _match_masters(self, masters: MasterKeys | None) -> None:
        if masters is None:
            raise MismatchError(
                f"the plan derives keys from master keys, but there are none; {self._making}",
                code="plan",
            )
        widths = tuple(prime.bit_length() for prime in masters.extra)
        result, expected = (widths, masters.shapes), (self._masters().extra_bits, self._master_shapes())
        if result != expected:
            digests = [sha256(repr(entry).encode()).hexdigest() for entry in (result, expected)]
            raise MismatchError(
                f"the master keys have digest {digests[0][:16]}, but those of the plan {digests[1][:16]}; "
                f"{self._making}",
                found=digests[0],
                expected=digests[1],
                code="plan",
            )

    def _check_master_bytes(self, masters: Masters) -> None:
        shape = masters.shape
        level = shape.level - len(self.parameters.p)
        result = master_key_bytes(self.parameters, masters.extra_bits, level, shape.special)
        if result != shape.stored_bytes:
            raise MismatchError(
                f"a master key has {result} bytes, but {shape.stored_bytes} are planned", code="plan"
            )

    def follow_part(self, keys: EvaluationKeys, instructions: Collection[int]) -> EvaluationKeys:
        """Return the keys of some instructions of the network with the plan's routes, for runs that make keys
        when they need them.

        Args:
            keys: the keys that `instruction_keys` lists for these instructions.
            instructions: their places in the network.

        Raises:
            MissingKeyError: a key is missing.
        """
        routes: list[tuple[int, list[int], list[tuple[int, int, KeySpec]]]] = []
        relinearizations = []
        for execution in (*self.subrings.values(), self):
            targets = [b for b in execution._bundles if b.instruction in instructions]
            groups = {(group.level, group.targets) for bundle in targets for group in bundle.groups}
            levels = {level for bundle in targets for level in bundle.relinearizations}
            planned = execution.plan.relinearization
            routes += execution._routes(groups)
            relinearizations += [(level, execution._specs[planned[level]]) for level in sorted(levels)]
        return keys.following(routes, relinearizations)

    def follow(self, keys: EvaluationKeys) -> EvaluationKeys:
        """Return the keys with the plan's routes.

        Raises:
            MismatchError: they are not the plan's keys.
        """
        executions = [self, *self.subrings.values()]
        planned = [spec for execution in executions for spec in execution._specs.values()]
        result, expected = keys_digest(keys), keys_digest(planned)
        if result != expected:
            raise MismatchError(
                f"the keys have digest {result[:16]}, but those of the plan {expected[:16]}; {self._making}",
                found=result,
                expected=expected,
                code="plan",
            )
        routes = [route for execution in executions for route in execution._routes()]
        relinearizations = [
            (level, execution._specs[key])
            for execution in executions
            for level, key in execution.plan.relinearization.items()
        ]
        return keys.following(routes, relinearizations)

    def _routes(
        self, targets: Collection[tuple[int, tuple[Automorphism, ...]]] | None = None
    ) -> list[tuple[int, list[int], list[tuple[int, int, KeySpec]]]]:
        """Level, Galois elements and hops of each group of this ring, or of those with a wanted level and
        targets, equal groups once."""
        galois = self.plan.workload.automorphisms.galois_element
        routes: dict[object, tuple[int, list[int], list[tuple[int, int, KeySpec]]]] = {}
        for group, tree in zip(self.plan.workload.groups, self.plan.hops, strict=True):
            if targets is not None and (group.level, group.targets) not in targets:
                continue
            hops = [(galois(hop.parent), galois(hop.child), self._specs[hop.key]) for hop in tree]
            routes.setdefault(
                (group.level, group.targets), (group.level, [galois(a) for a in group.targets], hops)
            )
        return list(routes.values())

    def special(self, level: int, transform: DiagonalMatrix | None = None) -> list[int]:
        """Return the primes by which most key switches of a linear transform divide: its diagonals are
        encoded for them. Other switches divide before the product with the diagonals.

        Args:
            level: of its input.
            transform: a transform of the network; by default the transforms of bootstraps.
        """
        if (result := self._primes.get((transform, level))) is None:
            result = self._primes[transform, level] = self._most_removed(level, transform)
        return list(result)

    def _most_removed(self, level: int, transform: DiagonalMatrix | None) -> tuple[int, ...]:
        own = self._transform_groups.get((transform, level), [])
        for groups in (own, [group for group in self.plan.workload.groups if group.level == level]):
            count: Counter[tuple[int, ...]] = Counter()
            for group in groups:
                for hop in self._trees[group.level, group.targets]:
                    if (removed := self._removed(hop, level)) is not None:
                        count[removed] += group.count
            if count:
                return max(count, key=lambda removed: (count[removed], removed))
        first = self.parameters.max_level + 1
        return tuple(range(first, first + len(self.parameters.p)))

    def hoisting(self, level: int, transform: DiagonalMatrix) -> tuple[int, int]:
        """Return how many ciphertexts a transform of the network makes from its inputs before its baby steps,
        and how many decompositions of these and of the inputs are in memory at a time.

        Args:
            level: of its inputs.
            transform: the transform.
        """
        special, result, decomposed = tuple(self.special(level, transform)), 0, 0
        for group in self._transform_groups.get((transform, level), []):
            if group.form != "baby":
                continue
            tree = self._trees[group.level, group.targets]
            uses = {hop.child: self._model.switch(hop.key.shape, level) for hop in tree}
            parents, shared = {hop.parent for hop in tree}, set()
            for hop in tree:
                use = uses[hop.child]
                if hop.child in parents or use is None or use.removed != special:
                    result += 1
                else:
                    # Keys whose digits cost the same at this level have the same digits.
                    shared.add((hop.parent, use.shared))
            decomposed += len(shared)
        return result, decomposed

    def _removed(self, hop: Hop, level: int) -> tuple[int, ...] | None:
        """Return the primes that a hop's key switch at a level divides by."""
        use = self._model.switch(hop.key.shape, level)
        return None if use is None else use.removed

    @cached_property
    def _transform_groups(self) -> dict[tuple[DiagonalMatrix | None, int], list[Group]]:
        """Return the groups of each of the network's transforms, by its level; under None those of
        bootstraps."""
        table: dict[tuple[DiagonalMatrix | None, int], list[Group]] = {}
        network = self.network
        if network is None:
            return table
        for bundle in self._bundles:
            step = network.instructions[bundle.instruction]
            if step.opcode not in ("linear_transform", "bootstrap"):
                continue
            transform = None if step.opcode == "bootstrap" else network.operands.transforms[step.argument]
            groups: dict[int, list[Group]] = {}
            for group in bundle.groups:
                if group.form != "whole":
                    groups.setdefault(group.level, []).append(group)
            for level, own in groups.items():
                # Every use of a transform at a level has the same groups.
                if transform is None:
                    table.setdefault((None, level), []).extend(own)
                else:
                    table[transform, level] = own
        return table

    @property
    def bootstrapper_plans(self) -> list[BootstrapperPlan]:
        """The plans of the bootstraps, with diagonals for the primes that most key switches of their level
        divide by; make `Bootstrapper`s from them."""
        return [plan.with_special_primes(self._diagonal_primes(plan)) for plan in self.bootstraps]

    def _diagonal_primes(self, plan: BootstrapperPlan) -> dict[int, list[int]]:
        """Return the special primes of a bootstrap's diagonals, by level; those of its first stage in the
        ring that it begins in."""
        begin = self.in_ring(plan.input_log_n if plan.input_log_n < self.parameters.log_n else 0)
        last = plan.levels["slots_to_coeffs"][0]
        table = {level: self.special(level) for level in self._levels if level > last}
        return table | {level: begin.special(level) for level in begin._levels if level <= last}

    @property
    def _levels(self) -> set[int]:
        """Return the levels above the last one with key switches of transforms in this ring."""
        return {group.level for group in self.plan.workload.groups if group.level > 0}

    @property
    def key_steps(self) -> list[list[KeySpec]]:
        """Return the keys of each step of the network, or of one bootstrap, in order: the argument of
        `EvaluationKeys.stream`.

        Raises:
            ValueError: there is neither.
        """
        if self.network is None:
            if len(self.bootstraps) != 1:
                raise ValueError("no network or bootstrap was given; the order of steps needs one")
            return self._steps(bootstrap_bundles(self.bootstraps[0], self.plan.workload, "b"))
        result = self.instruction_keys
        return [keys for index in sorted(result) for keys in result[index]]

    @property
    def instruction_keys(self) -> dict[int, list[list[KeySpec]]]:
        """The keys of each step of each of the network's instructions, by the instruction's place.

        Raises:
            ValueError: there is no network.
        """
        if self.network is None:
            raise ValueError("only a plan of a network has keys of instructions; none was given")
        # Of each instruction in each ring: a bootstrap that begins in a smaller ring takes those first.
        table: dict[int, list[list[KeySpec]]] = {}
        for execution in (*self.subrings.values(), self):
            for bundle in execution._bundles:
                table.setdefault(bundle.instruction, []).extend(execution._steps([bundle]))
        largest = self.parameters.log_n
        ring_specs = {ring: self._ring_specs(ring) for ring in (0, *self.subrings)}
        for index, step in enumerate(self.network.instructions):
            if step.opcode == "switch_ring":
                source = self.network.rings[step.operands[0]] or largest
                table.setdefault(index, []).append(ring_specs[step.argument][source])
        return table

    @cached_property
    def _bundles(self) -> list[SwitchBundle]:
        """The key switches of the network in this ring."""
        assert self.network is not None
        return switch_bundles(self.network, self.plan.workload, self.bootstraps, self.log_n)

    def _steps(self, bundles: Iterable[SwitchBundle]) -> list[list[KeySpec]]:
        """Return the keys of each part of bundles of this ring, in order."""
        trees = self._trees
        out: list[list[KeySpec]] = []
        for bundle in bundles:
            for group in bundle.groups:
                used = [self._specs[hop.key] for hop in trees[group.level, group.targets]]
                out.append(list(dict.fromkeys(used)))
            levels = sorted(bundle.relinearizations, reverse=True)
            out += [[self._specs[self.plan.relinearization[level]]] for level in levels]
            if bundle.fixed:
                out.append(list(bundle.fixed))
        return out

    @cached_property
    def _trees(self) -> dict[tuple[int, tuple[Automorphism, ...]], tuple[Hop, ...]]:
        """Return the hops of each group, by its level and targets."""
        groups = zip(self.plan.workload.groups, self.plan.hops, strict=True)
        return {(group.level, group.targets): tree for group, tree in groups}

    def _spec(self, key: PlannedKey) -> KeySpec:
        shape, parameters = key.shape, self.parameters
        special = list(shape.special_primes)
        # A digit has at most as many primes as exist; a larger alpha means the same.
        alpha = min(shape.alpha, max(shape.level + 1, len(special)))
        # Derived keys have no seed.
        seeded = not self.plan.derives(key)
        if key.automorphism is None:
            spec = KeySpec.relinearization(parameters, shape.level, alpha, True, special)
        else:
            element = self.plan.workload.automorphisms.galois_element(key.automorphism)
            spec = KeySpec.galois(parameters, element, shape.level, alpha, seeded, special)
        planned = replace(shape, seeded=seeded).stored_bytes
        if spec.bytes != planned:
            raise MismatchError(f"{spec!r} has {spec.bytes} bytes, but {planned} are planned", code="plan")
        return spec


def as_planned(workload: Workload, bootstraps: Sequence[BootstrapperPlan]) -> tuple[BootstrapperPlan, ...]:
    """Return bootstraps with the factors that a workload states; unchanged if it states none."""
    if not workload.common.bootstraps:
        return tuple(bootstraps)
    if len(workload.common.bootstraps) != len(bootstraps):
        raise MismatchError(
            f"the plan is for {len(workload.common.bootstraps)} bootstraps, but there are {len(bootstraps)}",
            code="plan",
        )
    try:
        return tuple(
            bootstrap.with_factors(list(factors))
            for bootstrap, factors in zip(bootstraps, workload.common.bootstraps, strict=True)
        )
    except ParameterError as error:
        raise MismatchError(f"the plan is for other bootstraps: {error}", code="plan") from error


def _require_chain(chain: Chain, parameters: Parameters) -> None:
    """Refuse other parameters."""
    result = chain_of(parameters)
    if chain == result:
        return
    names = chain.describe(), result.describe()
    if names[0] == names[1]:
        raise MismatchError(
            f"the plan is for other {names[0]}, or for another bound on the keys' modulus; plan the program "
            "for these parameters (keywright plan --preset or --parameters; in Python "
            "Workload.on_parameters)",
            code="plan",
        )
    raise MismatchError(f"the plan is for {names[0]}, but the parameters have {names[1]}", code="plan")


def smaller_rings(network: Program) -> list[int]:
    """Return the smaller rings of a network's ciphertexts, as logarithms of their degrees, descending."""
    return sorted({ring for ring in network.rings.values() if ring}, reverse=True)


def _require_rings(plan: KeyPlan, rings: list[int]) -> None:
    """Refuse plans with other smaller rings than a network has."""
    results = [subring.workload.chain.log_n for subring in plan.subrings]
    if results != rings:
        raise MismatchError(
            f"the plan is for smaller rings of degrees 2^{results}, but the program has 2^{rings}; plan it "
            "again",
            code="plan",
        )


def _require_workload(planned: Workload, expected: Workload) -> None:
    """Refuse a plan of another workload."""
    digests = planned_part(planned).digest, planned_part(expected).digest
    if digests[0] != digests[1]:
        raise MismatchError(
            f"the plan is for program {digests[0][:16]}, but this one is {digests[1][:16]}; plan it again",
            found=digests[0],
            expected=digests[1],
            code="plan",
        )


def keys_digest(keys: Iterable[KeySpec]) -> str:
    """Return the SHA-256 of the specifications of Galois and relinearization keys, independent of their
    order."""
    lines = sorted(
        f"{spec.log_n} {spec.galois_element or 0} {spec.level} {spec.alpha} {spec.special} {spec.seeded}"
        for spec in keys
        if spec.kind in ("rotation", "conjugation", "galois", "relinearization")
    )
    return sha256("\n".join(lines).encode()).hexdigest()
