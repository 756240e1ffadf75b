"""How ciphertexts of thin clients enter and leave a program, as a model folder describes it.

A folder has one of three forms: `{"preset": NAME}`, a shipped preset; `{"preset": NAME, "slots": COUNT,
"output_level": LEVEL}`, a preset as a deep program uses it, with the program's smaller rings; or the numbers
of a `BootstrapperPlan`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keywright._copies import Unchanging
from keywright._core import BootstrapperPlan, Parameters
from keywright.errors import KeywrightError
from keywright.errors.model import FolderError
from keywright.program.operands.bootstraps import Bootstrap
from keywright.program.program import Program

from .preset_plans import preset_plan, shipped_plan

Literal = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Entry(
    Unchanging,
    elsewhere="save the model with keywright.Model.save, and load it elsewhere with keywright.load",
):
    """Where ciphertexts of thin clients enter and leave a program.

    Attributes:
        plan: the bootstrapping whose last three stages take in ciphertexts and whose first stage produces
            answers.
        literal: the stored description that it is made from.
    """

    plan: BootstrapperPlan = field(repr=False)
    literal: Literal

    def require(self, program: Program) -> None:
        """Check that the bootstrapping offers what a program needs.

        Raises:
            FolderError: it has too few slots or levels.
        """
        plan = self.plan
        offered = (plan.slots, plan.output_level, plan.input_level)
        period = max(program.input.layout.period, program.output.layout.period)
        needs = (period, program.input.level, program.output.level)
        low = period > offered[0] or needs[1] > offered[1] or needs[2] < offered[2]
        if low or plan.slots > program.slots:
            raise FolderError(
                f"the program has {program.slots} slots and needs (used slots, input level, output level) "
                f"= {needs}; thin clients' bootstrapping offers {offered}",
                code="model_folder",
            )


def deep_entry(program: Program) -> Bootstrap:
    """Return how ciphertexts enter a program that bootstraps: as in its own bootstrap in the largest ring,
    with as many slots as its inputs and outputs need."""
    own = program.operands.bootstraps[0]
    slots = max(own.slots, program.input.layout.period, program.output.layout.period)
    return Bootstrap(slots, own.input_level, own.output_level, preset=own.preset)


def deep_literal(entry: Bootstrap) -> dict[str, Any]:
    """Return the description that a folder stores."""
    return {"preset": entry.preset, "slots": entry.slots, "output_level": entry.output_level}


def read_entry(
    program: Program, plans: Sequence[BootstrapperPlan], parameters: Parameters, literal: Literal
) -> Entry | None:
    """Return the entry of a stored description, with the program's own plan if it bootstraps in the same way;
    None for an empty description.

    Args:
        program: the program.
        plans: plans of the program's bootstraps, in order.
        parameters: of its ciphertexts.
        literal: the stored description.

    Raises:
        FolderError: the numbers do not describe a plan, or the preset is for other parameters.
    """
    if not literal:
        return None
    try:
        if "preset" not in literal:
            return Entry(BootstrapperPlan(parameters, **literal), literal)
        if set(literal) == {"preset"}:
            plan = _shipped(program, plans, str(literal["preset"]))
        else:
            plan = _deep(program, plans, **literal)
    except (TypeError, OverflowError, KeywrightError) as error:
        raise FolderError(
            f"these numbers do not describe a bootstrapping: {error}", code="model_folder"
        ) from error
    if plan.parameters != parameters:
        raise FolderError(f"the parameters are not those of preset {literal['preset']}", code="model_folder")
    return Entry(plan, literal)


def _shipped(program: Program, plans: Sequence[BootstrapperPlan], name: str) -> BootstrapperPlan:
    for bootstrap, plan in zip(program.operands.bootstraps, plans, strict=True):
        if bootstrap.preset == name:
            return plan
    return shipped_plan(name)


def _deep(
    program: Program,
    plans: Sequence[BootstrapperPlan],
    *,
    preset: str,
    slots: int,
    output_level: int,
) -> BootstrapperPlan:
    input_level = shipped_plan(preset).input_level
    target = Bootstrap(slots, input_level, output_level, preset=preset)
    for bootstrap, plan in zip(program.operands.bootstraps, plans, strict=True):
        if deep_literal(bootstrap) == deep_literal(target) and not bootstrap.input_log_n:
            return plan
    return preset_plan(target, program)
