"""Pictures of plans: memory against time, how rotations are served, when keys are in memory."""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from keywright import plan as planning
from keywright._files import new_file, require_place
from keywright._units import format_bytes, format_seconds, quantity
from keywright.commands.helpers.errors import CommandError
from keywright.commands.terminal import Terminal
from keywright.plan.ring import Automorphism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Colours of Okabe and Ito, which the colour-blind can distinguish; markers differ as well.
BLUE, SKY, VERMILION, PALE, GREY = "#0072B2", "#56B4E9", "#D55E00", "#c8d4e6", "#555555"
SERVED = {"direct": (BLUE, "o"), "hoisted": (SKY, "s"), "several hops": (VERMILION, "^")}
MARKERS = ("o", "s", "D", "x", "v", "<", ">", "h", "d", "P")
COLOURS = (
    "#000000", "#E69F00", "#009E73", "#000000", "#CC79A7", "#D55E00", "#56B4E9", "#D55E00", "#56B4E9",
    "#0072B2",
)  # fmt: skip
"""Colours of the published strategies, whose points can coincide: all but the last are drawn as outlines."""
FORMATS = (".png", ".svg")
NO_PICTURE = "no picture without matplotlib; install it with: pip install 'keywright[plot]'"


def require_picture(path: Path) -> None:
    """Check early that a picture can be written.

    Raises:
        CommandError: its name ends in neither .png nor .svg, or matplotlib is not installed.
        FolderError: as for `require_place`.
    """
    if path.suffix not in FORMATS:
        raise CommandError(f"{path} is not a picture's name; end it in {' or '.join(FORMATS)}")
    require_place(path)
    if find_spec("matplotlib") is None:
        raise CommandError(NO_PICTURE)


def draw_frontier(
    planner: planning.ProblemPlanner,
    plans: Sequence[planning.KeyPlan],
    best: planning.KeyPlan,
    budget: planning.Budget,
    path: Path,
    terminal: Terminal,
) -> None:
    """Draw bytes of keys across, logarithmic, and predicted time up, with the budget, and published
    strategies as points.
    """
    figure, axes = _figure(5)
    model = planner.model
    place = best.stored_bytes, planning.predict_plan(best, model).seconds
    # An exact solution can be better than the points of the search.
    points = [*planner.frontier(), place]
    kept = [point for point in points if not any(_beats(other, point) for other in points)]
    stored, seconds = zip(*sorted(set(kept)), strict=True)
    axes.step(stored, seconds, where="post", color=BLUE, label="frontier found")
    axes.scatter(*place, color=BLUE, zorder=3, s=70, label="optimal for this budget")
    for marker, colour, plan in zip(MARKERS, COLOURS, plans, strict=True):
        filled = colour if marker in "xP" else "none"
        axes.scatter(
            plan.stored_bytes,
            planning.predict_plan(plan, model).seconds,
            marker=marker,
            s=36 if marker == "x" else 60,
            linewidths=1.6,
            zorder=4,
            label=plan.strategy,
            facecolors=filled,
            edgecolors=None if marker == "x" else colour,
        )
    if budget.stored_bytes is None:
        axes.axhline(budget.seconds or 0.0, color=GREY, linestyle="--", linewidth=1, label="budget of time")
    else:
        axes.axvline(budget.stored_bytes, color=GREY, linestyle="--", linewidth=1, label="budget of bytes")
    _logarithmic_bytes(axes)
    _times(axes.yaxis, axes.get_ylim()[1])
    axes.set_xlabel("bytes of keys")
    axes.set_ylabel("predicted time, one thread")
    axes.set_title(f"{best.workload.name}: keys against time")
    axes.grid(True, alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False)
    _save(figure, path)
    terminal.note(f"memory against time: {path}")


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _times(axis: "Axis", largest: float) -> None:
    """Set ticks at times; long times have ticks at whole minutes."""
    from matplotlib.ticker import MultipleLocator

    if largest >= 180:
        minutes = next(
            m for m in (1, 2, 5, 10, 20, 30, *(60 * 2**k for k in range(40))) if largest <= 480 * m
        )
        axis.set_major_locator(MultipleLocator(60 * minutes))
        axis.set_major_formatter(lambda value, _: f"{value / 60:,.0f} min")
    else:
        # Round away the last bits of a multiple of a step.
        axis.set_major_formatter(lambda value, _: format_seconds(float(f"{value:.6g}")) if value else "0 s")


