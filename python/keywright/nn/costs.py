"""What the operations of a program cost at each level: what the placement of bootstraps minimises.

The default table was measured with `scripts/measure_costs.py` and is relative: only its proportions matter.
"""

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from .errors import InvalidCostsError

MAX_LEVELS = 128


@dataclass(frozen=True)
class LayerWork:
    """How much of each operation a layer takes.

    Attributes:
        rotations: key switches of rotations that share nothing: giant steps and foldings.
        hoisted: rotations that share the decomposition of their input: baby steps.
        diagonals: products with a plaintext diagonal.
        multiplications: products of ciphertexts by the level of their operands, counted from the layer's
            operands: entry 0 at their level, entry 1 one level below, and so on.
    """

    rotations: int = 0
    hoisted: int = 0
    diagonals: int = 0
    multiplications: tuple[int, ...] = ()

    def times(self, count: int) -> "LayerWork":
        """The work on that many ciphertexts."""
        return LayerWork(
            self.rotations * count,
            self.hoisted * count,
            self.diagonals * count,
            tuple(number * count for number in self.multiplications),
        )


@dataclass(frozen=True)
class CostTable:
    """Seconds of one operation by the level of its operand, from level 0 on; levels above the last cost
    linearly more.

    Attributes:
        rotation: of a ciphertext, alone.
        hoisted: one of many rotations of a ciphertext.
        diagonal: a product with an encoded diagonal.
        multiplication: of two ciphertexts, with relinearization and rescaling.
        bootstrap: by the level of its result.

    Raises:
        InvalidCostsError: fewer than two entries or more than 128, one that is not positive, or one that is
            smaller than that of the level below: the placement relies on lower levels being cheaper.
    """

    rotation: tuple[float, ...]
    hoisted: tuple[float, ...]
    diagonal: tuple[float, ...]
    multiplication: tuple[float, ...]
    bootstrap: tuple[float, ...]

    def __post_init__(self) -> None:
        for field in fields(self):
            costs = getattr(self, field.name)
            if not 2 <= len(costs) <= MAX_LEVELS:
                raise InvalidCostsError(
                    f"{field.name} has costs of {len(costs)} levels; needed are 2 to {MAX_LEVELS}"
                )
            for level, cost in enumerate(costs):
                floor = costs[level - 1] if level else 0.0
                if not floor <= cost < float("inf") or cost <= 0:
                    raise InvalidCostsError(
                        f"{field.name} costs {cost} at level {level}; it must be finite, above 0 and at "
                        f"least {floor}, the cost one level below"
                    )

    @staticmethod
    @cache
    def default() -> "CostTable":
        """The table that the package ships."""
        text = (files("keywright") / "data" / "level_costs.json").read_text()
        entries = json.loads(text)["seconds"]
        return CostTable(**{field.name: tuple(entries[field.name]) for field in fields(CostTable)})

    def seconds(self, work: LayerWork, level: int) -> float:
        """Time of a layer whose operands are at a level."""
        total = work.rotations * _at(self.rotation, level)
        total += work.hoisted * _at(self.hoisted, level) + work.diagonals * _at(self.diagonal, level)
        for below, count in enumerate(work.multiplications):
            total += count * _at(self.multiplication, level - below)
        return total

    def bootstrap_seconds(self, output_level: int) -> float:
        """Time of a bootstrap to a level."""
        return _at(self.bootstrap, output_level)


def _at(costs: tuple[float, ...], level: int) -> float:
    last = len(costs) - 1
    if level <= last:
        return costs[max(level, 0)]
    return costs[last] + (level - last) * (costs[last] - costs[last - 1])
