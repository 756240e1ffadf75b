"""Derived keys: which master keys the client sends, and their savings and costs.

A master key is a key over its own chain: the special primes, the ciphertext primes, and extra primes that it
divides by (docs/explanation/derived-keys.md). It has the size and the times of any key of that chain. A
derivation takes one key switch over the chain for every row of the derived key; keys derived from one key
share its decompositions. The engine states which key is derived from which, how many decompositions that
takes and how much error it adds: `keywright._core.DerivationTree`, `PrimeWidths.derivation_noise`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log2

from keywright._core import DEFAULT_DERIVATION_HOPS, MAX_EXTRA_PRIMES, DerivationTree
from keywright._units import format_bytes
from keywright.errors import InfeasibleBudgetError, MissingKeyError, WorkloadError
from keywright.plan.basis.basis import smallest_basis
from keywright.plan.cost.model import CostModel
from keywright.plan.ring.chain import Chain, Shape, shapes
from keywright.plan.ring.galois import Automorphism

from .key_plan import IDENTITY, KeyPlan, Masters, PlannedKey, master_level

NARROWER = 0.05
"""Maximum bits by which an extra prime may be narrower than planned. Master keys are planned so that their
digits do not depend on this: generated keys have the planned bytes."""

EXACT_TARGETS = 24
"""For more automorphisms than these, the smallest basis of two hops is not searched."""
EXACT_SECONDS = 5.0

LADDERS = (2, 3, 4, 5, 8, 16, 32, 64, 128, 256)
"""Bases whose powers are candidate masters; LLKN uses 4."""

DIRECT_SHARES = (0.0, 0.25, 1.0)
"""Small keys may be sent instead of derived: as many as have these shares of the bytes of a master."""

MOST_MASTERS = 600
"""Maximum number of masters in a candidate."""

FEW_MASTERS = 4
"""A candidate with at most so many masters may miss some keys, which are then sent; larger ones must reach
all keys."""

DIFFERENCES = 48
"""Number of automorphisms tried as an additional master: the most frequent differences of two needed ones."""


@dataclass(frozen=True)
class KeyFamily:
    """Keys of one shape, which are derived from each other.

    Attributes:
        shape: level, digits, special primes.
        targets: their automorphisms.
    """

    shape: Shape
    targets: tuple[Automorphism, ...]


@dataclass(frozen=True)
class DerivationCosts:
    """The costs of deriving keys.

    Attributes:
        derived: number of derived keys, including intermediate ones.
        depth: maximum number of derivations of a key here.
        client_seconds: predicted time of making the master keys and the keys that are not derived.
        server_seconds: predicted time of deriving all keys once, on one thread.
        noise_bits: as for a plan, with the noise of derived keys.
    """

    derived: int
    depth: int
    client_seconds: float
    server_seconds: float
    noise_bits: float


@dataclass(frozen=True)
class DerivationDesign:
    """The Galois keys of a plan, derived from master keys.

    Attributes:
        plan: the server's plan.
        masters: automorphisms of the master keys.
        direct: keys that the client makes and sends: relinearization, keys whose primes leave no room for
            extra primes, keys that the masters do not reach, and small keys.
        max_hops: maximum number of derivations for a key.
        costs: of deriving.
        error_variances: of the plan's derived keys, relative to a key made by its owner.
    """

    plan: KeyPlan
    masters: tuple[Automorphism, ...]
    direct: tuple[PlannedKey, ...]
    max_hops: int
    costs: DerivationCosts
    error_variances: Mapping[PlannedKey, float] = field(repr=False, compare=False)
    reach: "_MasterReach" = field(repr=False, compare=False)

    @property
    def extra_bits(self) -> tuple[int, ...]:
        """Widths of the extra primes."""
        return self.reach.extra_bits

    @property
    def shape(self) -> Shape:
        """The shape of every master key, over the chain."""
        return self.reach.shape

    @property
    def planned(self) -> KeyPlan:
        """Return the plan with these master keys."""
        masters = Masters(self.masters, self.extra_bits, self.shape, self.max_hops)
        reached = replace(self.plan, masters=masters)
        sent = tuple(key for key in self.plan.keys if key in self.direct and reached.derives(key))
        return replace(self.plan, masters=replace(masters, sent=sent))

    @property
    def master_bytes(self) -> int:
        """Bytes of the master keys, uniform halves as seeds."""
        return len(self.masters) * self.shape.stored_bytes

    @property
    def sent_bytes(self) -> int:
        """Bytes that the client sends: master keys, keys that are not derived, and keys of an ephemeral
        secret."""
        direct = sum(key.shape.stored_bytes for key in self.direct)
        return self.master_bytes + direct + self.plan.workload.ephemeral_bytes

    @property
    def stored_bytes(self) -> int:
        """Bytes that the server stores besides the master keys; derived keys have no seeds."""
        shapes = (replace(key.shape, seeded=key in self.direct) for key in self.plan.keys)
        held = sum(shape.stored_bytes for shape in shapes)
        return held + self.plan.workload.ephemeral_bytes


@dataclass(frozen=True)
class _MasterReach:
    """Master keys up to a level of the chain: the keys derived from them, the others, their extra primes and
    their shape."""

    families: tuple[KeyFamily, ...]
    direct: tuple[PlannedKey, ...]
    extra_bits: tuple[int, ...]
    shape: Shape

    @property
    def needed(self) -> tuple[Automorphism, ...]:
        """Every automorphism with a derived key, sorted."""
        return tuple(sorted({a for family in self.families for a in family.targets}))

    @property
    def direct_bytes(self) -> int:
        """Bytes of the keys that are not derived."""
        return sum(key.shape.stored_bytes for key in self.direct)


class DerivationPlanner:
    """Chooses master keys for the Galois keys of a plan.

    Thread safety: one thread at a time.
    """

    def __init__(self, plan: KeyPlan, model: CostModel, *, max_hops: int = DEFAULT_DERIVATION_HOPS) -> None:
        """List the possible levels of master keys in the chain, and the small keys sent with them.

        Args:
            plan: the keys.
            model: predicts times.
            max_hops: maximum number of derivations for a key, from 1 to
                `keywright._core.MAX_DERIVATION_HOPS`.

        Raises:
            WorkloadError: the plan has no Galois keys, or none leaves room for extra primes.
        """
        self.plan, self.model, self.max_hops = plan, model, max_hops
        self.group = plan.workload.automorphisms
        galois = [key for key in plan.keys if key.automorphism is not None]
        if not galois:
            raise WorkloadError(f"{plan.workload.name}: the plan has no Galois keys to derive")
        reaches: dict[tuple[PlannedKey, ...], _MasterReach] = {}
        for level in sorted({master_level(key.shape) for key in galois}):
            for share in DIRECT_SHARES:
                reach = self._reach(level, share)
                if reach is not None:
                    reaches.setdefault(reach.direct, reach)
        if not reaches:
            raise WorkloadError(
                f"{plan.workload.name}: every key has primes of nearly "
                f"{plan.workload.chain.modulus_bound} bits, the secure maximum, which leaves no room for "
                "the extra primes of master keys; plan it for parameters with fewer or smaller primes in "
                "this ring, or in a larger one"
            )
        self.reaches = tuple(reaches.values())
        self._reachable: dict[tuple[tuple[int, ...], int], bool] = {}

    @property
    def least_bytes(self) -> int:
        """A lower bound on the bytes sent: one master key, and the keys that it does not serve."""
        sent = (reach.direct_bytes + reach.shape.stored_bytes for reach in self.reaches)
        return min(sent) + self.plan.workload.ephemeral_bytes

    def _reach(self, level: int, share: float) -> "_MasterReach | None":
        """Return the smallest master keys up to a level of the chain, and the keys derived from them: all
        except higher keys and the smallest ones, up to a share of a master's bytes."""
        chain = self.plan.workload.chain
        own = (*chain.p, *chain.q)
        room = chain.modulus_bound - sum(own[: level + 1])
        best: tuple[int, tuple[int, ...], Shape] | None = None
        for count in range(1, min(MAX_EXTRA_PRIMES, int(room // 30)) + 1):
            width, more = divmod(int(room), count)
            extra = tuple(min(60, width + (place < more)) for place in range(count))
            over = Chain(chain.log_n, own, extra, chain.modulus_bound)
            for result in shapes(over, level):
                # The engine fills digits as far as the special primes allow.
                shape = replace(result, alpha=level + 1)
                if _steady(shape) and (best is None or shape.stored_bytes < best[0]):
                    best = (shape.stored_bytes, extra[: shape.special], shape)
        if best is None:
            return None
        targets: defaultdict[Shape, list[Automorphism]] = defaultdict(list)
        direct = []
        left = share * best[0]
        for key in sorted(self.plan.keys, key=lambda key: key.shape.stored_bytes):
            within = key.automorphism is not None and master_level(key.shape) <= level
            left -= key.shape.stored_bytes if within else 0
            if within and left < 0 and key.automorphism is not None:
                targets[key.shape].append(key.automorphism)
            else:
                direct.append(key)
        if not targets:
            return None
        families = tuple(KeyFamily(shape, tuple(sorted(result))) for shape, result in targets.items())
        return _MasterReach(families, tuple(direct), best[1], best[2])

    def price(
        self, masters: Iterable[Automorphism], reach: "_MasterReach | None" = None
    ) -> DerivationDesign | None:
        """Return savings and costs of these master keys; None if they reach nothing. Unneeded masters are
        dropped; keys that they do not reach are sent.

        Args:
            masters: automorphisms of the master keys.
            reach: the keys to derive; by default the first of the planner's, only the lowest keys.
        """
        reached = reach or self.reaches[0]
        elements = {self.group.galois_element(a): a for a in sorted(set(masters) - {IDENTITY})}
        used: set[int] = set()
        derived, seconds, depth = 0, 0.0, 0
        variances: dict[PlannedKey, float] = {}
        direct = list(reached.direct)
        for family in reached.families:
            target, tree = self._tree(elements, family)
            known = set(target.values())
            direct += [PlannedKey(a, family.shape) for a in family.targets if a not in known]
            if tree is None:
                continue
            steps = tree.steps
            used |= {master for _, _, master, _ in steps}
            derived += len(steps)
            depth = max(depth, tree.depth)
            seconds += self._seconds(reached, family, tree)
            first, other = self._added(reached, family)
            variances |= {
                PlannedKey(target[g], family.shape): first + (hops - 1) * other
                for g, _, _, hops in steps
                if g in target
            }
        if not derived:
            return None
        kept = tuple(elements[g] for g in sorted(used, key=lambda g: elements[g]))
        results = [*(key.shape for key in direct), *(reached.shape for _ in kept)]
        client = sum(self.model.key_seconds(shape) for shape in results)
        noise = self._noise_bits(variances)
        return DerivationDesign(
            self.plan,
            kept,
            tuple(direct),
            self.max_hops,
            DerivationCosts(derived, depth, client, seconds, noise),
            variances,
            reached,
        )

    def _tree(
        self, elements: Mapping[int, Automorphism], family: KeyFamily
    ) -> tuple[dict[int, Automorphism], DerivationTree | None]:
        """Return what can be derived, by Galois element, and how; None if nothing can be."""
        log_n, masters = self.plan.workload.chain.log_n, list(elements)
        targets = {self.group.galois_element(a): a for a in family.targets}
        try:
            return targets, DerivationTree(log_n, masters, list(targets), self.max_hops)
        except MissingKeyError:
            pass
        if len(masters) > FEW_MASTERS:
            return {}, None
        reachable = {g: a for g, a in targets.items() if self._reaches(tuple(masters), g)}
        if not reachable:
            return {}, None
        return reachable, DerivationTree(log_n, masters, list(reachable), self.max_hops)

    def _reaches(self, masters: tuple[int, ...], element: int) -> bool:
        """Whether masters reach a Galois element."""
        if (masters, element) not in self._reachable:
            try:
                DerivationTree(self.plan.workload.chain.log_n, masters, [element], self.max_hops)
                self._reachable[masters, element] = True
            except MissingKeyError:
                self._reachable[masters, element] = False
        return self._reachable[masters, element]

    def _seconds(self, reached: "_MasterReach", family: KeyFamily, tree: DerivationTree) -> float:
        """Return the time of deriving a family on one thread."""
        level = master_level(family.shape)
        cost = self.model.switch(reached.shape, level)
        if cost is None:
            raise WorkloadError(f"a master key of level {reached.shape.level} cannot serve {level}")
        rows = len(family.shape.digits)
        return rows * (tree.decompositions(rows, level + 1) * cost.shared + len(tree.steps) * cost.own)

    def _added(self, reached: "_MasterReach", family: KeyFamily) -> tuple[float, float]:
        """Return the variance that the first derivation of a key, and every further one, adds to the errors
        of its rows, relative to a fresh key."""
        shape, level = reached.shape, master_level(family.shape)
        noise = shape.chain.widths.derivation_noise(shape.level, shape.alpha, shape.special_primes, level)
        if noise is None:
            raise WorkloadError(f"a master key of level {shape.level} cannot serve {level}")
        first, other = noise
        return first, other

    def _noise_bits(self, variances: Mapping[PlannedKey, float]) -> float:
        worst = 1.0
        for group, tree in zip(self.plan.workload.groups, self.plan.hops, strict=True):
            sums = {IDENTITY: 0.0}
            for hop in tree:
                cost = self.model.switch(hop.key.shape, group.level)
                if cost is None or hop.key.automorphism is None:
                    raise WorkloadError(f"{group.name}: a key that does not serve level {group.level}")
                # `noise` is that of a key made by its owner.
                sums[hop.child] = sums[hop.parent] + 1.0 + cost.noise * variances.get(hop.key, 1.0)
                worst = max(worst, sums[hop.child])
        return 0.5 * log2(worst)

    def candidates(self, reach: "_MasterReach") -> Iterator[tuple[Automorphism, ...]]:
        """Yield candidate sets of masters: ladders of powers, signed and with their multiples; the fewest
        keys that make everything with two hops; all needed automorphisms."""
        slots, needed = self.group.slots, reach.needed
        conjugate = (Automorphism(0, True),) if any(a.conjugate for a in needed) else ()
        for base in LADDERS:
            powers = [base**i for i in range(32) if base**i < slots]
            for digits in ((1,), (1, -1), range(1, base), [d for d in range(-base // 2, base // 2 + 1) if d]):
                if len(digits) * len(powers) <= MOST_MASTERS:
                    steps = {digit * power for power in powers for digit in digits}
                    yield (*conjugate, *sorted(self.group.rotation(step) for step in steps))
        if len(needed) <= EXACT_TARGETS:
            yield smallest_basis(self.group, needed, EXACT_SECONDS).keys
        yield needed

    @cached_property
    def priced(self) -> tuple[DerivationDesign, ...]:
        """Return the Pareto-optimal candidates in bytes sent and server time, fewest bytes first."""
        results = [
            price
            for reach in self.reaches
            for masters in self.candidates(reach)
            if (price := self.price(masters, reach)) is not None
        ]
        quiet = [price for price in results if self._quiet(price)]
        if results and not quiet:
            least = min(price.costs.noise_bits for price in results)
            raise InfeasibleBudgetError(
                f"{self.plan.workload.name}: with derived keys an automorphism has at least {least:.2f} "
                f"bits of noise, above the error budget of {self.plan.workload.noise_bits:.2f}; plan keys "
                "with larger special primes relative to their digits, which reduce the noise of derived "
                "keys"
            )
        return _frontier(quiet)

    def _quiet(self, price: DerivationDesign) -> bool:
        budget = self.plan.workload.noise_bits
        return budget is None or price.costs.noise_bits <= budget

    def best(self, sent_bytes: float) -> DerivationDesign:
        """Return the fastest derivation within a limit on bytes sent: the best candidate, with additional
        masters while they help and fit.

        Raises:
            InfeasibleBudgetError: no candidate fits; the message states the minimum.
        """
        fitting = [price for price in self.priced if price.sent_bytes <= sent_bytes]
        if not fitting:
            raise InfeasibleBudgetError(f"{self.plan.workload.name}: {self._least(sent_bytes)}")
        best = min(fitting, key=lambda price: (price.costs.server_seconds, price.sent_bytes))
        while best.sent_bytes + best.shape.stored_bytes <= sent_bytes:
            more = (a for a in self._differences(best.reach) if a not in best.masters)
            longer = [self.price((*best.masters, a), best.reach) for a in more]
            priced = [p for p in longer if p is not None and p.sent_bytes <= sent_bytes and self._quiet(p)]
            better = min(priced, key=lambda price: price.costs.server_seconds, default=best)
            if better.costs.server_seconds >= best.costs.server_seconds * (1 - 1e-9):
                break
            best = better
        return best

    def _least(self, sent_bytes: float) -> str:
        """Explain why nothing fits a limit on bytes sent."""
        if not self.priced:
            return (
                f"no candidate master keys make all keys in {self.max_hops} steps; let the client make them"
            )
        least = self.priced[0]
        masters = f"{len(least.masters)} master key{'s' * (len(least.masters) > 1)}"
        return (
            f"no master keys found take at most {format_bytes(sent_bytes)} to send. The least is "
            f"{format_bytes(least.sent_bytes)}: {format_bytes(least.master_bytes)} for {masters}, and "
            f"{format_bytes(least.sent_bytes - least.master_bytes)} for keys that are not derived; allow "
            "more bytes, or derive the keys of a smaller plan"
        )

    def _differences(self, reach: "_MasterReach") -> Sequence[Automorphism]:
        """Return the automorphisms that lead from one key to another most often."""
        counts: Counter[Automorphism] = Counter()
        needed = reach.needed
        for a in needed:
            for b in (IDENTITY, *needed):
                if a != b:
                    counts[self.group.subtract(a, b)] += 1
        ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        return [a for a, _ in ranked[:DIFFERENCES]]


def _steady(shape: Shape) -> bool:
    """Whether a master key keeps its digits if its extra primes are slightly narrower."""
    chain = shape.chain
    narrower = replace(shape, chain=replace(chain, p=tuple(bits - NARROWER for bits in chain.p)))
    return narrower.legal and narrower.digits == shape.digits


def _frontier(results: Iterable[DerivationDesign]) -> tuple[DerivationDesign, ...]:
    out: list[DerivationDesign] = []
    for price in sorted(results, key=lambda price: (price.sent_bytes, price.costs.server_seconds)):
        if not out or price.costs.server_seconds < out[-1].costs.server_seconds:
            out.append(price)
    return tuple(out)
