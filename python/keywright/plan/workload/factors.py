"""Ways to evaluate one factor of a bootstrapping's transforms in the engine.

A factor with diagonals at 0, g, 2 g, .., (d - 1) g has n1 baby steps, rotations of its input by g to (n1 - 1)
g. It has ceil(d / n1) - 1 giant steps in a chain, each a rotation of a sum by n1 g
(docs/explanation/bootstrapping.md, "Keys against time"; `BootstrapperPlan::factor_options`).
Diagonals from
-a g on belong to a factor that is rotated by a g: the diagonals absorb rotations between factors.
"""

from collections.abc import Iterable
from math import gcd

from keywright.plan.ring.galois import AutomorphismGroup

from .open_workload import Alternative
from .workload import Group, make_group

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""Numbers of baby steps to try; the engine, which chooses for one factor at a time, tries more."""


def factor_alternatives(
    group: AutomorphismGroup, name: str, level: int, diagonals: Iterable[int], slots: int | None = None
) -> list[Alternative]:
    """Return an alternative for every number of baby steps.

    Args:
        group: the group of the rotations.
        name: of the factor.
        level: of its input.
        diagonals: its rotations, of any sign, including 0.
        slots: modulus of the indices of diagonals; by default all slots of the ring.
    """
    results = sorted(set(diagonals))
    stride = gcd(*results) or 1
    wrapped = (slots or group.slots) // stride
    number = min(wrapped, (results[-1] - results[0]) // stride + 1)
    out = []
    for babies in (count for count in COUNTS if count <= max(1, number)):
        chained = -(-number // babies) - 1
        groups: list[Group] = []
        if babies > 1:
            steps = [stride * index for index in range(1, babies)]
            groups.append(make_group(group, f"{name} baby", level, steps))
        if chained:
            groups.append(make_group(group, f"{name} giant", level, [stride * babies], chained))
        out.append(Alternative(f"{babies} baby steps, chain of {chained}", tuple(groups)))
    return out
