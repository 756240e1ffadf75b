"""The operations of compiled networks and bootstraps besides key switches."""

from collections.abc import Sequence
from functools import lru_cache

from keywright._core import BootstrapperPlan, polynomial_arithmetic, polynomial_depth
from keywright.plan.cost.operations import Operation, product_operation
from keywright.program.instructions import Scales
from keywright.program.operands.diagonals import DiagonalMatrix
from keywright.program.program import Program


def stage_ring(plan: BootstrapperPlan, stage: str) -> int:
    """Return the ring of a stage of a bootstrap: log2 of the degree of the smaller ring that it begins in, or
    0."""
    return input_ring(plan) if stage == "slots_to_coeffs" else 0


def input_ring(plan: BootstrapperPlan) -> int:
    """Return the name in programs of the ring that a bootstrap begins in."""
    return 0 if plan.input_log_n == plan.parameters.log_n else plan.input_log_n


def performed_bootstraps(
    network: Program, bootstraps: Sequence[BootstrapperPlan]
) -> dict[int, BootstrapperPlan]:
    """Return the plan of what is done at each instruction that bootstraps, by its place. The first of a pair
    is for both, and the second is left out.

    Args:
        network: the compiled network.
        bootstraps: plans of its bootstraps, in order.
    """
    pairs = network.bootstrap_pairs
    return {
        place: bootstraps[step.argument] if place in pairs else _alone(bootstraps[step.argument])
        for place, step in enumerate(network.instructions)
        if step.opcode == "bootstrap" and place - 1 not in pairs
    }


@lru_cache(maxsize=16)
def _alone(plan: BootstrapperPlan) -> BootstrapperPlan:
    """Return the plan of a ciphertext without another; one object, whose factors are listed once."""
    return plan.alone if plan.values == "pair" else plan


def bootstrap_operations(plan: BootstrapperPlan, name: str, log_n: int = 0) -> list[Operation]:
    """Return the operations of one bootstrap with stored diagonals in one of its rings (`stage_ring`), in the
    order of its stages."""
    return [
        Operation(f"{name}/{stage}", level, count, special, **counts)
        for stage, level, special, counts, count in plan.operations
        if stage_ring(plan, stage) == log_n
    ]


def factor_operations(plan: BootstrapperPlan, name: str) -> list[dict[int, Operation]]:
    """Return for each factor of a bootstrap's transforms its operations besides key switches, by its number
    of baby steps."""
    return [
        {
            babies: Operation(f"{name}/{stage}", level, plan.iterations, special, **counts)
            for babies, _, (special, counts) in ways
        }
        for stage, level, ways in plan.factor_ways
    ]


def network_operations(
    network: Program, bootstraps: Sequence[BootstrapperPlan] = (), log_n: int = 0
) -> list[Operation]:
    """Return the operations of a network with encoded diagonals, in order, including those of given
    bootstraps.

    Args:
        network: the compiled network.
        bootstraps: plans of its bootstraps, in order.
        log_n: the smaller ring of degree 2^log_n, or 0 for the largest.
    """
    out: list[Operation] = []
    scales = Scales()
    performed = performed_bootstraps(network, bootstraps) if bootstraps else {}
    for place, step in enumerate(network.instructions):
        name = f"c{step.result}"
        changed = scales.follow(step)
        if place in performed:
            out += bootstrap_operations(performed[place], name, log_n)
        if network.rings[step.result] != log_n:
            continue
        out += [Operation(name, level + 1, visits=2, rescaled=2) for level in changed]
        match step.opcode:
            case "linear_transform":
                out.append(
                    transform_operation(name, step.level + 1, network.operands.transforms[step.argument])
                )
            case "add" | "join" | "real" | "imaginary":
                out.append(Operation(name, step.level, visits=2))
            case "add_plain" | "add_both":
                out.append(Operation(name, step.level, visits=1, transforms=1, embeddings=1))
            case "mul":
                out.append(product_operation(name, step.level + 1, square=len(set(step.operands)) == 1))
            case "polynomial":
                polynomial = network.operands.polynomials[step.argument]
                top = step.level + polynomial_depth(polynomial.degree)
                for below, counts in polynomial_arithmetic(polynomial.coefficients, polynomial.basis):
                    out.append(Operation(name, top - below, **counts))
            case _:
                pass  # Rotations and switches between rings are only key switches; the others copy.
    return out


def transform_operation(name: str, level: int, transform: DiagonalMatrix) -> Operation:
    """Return a linear transform of ciphertexts at a level, without the key switches of its steps."""
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
