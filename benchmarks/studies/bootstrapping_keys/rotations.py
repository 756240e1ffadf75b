"""The rotation table of a bootstrapping: which rotation is done at which level, and by which stage."""

from __future__ import annotations

from pathlib import Path

import keywright as kw
from harness.pages.plot import new_figure

PRESET = "N16_QP1746_L16_S50"
"""The shipped bootstrapping of the paper's setting: scale 2^50, depth 16."""


def rotations(plan: kw.BootstrapperPlan) -> dict[str, list[tuple[int, int]]]:
    """For each stage that rotates, the steps (from 0 to the number of slots) and levels of its rotation keys.

    Rotations that are one with the switch from the ephemeral secret have keys of another kind: they are left
    out.
    """
    rotations = {}
    for stage, specs in plan.stage_keys.items():
        steps = [(spec.steps % plan.slots, spec.level) for spec in specs if spec.steps is not None]
        if steps:
            rotations[stage] = sorted(steps)
    return rotations


def draw(plan: kw.BootstrapperPlan, title: str, path: Path) -> None:
    """Write the table as a picture, as large as the steps and levels that there are.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(8, 4)
    axes = figure.subplots()
    for stage, places in rotations(plan).items():
        steps, levels = zip(*places, strict=True)
        axes.scatter(steps, levels, s=22, label=stage, zorder=2)
        axes.vlines(steps, -0.5, levels, color="#c8d4e6", linewidth=1)
    top = plan.parameters.max_level
    axes.axhline(top, color="#b03030", linestyle="--", label="top level")
    axes.set(xlabel="rotation steps", ylabel="level", ylim=(-0.5, top + 0.5), title=title)
    axes.set_xscale("log", base=2)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=120)