def _logarithmic_bytes(axes: "Axes") -> None:
    """Set ticks at round decimal numbers, more of them on a short axis."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    parts = (1.0, 2.0, 5.0) if high > 8 * low else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    axes.xaxis.set_major_locator(LogLocator(subs=parts, numticks=9))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: format_bytes(value))


def served(plan: planning.KeyPlan) -> Counter[tuple[int, int, str]]:
    """Count how often each rotation step at each level is made directly, with a shared decomposition, or by
    several hops."""
    out: Counter[tuple[int, int, str]] = Counter()
    for group, tree in zip(plan.workload.groups, plan.hops, strict=True):
        depth = {Automorphism(0): 0}
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
    """Draw every rotation at its level, marked by how it is made and larger the more often, and the reach of
    the keys. Steps to the right are negative."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(4.5)
    slots = plan.workload.automorphisms.slots
    uses = served(plan)
    keys = [key for key in plan.keys if key.automorphism is not None]
    steps = [_signed(key.automorphism.step if key.automorphism else 0, slots) for key in keys]
    levels = [key.shape.level for key in keys]
    axes.vlines(steps, -1, levels, color=PALE, linewidth=1.5, label="key: up to its highest level")
    for how, (colour, marker) in SERVED.items():
        places = [(step, level, count) for (step, level, kind), count in sorted(uses.items()) if kind == how]
        if places:
            axes.scatter(
                [_signed(step, slots) for step, _, _ in places],
                [level for _, level, _ in places],
                s=[12 * min(count, 12) for _, _, count in places],
                color=colour,
                marker=marker,
                edgecolors="white",
                linewidths=0.4,
                label=how,
                zorder=2,
            )
    results = [*steps, *(_signed(step, slots) for step, _, _ in uses)]
    _powers_across(axes, min(results, default=0), max(results, default=1))
    axes.set_ylim(-1, plan.workload.chain.max_level + 1)
    axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("rotation steps (0: the conjugation); larger marks: more often")
    axes.set_ylabel("level")
    others = len(plan.keys) - len(keys)
    axes.set_title(
        f"{plan.workload.name}: {quantity(len(plan.keys), 'key')}, {len(keys)} for "
        f"{quantity(plan.switches, 'rotation')}" + (f" and {others} for products" if others else "")
    )
    legend = figure.legend(loc="outside lower center", ncols=4, frameon=False)
    for handle in legend.legend_handles[1:]:
        handle.set_sizes([40])  # type: ignore[union-attr]
    _save(figure, path)
    terminal.note(f"rotation table: {path}")


def _signed(step: int, slots: int) -> int:
    """Return a left rotation as a signed step: a shorter right rotation is negative."""
    return step if 2 * step <= slots else step - slots


def _powers_across(axes: "Axes", low: int, high: int) -> None:
    """Set ticks at powers of two of both signs, about nine of them."""
    axes.set_xscale("symlog", base=2, linthresh=1)
    left, right = max(0, -low).bit_length(), max(1, high).bit_length()
    apart = max(1, -(-(left + right) // 10))
    powers = [2**k for k in range(0, right + 1, apart)]
    ticks = [*(-(2**k) for k in range(0, left + 1, apart)), 0, *powers]
    axes.set_xticks(sorted(ticks), [f"{tick:,}" for tick in sorted(ticks)])
    axes.minorticks_off()
    axes.set_xlim(-1.3 * 2**left if left else -0.2, 1.3 * max(1, high))


def draw_residency(plan: planning.KeyPlan, model: planning.CostModel, path: Path, terminal: Terminal) -> None:
    """Draw each key from its first to its last use over program time, and the bytes of keys between first and
    last use: the memory if every key is read once and evicted after its last use."""
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(6, rows=2)
    below = figure.axes[1]
    uses = plan.residency(model)
    order = sorted(uses, key=lambda key: (uses[key][0], uses[key][-1]))
    for row, key in enumerate(order, 1):
        axes.hlines(row, uses[key][0], uses[key][-1], color=PALE, linewidth=2)
        axes.scatter(uses[key], [row] * len(uses[key]), s=6, color=BLUE, zorder=2)
    axes.set_ylabel("keys, by first use")
    axes.yaxis.set_major_locator(MaxNLocator(8, integer=True))
    times = sorted({time for result in uses.values() for time in result})
    held = [
        sum(key.shape.stored_bytes for key in order if uses[key][0] <= time <= uses[key][-1])
        for time in times
    ]
    below.step(times, held, where="post", color=BLUE, label="between first and last use")
    total = sum(key.shape.stored_bytes for key in order)
    below.axhline(total, color=VERMILION, linestyle="--", label="all rotation keys")
    below.set_ylim(bottom=0)
    below.yaxis.set_major_locator(MaxNLocator(4))
    below.yaxis.set_major_formatter(lambda value, _: format_bytes(value))
    _times(below.xaxis, times[-1] if times else 0.0)
    below.set_ylabel("bytes of keys")
    below.set_xlabel("predicted time of rotations since the start")
    axes.set_title(f"{plan.workload.name}, {plan.strategy}: when each key is used")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    _save(figure, path)
    terminal.note(f"residency of keys: {path}")


def _figure(height: float, rows: int = 1) -> "tuple[Figure, Axes]":
    """Return a figure and its first axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height), layout="constrained")
    figure.subplots(rows, 1, sharex=rows > 1)
    return figure, figure.axes[0]


def _save(figure: "Figure", path: Path) -> None:
    """Save a picture; the same plan gives the same bytes."""
    from matplotlib import rc_context

    with new_file(path) as temporary, rc_context({"svg.hashsalt": "keywright"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(temporary, dpi=150, format=path.suffix[1:], metadata=metadata)
