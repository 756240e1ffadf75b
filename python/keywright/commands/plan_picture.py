"""A picture of memory against time: the frontier of the planner, and the published strategies."""

from collections.abc import Sequence
from pathlib import Path

from keywright import plan as planning
from keywright._terminal import Terminal

from .common import new_file


def draw_frontier(
    planner: planning.Planner,
    plans: Sequence[planning.KeyPlan],
    best: planning.KeyPlan,
    path: Path,
    terminal: Terminal,
) -> None:
    """Draw bytes of keys across and predicted time up, both logarithmic.

    Without matplotlib a note says so and nothing is drawn.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter
    except ImportError:
        terminal.note("no picture without matplotlib; install it with: pip install 'keywright[plot]'")
        return
    model = planner.model
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    points = planner.points
    axes.step(
        [point.stored_bytes for point in points],
        [point.seconds for point in points],
        where="post",
        color="#1f4e9c",
        label="frontier found",
    )
    axes.scatter(
        [best.stored_bytes],
        [best.seconds(model)],
        color="#1f4e9c",
        zorder=3,
        s=60,
        label="optimal for this budget",
    )
    for marker, plan in zip("osD^v<>PX*", plans, strict=False):
        axes.scatter(
            [plan.stored_bytes],
            [plan.seconds(model)],
            marker=marker,
            s=45,
            zorder=2,
            label=plan.strategy,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, unit in ((axes.xaxis, "B"), (axes.yaxis, "s")):
        axis.set_major_formatter(EngFormatter(unit=unit))
        axis.set_minor_formatter(EngFormatter(unit=unit))
    axes.tick_params(which="both", labelsize="small")
    axes.tick_params(axis="x", which="both", labelrotation=30)
    axes.set_xlabel("bytes of keys")
    axes.set_ylabel("predicted time of all key switches, one thread")
    axes.set_title(planner.program.name)
    axes.grid(True, which="both", alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False)
    with new_file(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix[1:])
    terminal.note(f"memory against time: {path}")
