"""A program as thin clients enter it, whose key switches the planner counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keywright.plan.workload.network_protocol import PolynomialLike, TransformLike
from keywright.program.instructions import Instruction
from keywright.program.key_switches import KeySwitch
from keywright.program.network import CompiledNetwork


@dataclass(frozen=True, eq=False)
class EnteredNetwork:
    """A program with a bootstrap in place of each input; implements `NetworkLike`.

    A thin client's ciphertext goes through ModRaise, CoeffsToSlots and EvalMod, the last three stages of a
    bootstrap. The first stage, SlotsToCoeffs, stands for the one that produces an answer. A classifier has at
    most as many answers as inputs. Counting a stage too often never asks for an extra key.

    Attributes:
        program: the program.
        entry: index of the bootstrapping through which clients enter.
    """

    program: CompiledNetwork
    entry: int

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The operations of the program, with bootstraps for inputs."""
        return [
            Instruction("bootstrap", step.result, (), step.level, self.entry)
            if step.opcode == "input"
            else step
            for step in self.program.instructions
        ]

    @property
    def transforms(self) -> Sequence[TransformLike]:
        """As in the program."""
        return self.program.transforms

    @property
    def polynomials(self) -> Sequence[PolynomialLike]:
        """As in the program."""
        return self.program.polynomials

    @property
    def rings(self) -> Mapping[int, int]:
        """As in the program."""
        return self.program.rings

    @property
    def key_switches(self) -> Sequence[KeySwitch]:
        """As in the program."""
        return self.program.key_switches
