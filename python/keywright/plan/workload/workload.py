"""A workload of key switches: the input of the planner, and its documented JSON format.

A `Group` is the set of automorphisms that a program needs of one ciphertext, at one level. All of them can
share a decomposition, and one result can be rotated again to give another. Equal groups are stated once with
their count.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from keywright._copies import Stated
from keywright._core import Parameters, maximum_log_qp
from keywright._reading.documents import Limits, read_json
from keywright._reading.records import number, read_record, refusing, require_form, shown, whole
from keywright.errors import WorkloadError
from keywright.plan.cost.ephemeral import EphemeralSwitch, FixedKeys
from keywright.plan.cost.model import FORMS, CostModel, Form
from keywright.plan.cost.operations import MAX_COUNT, Operation
from keywright.plan.ring.chain import Chain
from keywright.plan.ring.chain_sources import chain_of, read_chain
from keywright.plan.ring.galois import Automorphism, AutomorphismGroup

from .ring_switches import RingSwitches, ring_keys, ring_seconds

FORMAT = "keywright-workload-1"
MAX_GROUPS = 100_000
LIMITS = Limits(64 << 20, 1 << 22)
"""A group has six values and its steps; a network of 32 tokens has 400 groups, 4,000 steps."""


@dataclass(frozen=True)
class Group:
    """One ciphertext and every needed automorphism of it.

    Attributes:
        name: name of the place in the workload, for people.
        level: level of the ciphertext.
        targets: the needed automorphisms, without the identity, sorted, each once.
        count: number of such ciphertexts.
        form: how divisions are done: "baby" and "giant" are steps of a linear transform.
    """

    name: str
    level: int
    targets: tuple[Automorphism, ...]
    count: int
    form: Form = "whole"


@dataclass(frozen=True)
class Relinearizations:
    """Relinearizations at one level.

    Attributes:
        level: level of the product before rescaling.
        count: number of relinearizations.
    """

    level: int
    count: int


_KINDS = {
    Relinearizations: "relinearization",
    EphemeralSwitch: "ephemeral secret",
    FixedKeys: "keys of an ephemeral secret",
    RingSwitches: "ciphertexts of another ring",
}

Factors = tuple[tuple[int, int], ...]
"""How the factors of a bootstrapping's transforms are evaluated: for each, the number of merged layers of the
Fourier transform, and its baby steps (`BootstrapperPlan.factors`)."""
MAX_FACTORS = 512
MIN_LOG_N, MAX_LOG_N = 3, 17


@dataclass(frozen=True)
class CommonWork:
    """The work and the keys that are the same in every plan of a workload.

    Attributes:
        ephemeral: switches to and from an ephemeral secret.
        fixed: keys of such switches that the operations count.
        bootstraps: how the factors of each bootstrapping of a compiled network are evaluated.
        ring_switches: ciphertexts that come from other rings, each ring and level once.
    """

    ephemeral: tuple[EphemeralSwitch, ...] = ()
    fixed: tuple[FixedKeys, ...] = ()
    bootstraps: tuple[Factors, ...] = ()
    ring_switches: tuple[RingSwitches, ...] = ()


@dataclass(frozen=True)
class Workload(Stated):
    """Every key switch of a workload.

    Attributes:
        name: a name.
        chain: the primes.
        groups: automorphisms, in program order.
        relinearizations: by level, each level once.
        noise_bits: the error budget: maximum of `KeyPlan.noise_bits` of a plan; None for no limit.
        operations: the other operations; without them, times count only key switches.
        common: work and keys that are the same in every plan.
    """

    name: str
    chain: Chain
    groups: tuple[Group, ...]
    relinearizations: tuple[Relinearizations, ...] = ()
    noise_bits: float | None = None
    operations: tuple[Operation, ...] = ()
    common: CommonWork = field(default_factory=CommonWork)

    def __post_init__(self) -> None:
        """Check levels and counts.

        Raises:
            WorkloadError: a level is outside the chain, a count is below 1, an automorphism is outside the
                slots, or there are too many groups.
        """
        if self.noise_bits is not None and not 0 <= self.noise_bits < float("inf"):
            raise WorkloadError(
                f"{self.name}: an error budget of {self.noise_bits:g} bits; it must be finite, 0 or more"
            )
        for what, listed in (("groups", self.groups), ("operations", self.operations)):
            if len(listed) > MAX_GROUPS:
                raise WorkloadError(f"{self.name}: {len(listed)} {what} exceed the maximum of {MAX_GROUPS}")
        uses: tuple[Group | Relinearizations | EphemeralSwitch | FixedKeys | RingSwitches, ...] = (
            *self.groups,
            *self.relinearizations,
            *self.common.ephemeral,
            *self.common.fixed,
            *self.common.ring_switches,
        )
        for use in uses:
            where = f"{self.name}: {use.name if isinstance(use, Group) else _KINDS[type(use)]}"
            if not 0 <= use.level <= self.chain.max_level:
                raise WorkloadError(f"{where}: level {use.level} is not in [0, {self.chain.max_level}]")
            if not 1 <= use.count < MAX_COUNT:
                raise WorkloadError(f"{where}: count {use.count} is not in [1, {MAX_COUNT})")
        for switches in self.common.ring_switches:
            if switches.source == self.chain.log_n or not MIN_LOG_N <= switches.source <= MAX_LOG_N:
                raise WorkloadError(
                    f"{self.name}: ciphertexts from a ring of degree 2^{switches.source}; it must differ "
                    f"from 2^{self.chain.log_n} and be from 2^{MIN_LOG_N} to 2^{MAX_LOG_N}"
                )
        for switch in self.common.ephemeral:
            self._require_secure(switch)
        for keys in self.common.fixed:
            if not 1 <= keys.special <= len(self.chain.p):
                raise WorkloadError(
                    f"{self.name}: {_KINDS[FixedKeys]} with {keys.special} special primes; "
                    f"there are {len(self.chain.p)}"
                )
        for factors in self.common.bootstraps:
            if not 1 <= len(factors) <= MAX_FACTORS:
                raise WorkloadError(
                    f"{self.name}: a bootstrap of {len(factors)} factors; 1 to {MAX_FACTORS} are allowed"
                )
            for layers, babies in factors:
                if not (0 <= layers <= self.chain.log_n and 1 <= babies <= self.automorphisms.slots):
                    raise WorkloadError(
                        f"{self.name}: a factor of {layers} layers with {babies} baby steps; 0 to "
                        f"{self.chain.log_n} layers and 1 to {self.automorphisms.slots} baby steps are "
                        "allowed"
                    )
        for operation in self.operations:
            wrong = operation.refusal(self.chain)
            if wrong is not None:
                raise WorkloadError(f"{self.name}: {operation.name}: {wrong}")
        slots = self.automorphisms.slots
        for group in self.groups:
            if group.form not in FORMS:
                known = ", ".join(FORMS)
                raise WorkloadError(
                    f"{self.name}: {group.name}: the form {group.form!r} is not one of {known}"
                )
            for target in group.targets:
                if not 0 <= target.step < slots:
                    raise WorkloadError(
                        f"{self.name}: {group.name}: rotation {target.step} is not in [0, {slots})"
                    )
                if target == Automorphism(0):
                    raise WorkloadError(f"{self.name}: {group.name}: the identity needs no key; leave it out")

    def _require_secure(self, switch: EphemeralSwitch) -> None:
        """Check the security bounds of a key to or from an ephemeral secret: only a key to it depends on that
        secret."""
        chain = self.chain
        if not 1 <= switch.special <= len(chain.p):
            raise WorkloadError(
                f"{self.name}: an ephemeral key of {switch.special} special primes; there are {len(chain.p)}"
            )
        bits = sum(chain.q[: switch.level + 1]) + sum(chain.p[: switch.special])
        bound = chain.modulus_bound if switch.level else maximum_log_qp(chain.log_n, switch.weight)
        if bits > bound:
            raise WorkloadError(
                f"{self.name}: the ephemeral key of level {switch.level} has a modulus of {bits:g} bits; "
                f"the secure maximum is {bound}"
            )

    @property
    def automorphisms(self) -> AutomorphismGroup:
        """The group in which hops add up."""
        return AutomorphismGroup(self.chain.log_n)

    def merged(self) -> "Workload":
        """Return the workload with equal groups merged, in the order of their first occurrence."""
        table: dict[tuple[int, tuple[Automorphism, ...], Form], Group] = {}
        for group in self.groups:
            key = (group.level, group.targets, group.form)
            old = table.get(key)
            if old is None:
                table[key] = group
            else:
                table[key] = replace(old, count=old.count + group.count)
        return replace(self, groups=tuple(table.values()))

    @property
    def ephemeral_bytes(self) -> int:
        """Bytes of the keys to and from an ephemeral secret and between rings, each once."""
        keys = {(use.weight, use.level, use.special): use for use in self.common.ephemeral}
        switched = sum(use.stored_bytes(self.chain) for use in keys.values())
        switched += sum(keys.stored_bytes for keys in ring_keys(self.chain, self.common.ring_switches))
        return switched + sum(use.stored_bytes(self.chain) for use in self.common.fixed)

    @property
    def ephemeral_keys(self) -> int:
        """Number of these keys."""
        switches = {(use.weight, use.level, use.special) for use in self.common.ephemeral}
        parts = sum(keys.parts for keys in ring_keys(self.chain, self.common.ring_switches))
        return len(switches) + parts + sum(use.count for use in self.common.fixed)

    def ephemeral_key_seconds(self, model: CostModel) -> float:
        """Return the predicted time of making these keys."""
        switches = {(use.weight, use.level, use.special): use for use in self.common.ephemeral}
        switched = sum(use.key_seconds(self.chain, model) for use in switches.values())
        switched += sum(keys.key_seconds(model) for keys in ring_keys(self.chain, self.common.ring_switches))
        return switched + sum(use.key_seconds(self.chain, model) for use in self.common.fixed)

    def ephemeral_seconds(self, model: CostModel) -> float:
        """Return the predicted time of the switches to and from an ephemeral secret and between rings."""
        rings = ring_seconds(self.chain, self.common.ring_switches, model)
        return rings + sum(use.seconds(self.chain, model) for use in self.common.ephemeral)

    @property
    def highest_levels(self) -> dict[Automorphism, int]:
        """Return every automorphism with the highest level at which it is needed, sorted."""
        out: dict[Automorphism, int] = {}
        for group in self.groups:
            for target in group.targets:
                out[target] = max(out.get(target, 0), group.level)
        return dict(sorted(out.items()))

    def to_json(self) -> str:
        """Return the documented format: automorphisms are rotations to the left; with a conjugation they are
        [step, 1]."""
        return json.dumps(self.as_object(), separators=(",", ":"))

    def as_object(self) -> dict[str, Any]:
        """Return the object of the documented format, as a plan file holds it."""
        budget = {} if self.noise_bits is None else {"noise_bits": self.noise_bits}
        fixed = {"ephemeral": [asdict(use) for use in self.common.ephemeral]} if self.common.ephemeral else {}
        if self.common.fixed:
            fixed["fixed_keys"] = [asdict(keys) for keys in self.common.fixed]
        beside: dict[str, object] = {}
        if self.operations:
            beside["operations"] = [use.describe() for use in self.operations]
        if self.common.ring_switches:
            beside["ring_switches"] = [asdict(use) for use in self.common.ring_switches]
        if self.common.bootstraps:
            beside["bootstraps"] = [
                [list(factor) for factor in factors] for factors in self.common.bootstraps
            ]
        return {
            "format": FORMAT,
            "name": self.name,
            "chain": asdict(self.chain),
            "groups": [
                {
                    "name": group.name,
                    "level": group.level,
                    "count": group.count,
                    "targets": [describe(a) for a in group.targets],
                    **({} if group.form == "whole" else {"form": group.form}),
                }
                for group in self.groups
            ],
            "relinearizations": [asdict(use) for use in self.relinearizations],
            **budget,
            **fixed,
            **beside,
        }

    def on_parameters(self, parameters: Parameters) -> "Workload":
        """Return the workload for the primes of parameters. A hand-written workload states whole widths, but
        sub-bit differences in prime size decide which digits are legal.

        Raises:
            WorkloadError: its chain has another ring, or primes of other widths.
        """
        stated, result = self.chain, chain_of(parameters)
        widths = (*stated.q, *stated.p), (*result.q, *result.p)
        sizes = [(chain.log_n, len(chain.q), len(chain.p)) for chain in (stated, result)]
        if sizes[0] != sizes[1] or any(abs(a - b) >= 0.5 for a, b in zip(*widths, strict=True)):
            raise WorkloadError(
                f"{self.name}: the chain has {stated.describe()}, but the parameters have {result.describe()}"
            )
        return replace(self, chain=result)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the JSON form, which identifies the workload of a plan."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: bytes | str) -> "Workload":
        """Read the documented format.

        Raises:
            WorkloadError: the text is malformed; the message names the place.
        """
        with refusing("a workload", WorkloadError):
            return cls.from_entry(read_json(text, LIMITS))

    @classmethod
    def from_entry(cls, entry: object) -> "Workload":
        """Read the object of `entry`; errors as for `from_json`."""
        with refusing("a workload", WorkloadError):
            return _read(cls, require_form(entry, FORMAT))


def make_group(
    automorphisms: AutomorphismGroup,
    name: str,
    level: int,
    steps: Sequence[int | Automorphism],
    count: int = 1,
) -> Group:
    """Return a group from rotation steps of any sign; the identity and repetitions are dropped."""
    targets = {a if isinstance(a, Automorphism) else automorphisms.rotation(a) for a in steps}
    return Group(name, level, tuple(sorted(targets - {Automorphism(0)})), count)


def describe(automorphism: Automorphism) -> int | list[int]:
    """Return the steps to the left, or [steps, 1] with a conjugation."""
    return [automorphism.step, 1] if automorphism.conjugate else automorphism.step


def read_automorphism(entry: Any, where: str = "") -> Automorphism:
    """Read the result of `describe`.

    Raises:
        WorkloadError: a conjugation is neither 0 nor 1.
    """
    step, conjugate = (entry, 0) if isinstance(entry, int) else entry
    if conjugate not in (0, 1):
        raise WorkloadError(f"{where}conjugation {shown(conjugate)} must be 0 or 1")
    return Automorphism(whole(step, f"{where}a rotation"), bool(conjugate))


def _read(cls: type[Workload], data: Mapping[str, Any]) -> Workload:
    groups = []
    for order, entry in enumerate(data["groups"]):
        where = f"group {order}: "
        targets = {read_automorphism(target, where) for target in entry["targets"]}
        groups.append(
            Group(
                str(entry["name"]),
                whole(entry["level"], f"{where}level"),
                tuple(sorted(targets)),
                whole(entry["count"], f"{where}count"),
                entry.get("form", "whole"),
            )
        )
    noise = data.get("noise_bits")
    return cls(
        str(data["name"]),
        read_chain(data["chain"]),
        tuple(groups),
        _records(Relinearizations, data["relinearizations"]),
        None if noise is None else number(noise, "noise_bits"),
        tuple(Operation.read(entry) for entry in data.get("operations", ())),
        CommonWork(
            _records(EphemeralSwitch, data.get("ephemeral", ())),
            _records(FixedKeys, data.get("fixed_keys", ())),
            tuple(
                tuple(
                    (whole(layers, "layers of a factor"), whole(babies, "baby steps of a factor"))
                    for layers, babies in factors
                )
                for factors in data.get("bootstraps", ())
            ),
            _records(RingSwitches, data.get("ring_switches", ())),
        ),
    )


Counts = TypeVar("Counts", Relinearizations, EphemeralSwitch, FixedKeys, RingSwitches)


def _records(kind: type[Counts], entries: Iterable[Any]) -> tuple[Counts, ...]:
    return tuple(read_record(kind, entry, _KINDS[kind]) for entry in entries)
