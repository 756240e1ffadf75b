"""Loads a model folder: parameters, program, plans of its bootstraps and of its keys."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from keywright._core import BootstrapperPlan, Parameters
from keywright.compiler.presets import preset_plans
from keywright.errors import ChoiceError
from keywright.errors.model import FolderError
from keywright.model.served.model import DESCRIPTION, Model
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.program.program import Program

from .files import PARAMETERS, PLAN, PROGRAM, require_files


def bootstrap_plans(program: Program) -> list[BootstrapperPlan]:
    """Return the plans that a program's bootstraps name, in order.

    Raises:
        ChoiceError: a bootstrap is not one of a preset.
    """
    for bootstrap in program.bootstraps:
        if bootstrap.preset not in BootstrapperPlan.presets():
            raise ChoiceError(
                f"the program bootstraps with preset {bootstrap.preset!r}, but this release has "
                f"{', '.join(BootstrapperPlan.presets())}; compile the model again",
                code="preset",
            )
    return preset_plans(program)


@dataclass(frozen=True)
class Loaded:
    """A loaded model.

    Attributes:
        folder: its folder.
        parameters: of its ciphertexts.
        program: the program.
    """

    folder: Path
    parameters: Parameters
    program: Program

    @cached_property
    def execution(self) -> PlanExecution | None:
        """The plan of its keys; None if the folder has none.

        Raises:
            PlanMismatchError: the plan is for something else.
            ChoiceError: a bootstrap is not one of a preset.
        """
        if not (self.folder / PLAN).is_file():
            return None
        plan = plan_file.load(self.folder / PLAN)
        return PlanExecution(plan, self.parameters, self.program, bootstrap_plans(self.program))


def load(folder: Path, origin: str) -> Loaded:
    """Load parameters and program from a folder.

    Args:
        origin: name of such a folder in messages, and how to make it.

    Raises:
        FolderError: files are missing, or the model is for thin clients.
        ModelFolderError: the description of the model is damaged.
    """
    require_files(folder, (PARAMETERS, PROGRAM), origin)
    if (folder / DESCRIPTION).is_file():
        model = Model.load(folder)
        if model.entry is not None:
            raise FolderError(
                f"{folder} holds a model for thin clients, which keywright serve and "
                "keywright.client.RemoteModel use; for full clients compile it with --slots"
            )
        return Loaded(folder, model.parameters, model.program)
    return Loaded(folder, Parameters.load(folder / PARAMETERS), Program.load(folder / PROGRAM))
