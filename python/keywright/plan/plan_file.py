"""Plans as text: what `keywright plan --out` writes, `keygen --plan` makes keys of and `run` follows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .chain import Shape
from .key_plan import Hop, KeyPlan, PlannedKey
from .program import MAX_BYTES, Program, ProgramError, describe, read_automorphism

FORMAT = "keywright-plan-1"
MAX_KEYS = 1 << 16


def to_json(plan: KeyPlan) -> str:
    """The documented form: the program, every key, and the hops of every group of the program.

    A key has its automorphism, or null for relinearisation, its level, the most primes of a digit and the
    number of its special primes. A hop is [parent, child, place of the key].
    """
    place = {key: index for index, key in enumerate(plan.keys)}
    return json.dumps(
        {
            "format": FORMAT,
            "strategy": plan.strategy,
            "gap": plan.gap,
            "program": json.loads(plan.program.to_json()),
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
        },
        separators=(",", ":"),
    )


def from_json(text: str) -> KeyPlan:
    """Read the documented form; the plan is checked to make what its program needs.

    Raises:
        ProgramError: not that form, naming the place.
    """
    if len(text) > 4 * MAX_BYTES:
        raise ProgramError(f"{len(text)} bytes; a plan may have {4 * MAX_BYTES}")
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ProgramError(f"not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ProgramError(f'not a plan: "format" must be "{FORMAT}"; write one with keywright plan --out')
    try:
        plan = _read(data)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, ProgramError):
            raise
        raise ProgramError(f"not a plan: {type(error).__name__}: {error}") from None
    plan.check()
    return plan


def load(path: Path) -> KeyPlan:
    """Read a file.

    Raises:
        ProgramError: as of `from_json`.
        OSError: it cannot be read.
    """
    if path.stat().st_size > 4 * MAX_BYTES:
        raise ProgramError(f"{path} has {path.stat().st_size} bytes; a plan may have {4 * MAX_BYTES}")
    return from_json(path.read_text(encoding="utf-8", errors="replace"))


def _read(data: Mapping[str, Any]) -> KeyPlan:
    program = Program.from_json(json.dumps(data["program"]))
    chain = program.chain
    if len(data["keys"]) > MAX_KEYS:
        raise ProgramError(f"{len(data['keys'])} keys; there may be {MAX_KEYS}")
    keys = []
    for index, entry in enumerate(data["keys"]):
        level, alpha, special = (int(entry[name]) for name in ("level", "alpha", "special"))
        if not 0 <= level <= chain.max_level:
            raise ProgramError(f"key {index}: level {level} is not in [0, {chain.max_level}]")
        room = len(chain.pool(level))
        if not 1 <= special <= room:
            raise ProgramError(f"key {index}: {special} special primes; there may be from 1 to {room}")
        if alpha < 1:
            raise ProgramError(f"key {index}: {alpha} primes a digit; there must be 1")
        shape = Shape(chain, level, alpha, special)
        if not shape.legal:
            raise ProgramError(f"key {index}: a prime is larger than its special primes together")
        automorphism = entry["automorphism"]
        keys.append(PlannedKey(None if automorphism is None else read_automorphism(automorphism), shape))

    def key(place: object) -> PlannedKey:
        if not isinstance(place, int) or not 0 <= place < len(keys):
            raise ProgramError(f"key {place!r} is not in [0, {len(keys)})")
        return keys[place]

    if len(data["hops"]) != len(program.groups):
        raise ProgramError(f"hops of {len(data['hops'])} groups; the program has {len(program.groups)}")
    hops = tuple(
        tuple(
            Hop(read_automorphism(parent), read_automorphism(child), key(place))
            for parent, child, place in tree
        )
        for tree in data["hops"]
    )
    relinearization = {int(level): key(place) for level, place in data["relinearizations"].items()}
    gap = data["gap"]
    return KeyPlan(str(data["strategy"]), program, hops, relinearization, None if gap is None else float(gap))
