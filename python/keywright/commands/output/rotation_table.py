"""A picture of the keys of a program: rotation steps across, levels up."""

from collections import Counter
from pathlib import Path

from keywright.commands.helpers.errors import CommandError
from keywright.commands.terminal import Terminal
from keywright.model import Model
from keywright.model.folder.files import new_file, require_place

FORMATS = (".png", ".svg")


def require_picture(path: Path) -> None:
    """Check early that a picture can be written.

    Raises:
        CommandError: its name ends in neither .png nor .svg.
        FolderError: as for `require_place`.
    """
    if path.suffix not in FORMATS:
        raise CommandError(f"{path} is not a picture's name; end it in {' or '.join(FORMATS)}")
    require_place(path)


def draw(compiled: Model, path: Path, terminal: Terminal) -> None:
    """Draw every rotation of a program at its level, larger the more often it is used, and the reach of the
    keys.

    Without matplotlib this prints a note and draws nothing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        terminal.note("no picture without matplotlib; install it with: pip install 'keywright[plot]'")
        return
    program, parameters = compiled.program, compiled.parameters
    uses: Counter[tuple[int, int]] = Counter()
    for switch in program.key_switches:
        if switch.kind == "rotation":
            uses[switch.step, switch.level] += switch.count
    keys = [(key.step, key.level) for key in program.required_keys if key.kind == "rotation"]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    steps, levels = zip(*keys, strict=True)
    axes.vlines(steps, -0.5, levels, color="#c8d4e6", linewidth=1.5, label="key: up to its highest level")
    places = list(uses)
    axes.scatter(
        [step for step, _ in places],
        [level for _, level in places],
        s=[18 * uses[place] for place in places],
        color="#1f4e9c",
        label="key switch: larger if repeated",
        zorder=2,
    )
    axes.axhline(parameters.max_level, color="#b03030", linestyle="--", label="top level")
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.8, 1.25 * program.slots)
    axes.set_xlabel("rotation steps")
    axes.set_ylabel("level")
    axes.set_ylim(-0.5, parameters.max_level + 0.5)
    axes.set_title(f"{len(keys)} rotation keys, {sum(uses.values())} rotations")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    with new_file(path) as temporary:
        figure.savefig(temporary, dpi=150)
    terminal.note(f"rotation table: {path}")
