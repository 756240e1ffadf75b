"""What client and server of one model share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from keywright._copies import Unchanging
from keywright._core import ClientParameters, Parameters
from keywright.model.served.manifest import Manifest
from keywright.plan.keys.execution import PlanExecution
from keywright.program.program import Program

from .identity import Identity
from .requests import Requests


@dataclass(frozen=True, eq=False)
class Shared(
    Unchanging,
    elsewhere="save the model with keywright.Model.save, and load it elsewhere with keywright.load",
):
    """What client and server of one model share.

    Attributes:
        program: the program.
        parameters: of its ciphertexts.
        make_interface: makes the manifest without keys; all arrays of the program are read for it.
        make_execution: makes the execution of the key plan, None if there is no plan.
        write: writes the model's files into a folder.
        entry: for thin clients, the index of the bootstrap of the execution by which they enter.
    """

    program: Program
    parameters: Parameters
    make_interface: Callable[[], Manifest]
    make_execution: Callable[[], PlanExecution | None]
    write: Callable[[Path], None]
    entry: int | None = None

    @cached_property
    def interface(self) -> Manifest:
        """The manifest without keys."""
        return self.make_interface()

    @cached_property
    def identity(self) -> Identity:
        """Which program the messages of both sides are for."""
        return Identity(bytes.fromhex(self.interface.program), self.program.created)

    @cached_property
    def requests(self) -> Requests:
        """The server's side of the ciphertexts."""
        client = self.interface.format.client
        thin = ClientParameters.from_bytes(client) if client else None
        return Requests(self.interface, self.parameters, thin)
