"""The plan file: `keywright plan --out` writes it, `keygen --plan` makes its keys and `run` follows it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keywright._core import MAX_DERIVATION_HOPS, MAX_EXTRA_PRIMES
from keywright._files import replace
from keywright._reading.arrays import read_file
from keywright._reading.records import number, read_object, refusing, shown, whole
from keywright.errors import FormatError, WorkloadError
from keywright.plan.ring.chain import Chain, Shape
from keywright.plan.workload.workload import LIMITS, Workload, describe, read_automorphism

from .key_plan import IDENTITY, Hop, KeyPlan, Masters, PlannedKey

FORMAT = "keywright-plan-1"
MAX_KEYS = 1 << 16
MAX_SUBRINGS = 7


def to_json(plan: KeyPlan) -> str:
    """Return the documented format: the workload, every key, and the hops of every group of the workload.

    A key has its automorphism, or null for relinearization, its level, the maximum number of primes per digit
    and the number of its special primes. A hop is [parent, child, index of the key]. If keys are derived,
    "masters" has the automorphisms of the master keys, the widths of the extra primes, their level in the
    chain, and the number of primes that they divide by. It also has the maximum number of derivations for a
    key, and the indices of keys that are sent although they could be derived. "subrings" has the plans of
    smaller rings, in the same format.
    """
    return json.dumps(_entry(plan), separators=(",", ":"))


def _entry(plan: KeyPlan) -> dict[str, Any]:
    masters = plan.masters
    place = {key: index for index, key in enumerate(plan.keys)}
    derived: dict[str, object] = {}
    if masters is not None:
        derived["masters"] = {
            "automorphisms": [describe(automorphism) for automorphism in masters.automorphisms],
            "extra_bits": list(masters.extra_bits),
            "level": masters.shape.level,
            "special": masters.shape.special,
            "max_hops": masters.max_hops,
            "sent": [place[key] for key in masters.sent],
        }
    return {
        "format": FORMAT,
        "strategy": plan.strategy,
        "gap": plan.gap,
        "program": plan.workload.as_object(),
        "keys": [
            {
                "automorphism": None if key.automorphism is None else describe(key.automorphism),
                "level": key.shape.level,
                "alpha": key.shape.alpha,
                "special": key.shape.special,
            }
            for key in plan.keys
        ],
        "hops": [
            [[describe(hop.parent), describe(hop.child), place[hop.key]] for hop in tree]
            for tree in plan.hops
        ],
        "relinearizations": {str(level): place[key] for level, key in plan.relinearization.items()},
        **derived,
        **({"subrings": [_entry(subring) for subring in plan.subrings]} if plan.subrings else {}),
    }


def from_json(text: bytes | str) -> KeyPlan:
    """Read the documented format, and check that the plan makes what its workload needs.

    Raises:
        WorkloadError: the text is malformed; the message names the place.
    """
    with refusing("a plan", WorkloadError):
        plan = _read(read_object(text, FORMAT, LIMITS))
    plan.check()
    return plan


def load(path: Path) -> KeyPlan:
    """Read a file.

    Raises:
        WorkloadError: as for `from_json`.
        OSError: it cannot be read.
    """
    try:
        data = read_file(path, LIMITS.bytes)
    except FormatError as error:
        raise WorkloadError(str(error)) from None
    try:
        return from_json(data)
    except WorkloadError as error:
        raise WorkloadError(f"{path}: {error}; write a plan with keywright plan --out") from None


def save(plan: KeyPlan, path: Path) -> None:
    """Write the documented format to a file.

    Raises:
        OSError: it cannot be written.
    """
    replace(path, to_json(plan).encode())


def _read(data: Mapping[str, Any], *, smaller: bool = False) -> KeyPlan:
    """Read a plan, or the plan of a smaller ring, which has no smaller rings of its own."""
    workload = Workload.from_entry(data["program"])
    chain = workload.chain
    if len(data["keys"]) > MAX_KEYS:
        raise WorkloadError(f"{len(data['keys'])} keys exceed the maximum of {MAX_KEYS}")
    keys = []
    for index, entry in enumerate(data["keys"]):
        level, alpha, special = (
            whole(entry[name], f"key {index}: {name}") for name in ("level", "alpha", "special")
        )
        if not 0 <= level <= chain.max_level:
            raise WorkloadError(f"key {index}: level {level} is not in [0, {chain.max_level}]")
        room = len(chain.special_candidates(level))
        if not 1 <= special <= room:
            raise WorkloadError(f"key {index}: {special} special primes are not in [1, {room}]")
        if alpha < 1:
            raise WorkloadError(f"key {index}: {alpha} primes per digit; at least 1 is needed")
        shape = Shape(chain, level, alpha, special)
        if not shape.legal:
            raise WorkloadError(f"key {index}: a prime is larger than the product of its special primes")
        automorphism = entry["automorphism"]
        keys.append(PlannedKey(None if automorphism is None else read_automorphism(automorphism), shape))

    def key(place: object) -> PlannedKey:
        if not isinstance(place, int) or not 0 <= place < len(keys):
            raise WorkloadError(f"key {shown(place)} is not in [0, {len(keys)})")
        return keys[place]

    if len(data["hops"]) != len(workload.groups):
        raise WorkloadError(
            f"the plan has hops of {len(data['hops'])} groups, but the program has {len(workload.groups)}"
        )
    hops = tuple(
        tuple(
            Hop(read_automorphism(parent), read_automorphism(child), key(place))
            for parent, child, place in tree
        )
        for tree in data["hops"]
    )
    relinearization = {int(level): key(place) for level, place in data["relinearizations"].items()}
    subrings = data.get("subrings", ())
    if len(subrings) > MAX_SUBRINGS:
        raise WorkloadError(f"plans of {len(subrings)} smaller rings exceed the maximum of {MAX_SUBRINGS}")
    if subrings and smaller:
        raise WorkloadError("the plan of a smaller ring contains plans of smaller rings")
    gap = data["gap"]
    masters = data.get("masters")
    return KeyPlan(
        str(data["strategy"]),
        workload,
        hops,
        relinearization,
        None if gap is None else number(gap, "gap"),
        None
        if masters is None
        else _read_masters(masters, workload, tuple(map(key, masters.get("sent", ())))),
        tuple(_read(subring, smaller=True) for subring in subrings),
    )


def _read_masters(data: Mapping[str, Any], workload: Workload, sent: tuple[PlannedKey, ...]) -> Masters:
    chain = workload.chain
    automorphisms = tuple(read_automorphism(entry, "masters: ") for entry in data["automorphisms"])
    for automorphism in automorphisms:
        if automorphism == IDENTITY or not 0 <= automorphism.step < workload.automorphisms.slots:
            raise WorkloadError(
                f"masters: {describe(automorphism)} is not an automorphism that a key can have"
            )
    if not 1 <= len(set(automorphisms)) == len(automorphisms) <= MAX_KEYS:
        raise WorkloadError(f"masters: {len(automorphisms)} keys; 1 to {MAX_KEYS} are allowed, each once")
    extra = tuple(whole(bits, "masters: the width of an extra prime") for bits in data["extra_bits"])
    if not 1 <= len(extra) <= MAX_EXTRA_PRIMES:
        raise WorkloadError(f"masters: {len(extra)} extra primes are not in [1, {MAX_EXTRA_PRIMES}]")
    level, special, hops = (
        whole(data[name], f"masters: {name}") for name in ("level", "special", "max_hops")
    )
    over = Chain(chain.log_n, (*chain.p, *chain.q), extra, chain.modulus_bound)
    if not len(chain.p) <= level <= over.max_level:
        raise WorkloadError(f"masters: level {level} is not in [{len(chain.p)}, {over.max_level}]")
    if not 1 <= special <= len(over.special_candidates(level)):
        room = len(over.special_candidates(level))
        raise WorkloadError(f"masters: division by {special} primes; 1 to {room} are allowed")
    if not 1 <= hops <= MAX_DERIVATION_HOPS:
        raise WorkloadError(f"masters: {hops} derivations at most; 1 to {MAX_DERIVATION_HOPS} are allowed")
    shape = Shape(over, level, level + 1, special)
    if not shape.legal:
        raise WorkloadError("masters: a prime is larger than the product that they divide by")
    return Masters(automorphisms, extra, shape, hops, sent)
