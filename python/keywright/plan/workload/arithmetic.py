"""What compiled networks and bootstraps compute beside key switches."""

from collections.abc import Sequence

from keywright._core import BootstrapperPlan, polynomial_arithmetic
from keywright._polynomials import polynomial_depth
from keywright.plan.cost.operations import Operation, product_operation

from .network_protocol import InstructionLike, NetworkLike, TransformLike

Scale = object
"""What stands for a scale: equal ones are equal."""


def bootstrap_operations(plan: BootstrapperPlan, name: str) -> list[Operation]:
    """The operations of one bootstrap with diagonals that are stored, in the order of its stages."""
    return [
        Operation(f"{name}/{stage}", level, count, special, **counts)
        for stage, level, special, counts, count in plan.operations
    ]


def factor_operations(plan: BootstrapperPlan, name: str) -> list[dict[int, Operation]]:
    """For each factor of a bootstrap's transforms, by its number of baby steps, what it computes beside key
    switches."""
    return [
        {
            babies: Operation(f"{name}/{stage}", level, plan.iterations, special, **counts)
            for babies, _, (special, counts) in ways
        }
        for stage, level, ways in plan.factor_ways
    ]


def network_operations(network: NetworkLike, bootstraps: Sequence[BootstrapperPlan] = ()) -> list[Operation]:
    """The operations of a network whose diagonals are encoded, in order; of bootstraps, if they are given."""
    out: list[Operation] = []
    scales = _Scales()
    for step in network.instructions:
        name = f"c{step.result}"
        out += [Operation(name, level + 1, visits=2, rescaled=2) for level in scales.follow(step)]
        match step.opcode:
            case "linear_transform":
                out.append(transform_operation(name, step.level + 1, network.transforms[step.argument]))
            case "add":
                out.append(Operation(name, step.level, visits=2))
            case "add_plain":
                out.append(Operation(name, step.level, visits=1, transforms=1, embeddings=1))
            case "mul":
                out.append(product_operation(name, step.level + 1, square=len(set(step.operands)) == 1))
            case "polynomial":
                polynomial = network.polynomials[step.argument]
                top = step.level + polynomial_depth(polynomial.degree)
                for below, counts in polynomial_arithmetic(polynomial.coefficients, polynomial.basis):
                    out.append(Operation(name, top - below, **counts))
            case "bootstrap" if bootstraps:
                out += bootstrap_operations(bootstraps[step.argument], name)
            case _:
                pass  # Rotations are key switches alone; the others copy.
    return out


def transform_operation(name: str, level: int, transform: TransformLike) -> Operation:
    """A linear transform of ciphertexts at a level, without the key switches of its steps."""
    inputs = [diagonals for diagonals in transform.diagonals if diagonals]
    lifted = sum(r % transform.n1 == 0 for diagonals in inputs for r in diagonals)
    unrotated = sum(any(r % transform.n1 == 0 for r in diagonals) for diagonals in inputs)
    return Operation(
        name,
        level,
        diagonals=sum(len(diagonals) for diagonals in inputs) - lifted,
        lifted=lifted,
        visits=len(inputs) + unrotated,
        divided=2,
    )


class _Scales:
    """Follows scales through a program: a sum brings operands that were dropped to the others' scale."""

    def __init__(self) -> None:
        self._scales: dict[int, Scale] = {}
        self._dropped: set[int] = set()

    def follow(self, step: InstructionLike) -> list[int]:
        """Levels at which operands of a step are brought to another scale."""
        scales, dropped, result = self._scales, self._dropped, step.result
        operands = [scales[operand] for operand in step.operands]
        changed: list[int] = []
        match step.opcode:
            case "input":
                scales[result] = "input"
            case "mul":
                scales[result] = (step.level, frozenset(operands))
            case "bootstrap":
                scales[result] = "input"
            case "add" | "linear_transform":
                kept = [scales[o] for o in step.operands if o not in dropped] or operands
                scales[result] = kept[0]
                level = step.level + (step.opcode == "linear_transform")
                others = (o for o in step.operands if o in dropped and scales[o] != kept[0])
                changed = [level for _ in others]
            case _:
                scales[result] = operands[0]
        if step.opcode == "drop_level":
            dropped.add(result)
        return changed
