"""A program as thin clients enter it: what the planner counts the key switches of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keywright.nn.compiled.instructions import Instruction
from keywright.nn.compiled.key_switches import KeySwitch
from keywright.nn.compiled.network import CompiledNetwork
from keywright.plan.workload.network_protocol import PolynomialLike, TransformLike


@dataclass(frozen=True, eq=False)
class EnteredNetwork:
    """A program with a bootstrap in the place of each input; implements `NetworkLike`.

    A ciphertext of a thin client is raised, moved to slots and reduced as in the last three stages of a
    bootstrap. Its first stage stands for the one by which an answer leaves: there are at most as many answers
    as inputs in a network that classifies, and a stage that is counted too often only asks for no key that is
    not there.

    Attributes:
        program: the program.
        entry: which of its bootstrappings clients enter by.
    """

    program: CompiledNetwork
    entry: int

    @property
    def instructions(self) -> Sequence[Instruction]:
        """Those of the program, with bootstraps of nothing for inputs."""
        return [
            Instruction("bootstrap", step.result, (), step.level, self.entry)
            if step.opcode == "input"
            else step
            for step in self.program.instructions
        ]

    @property
    def transforms(self) -> Sequence[TransformLike]:
        """Those of the program."""
        return self.program.transforms

    @property
    def polynomials(self) -> Sequence[PolynomialLike]:
        """Those of the program."""
        return self.program.polynomials

    @property
    def rings(self) -> Mapping[int, int]:
        """Those of the program."""
        return self.program.rings

    @property
    def key_switches(self) -> Sequence[KeySwitch]:
        """Those of the program."""
        return self.program.key_switches
