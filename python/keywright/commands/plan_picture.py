"""Pictures of plans: memory against time, how rotations are served, which keys are in memory when."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keywright import plan as planning
from keywright._terminal import Terminal
from keywright.plan.key_plan import tree_seconds
from keywright.plan.prediction import predict_plan

from .common import new_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SERVED = {"direct": "#1f4e9c", "hoisted": "#5b9bd5", "several hops": "#d08030"}
NO_PICTURE = "no picture without matplotlib; install it with: pip install 'keywright[plot]'"


def draw_frontier(
    planner: planning.JointPlanner,
    plans: Sequence[planning.KeyPlan],
    best: planning.KeyPlan,
    path: Path,
    terminal: Terminal,
) -> None:
    """Draw bytes of keys across and predicted time up, both logarithmic.

    Without matplotlib a note says so and nothing is drawn.
    """
    made = _figure(terminal, 5)
    if made is None:
        return
    from matplotlib.ticker import EngFormatter

    figure, axes = made
    model = planner.model
    points = planner.frontier()
    axes.step(
        [stored for stored, _ in points],
        [seconds for _, seconds in points],
        where="post",
        color="#1f4e9c",
        label="frontier found",
    )
    axes.scatter(
        [best.stored_bytes],
        [predict_plan(best, model).seconds],
        color="#1f4e9c",
        zorder=3,
        s=60,
        label="optimal for this budget",
    )
    for marker, plan in zip("osD^v<>PX*", plans, strict=False):
        axes.scatter(
            [plan.stored_bytes],
            [predict_plan(plan, model).seconds],
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
    axes.set_ylabel("predicted time, one thread")
    axes.set_title(best.program.name)
    axes.grid(True, which="both", alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False)
    _save(figure, path)
    terminal.note(f"memory against time: {path}")


def served(plan: planning.KeyPlan) -> Counter[tuple[int, int, str]]:
    """How often each rotation step at each level is made directly, with a decomposition that it shares, or by
    several hops."""
    out: Counter[tuple[int, int, str]] = Counter()
    for group, tree in zip(plan.program.groups, plan.hops, strict=True):
        depth = {planning.Automorphism(0): 0}
        shapes = Counter((hop.parent, hop.key.shape) for hop in tree)
        hops = {hop.child: hop for hop in tree}
        for hop in tree:
            depth[hop.child] = depth[hop.parent] + 1
        for target in group.targets:
            hop = hops[target]
            alone = shapes[hop.parent, hop.key.shape] == 1
            how = "several hops" if depth[target] > 1 else "direct" if alone else "hoisted"
            out[target.step, group.level, how] += group.count
    return out


def draw_rotations(plan: planning.KeyPlan, path: Path, terminal: Terminal) -> None:
    """Draw every rotation at its level, by how it is made and larger the more often, and the keys."""
    made = _figure(terminal, 4.5)
    if made is None:
        return
    figure, axes = made
    uses = served(plan)
    keys = [key for key in plan.keys if key.automorphism is not None]
    axes.vlines(
        [key.automorphism.step if key.automorphism else 0 for key in keys],
        -0.5,
        [key.shape.level for key in keys],
        color="#c8d4e6",
        linewidth=1.5,
        label="key: level it reaches",
    )
    for how, colour in SERVED.items():
        places = [(step, level, count) for (step, level, kind), count in sorted(uses.items()) if kind == how]
        if places:
            axes.scatter(
                [step for step, _, _ in places],
                [level for _, level, _ in places],
                s=[14 * min(count, 20) for _, _, count in places],
                color=colour,
                label=how,
                zorder=2,
            )
    axes.set_xscale("symlog", base=2)
    axes.set_xlim(-0.2, 1.25 * plan.program.automorphisms.slots)
    axes.set_ylim(-0.5, plan.program.chain.max_level + 0.5)
    axes.set_xlabel("rotation steps")
    axes.set_ylabel("level")
    axes.set_title(
        f"{plan.program.name}, {plan.strategy}: {len(plan.keys)} keys, {plan.switches:,} rotations"
    )
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    _save(figure, path)
    terminal.note(f"rotation table: {path}")


def residency(plan: planning.KeyPlan, model: planning.CostModel) -> dict[planning.PlannedKey, list[float]]:
    """For each key of an automorphism the predicted times of its uses since the start of the program; without
    the time of relinearisations, whose places a program does not say."""
    out: dict[planning.PlannedKey, list[float]] = {}
    now = 0.0
    for group, tree in zip(plan.program.groups, plan.hops, strict=True):
        for hop in tree:
            out.setdefault(hop.key, []).append(now)
        now += group.count * tree_seconds(model, group.level, tree, group.form)
    return out


def draw_residency(plan: planning.KeyPlan, model: planning.CostModel, path: Path, terminal: Terminal) -> None:
    """Draw each key from its first to its last use over program time, and the bytes between first and last
    uses: what is in memory if every key is read once and dropped when it is over."""
    made = _figure(terminal, 6, rows=2)
    if made is None:
        return
    from matplotlib.ticker import EngFormatter

    figure, axes = made
    below = figure.axes[1]
    uses = residency(plan, model)
    order = sorted(uses, key=lambda key: (uses[key][0], uses[key][-1]))
    for row, key in enumerate(order):
        axes.hlines(row, uses[key][0], uses[key][-1], color="#c8d4e6", linewidth=2)
        axes.scatter(uses[key], [row] * len(uses[key]), s=6, color="#1f4e9c", zorder=2)
    axes.set_ylabel("keys, by first use")
    times = sorted({time for found in uses.values() for time in found})
    held = [
        sum(key.shape.stored_bytes for key in order if uses[key][0] <= time <= uses[key][-1])
        for time in times
    ]
    below.step(times, held, where="post", color="#1f4e9c", label="between first and last use")
    total = sum(key.shape.stored_bytes for key in order)
    below.axhline(total, color="#b03030", linestyle="--", label="all rotation keys")
    below.set_ylim(bottom=0)
    below.yaxis.set_major_formatter(EngFormatter(unit="B"))
    below.set_xlabel("predicted seconds of rotations since the start")
    axes.set_title(f"{plan.program.name}, {plan.strategy}")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    _save(figure, path)
    terminal.note(f"residency of keys: {path}")


def _figure(terminal: Terminal, height: float, rows: int = 1) -> "tuple[Figure, Axes] | None":
    """A figure and its first axes; None, and a note, without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        terminal.note(NO_PICTURE)
        return None
    figure = Figure(figsize=(8, height), layout="constrained")
    figure.subplots(rows, 1, sharex=rows > 1)
    return figure, figure.axes[0]


def _save(figure: "Figure", path: Path) -> None:
    with new_file(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix[1:])
