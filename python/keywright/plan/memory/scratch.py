"""Scratch memory of operations, as the engine counts it, for each instruction."""

from functools import cache

from keywright._core import BootstrapperPlan, KeySpec, polynomial_depth, polynomial_scratch, transform_scratch
from keywright.plan.keys.execution import PlanExecution
from keywright.program.instructions import Instruction
from keywright.program.program import Program

from .diagonals import Storage


class Scratch:
    """Scratch memory of operations in one ring, including results.

    Args:
        plan: of the keys of the ring.
        bootstraps: of the network, in order.
        threads: number of computing threads.
    """

    def __init__(
        self, plan: PlanExecution, bootstraps: tuple[BootstrapperPlan, ...] = (), threads: int = 1
    ) -> None:
        self.plan, self.bootstraps, self.threads = plan, bootstraps, threads
        self.bootstrap = cache(self._bootstrap)

    def instruction(self, network: Program, step: Instruction, storage: Storage) -> int:
        """Return the scratch of an instruction of a network.

        Args:
            network: the network that contains its transform or polynomial.
            step: the instruction.
            storage: how its diagonals are stored.
        """
        match step.opcode:
            case "linear_transform":
                return self.transform(network, step, storage)
            case "rotate" | "conjugate" | "switch_ring":
                key = KeySpec.rotation(self.plan.parameters, 1, step.level)
                return key.scratch_bytes(threads=self.threads)
            case "mul":
                return self.product(step.level + 1)
            case "polynomial":
                polynomial = network.operands.polynomials[step.argument]
                level = step.level + polynomial_depth(polynomial.degree)
                key = KeySpec.relinearization(self.plan.parameters, level)
                coefficients, basis = polynomial.coefficients, polynomial.basis
                return polynomial_scratch(key, level, coefficients, basis, threads=self.threads)
            case "bootstrap":
                return self.bootstrap(step.argument, storage)
            case _:
                return 0

    def product(self, level: int) -> int:
        """Return the scratch of a product of ciphertexts: three polynomials, and a key switch with a
        rescaling."""
        key = KeySpec.relinearization(self.plan.parameters, level)
        polynomials = 3 * (level + 1) * 8 * self.plan.parameters.n
        return polynomials + key.scratch_bytes(rescale=True, threads=self.threads)

    def transform(self, network: Program, step: Instruction, storage: Storage) -> int:
        """Return the scratch of a linear transform, without diagonals made for it."""
        transform, level = network.operands.transforms[step.argument], step.level + 1
        used = [index for index, diagonals in enumerate(transform.diagonals) if diagonals]
        steps = [list(transform.diagonals[index]) for index in used]
        periods = [transform.periods[index] for index in used for _ in transform.diagonals[index]]
        result, decomposed = self.plan.hoisting(level, transform)
        return transform_scratch(
            self.plan.parameters,
            level,
            self.plan.special(level, transform),
            babies=sum(len({r % transform.n1 for r in indices} - {0}) for indices in steps),
            giants=len({r - r % transform.n1 for indices in steps for r in indices}),
            inputs=len(used),
            made=result,
            decomposed=decomposed,
            periods=None if storage == "encoded" else periods,
            threads=self.threads,
        )

    def _bootstrap(self, index: int, storage: Storage) -> int:
        """Return the scratch of a bootstrap: its largest stage, with the diagonals made for it."""
        return max(self.bootstraps[index].scratch_bytes(storage, threads=self.threads).values())
