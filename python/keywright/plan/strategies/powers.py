"""Keys for powers of two: unsigned as in HEAAN, signed as in SEAL, and the thirty of Fhelipe."""

from collections.abc import Sequence

from keywright.plan.ring.galois import Automorphism, AutomorphismGroup
from keywright.plan.workload.workload import Group

CONJUGATION = Automorphism(0, True)


def unsigned_powers(group: AutomorphismGroup, target: Automorphism) -> list[Automorphism]:
    """Return the binary digits of the step, lowest first; a conjugation last."""
    hops = [group.rotation(1 << bit) for bit in range(group.log_n - 1) if target.step >> bit & 1]
    return hops + [CONJUGATION] * target.conjugate


def signed_powers(group: AutomorphismGroup, target: Automorphism) -> list[Automorphism]:
    """Return the non-adjacent form of the step, the shortest form with digits -1, 0 and 1: SEAL's
    `rotate_vector`."""
    left, hops, bit = target.step, [], 0
    if left > group.slots // 2:
        left -= group.slots
    while left:
        if left % 2:
            digit = 2 - left % 4
            hops.append(group.rotation(digit << bit))
            left -= digit
        left //= 2
        bit += 1
    return hops + [CONJUGATION] * target.conjugate


def fhelipe(group: AutomorphismGroup, target: Automorphism) -> list[Automorphism]:
    """Do as Fhelipe's Lattigo back end does with its keys for 2^i and -2^i, i < 15: a power of two to the
    right is one hop, all other steps are the binary digits of the step to the left (`LattigoCt::RotateC`,
    commit 6afbd1c)."""
    right = -target.step % group.slots
    if right and right & (right - 1) == 0:
        return [group.rotation(-right)] + [CONJUGATION] * target.conjugate
    return unsigned_powers(group, target)


def all_required(group: AutomorphismGroup, target: Automorphism) -> list[Automorphism]:
    """Return a key for every automorphism."""
    del group
    return [target]


def lowmem(group: AutomorphismGroup, targets: Group) -> dict[Automorphism, Sequence[Automorphism]]:
    """LowMem (Rovida and Leporati, ePrint 2024/998): make a filter's rotations i w + j from the keys of its
    width w and of its step 1.

    The step is the smallest rotation, the width the one that reaches the most targets. Targets that are not a
    sum of at most two widths and two steps have their own keys, as in the published workload.
    """
    signed = sorted((abs(_signed(group, a)), a) for a in targets.targets if not a.conjugate)
    if not signed:
        return {target: [target] for target in targets.targets}
    step = signed[0][0]
    sizes = sorted({size for size, _ in signed if size > 2 * step})
    plain = [a for a in targets.targets if not a.conjugate]

    def reached(width: int) -> int:
        return sum(_filter_route(group, a, [width, step]) is not None for a in plain)

    width = max(sizes, key=lambda size: (reached(size), -size), default=None)
    units = [step] if width is None else [width, step]
    out: dict[Automorphism, Sequence[Automorphism]] = {}
    for target in targets.targets:
        route = None if target.conjugate else _filter_route(group, target, units)
        out[target] = [target] if route is None else route
    return out


def _signed(group: AutomorphismGroup, a: Automorphism) -> int:
    return a.step - group.slots if a.step > group.slots // 2 else a.step


def _filter_route(
    group: AutomorphismGroup, target: Automorphism, units: Sequence[int]
) -> list[Automorphism] | None:
    value = _signed(group, target)
    width = units[0] if len(units) == 2 else 0
    step = units[-1]
    for rows in (0, 1, -1, 2, -2) if width else (0,):
        columns, rest = divmod(value - rows * width, step)
        if rest == 0 and abs(columns) <= 2:
            along = [group.rotation(width if rows > 0 else -width)] * abs(rows)
            across = [group.rotation(step if columns > 0 else -step)] * abs(columns)
            return along + across
    return None
