"""Figures 7 and 8 of ARK, the paper's bars and the ones computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.pages.plot import new_figure, save_svg

from studies.network_keys.ark import FIGURE_7, Planned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = ("#c9ced6", "#8d96a3", "#e6d3b8", "#b99a6b")
OURS = ("#5b9bd5", "#1f4e9c", "#2e8b57")
TITLE = "ARK (Chan et al. 2024), figure {}, redrawn: the paper's times are measured, those here are predicted"
Shares = tuple[float, float, float]


def draw_figure_7(planned: Mapping[tuple[str, str], Planned], path: Path) -> None:
    """Draw keys, bytes and time of one layer, by encoding and whose keys they are."""
    figure = new_figure(12.5, 4.5)
    figure.suptitle(TITLE.format(7))
    panels = figure.subplots(1, 3)
    names = list(planned)
    printed = {(layer.encoding, layer.whose): layer for layer in FIGURE_7}
    own = {encoding: (encoding, "ConvFHE") for encoding, _ in names}
    for axes, title, attribute in (
        (panels[0], "rotation keys", "keys"),
        (panels[1], "GB of keys", "gigabytes"),
        (panels[2], "time relative to ConvFHE's keys", "milliseconds"),
    ):
        for place, name in enumerate(names):
            base = own[name[0]] if attribute == "milliseconds" else None
            shift = 0.0
            if name in printed:
                _bar(axes, place - 0.2, _value(printed, name, attribute, base), PAPER[1])
                shift = 0.2
            colour = OURS[2] if name[1] == "optimal" else OURS[0]
            _bar(axes, place + shift, _value(planned, name, attribute, base), colour)
        axes.set_title(title)
        axes.set_xticks(range(len(names)), [whose for _, whose in names], rotation=45, ha="right")
        first = next(place for place, (encoding, _) in enumerate(names) if encoding == "coefficients")
        axes.axvline(first - 0.5, color="#999999", linewidth=0.8, linestyle=":")
        axes.margins(y=0.18)
        for at, word in ((0, "slots"), (first, "coefficients")):
            axes.text(at - 0.42, 0.97, word, transform=axes.get_xaxis_transform(), va="top", fontsize="small")
    _legend(figure, (("paper", PAPER[1]), ("here", OURS[0]), ("optimal", OURS[2])))
    save_svg(figure, path)


def _value(
    entries: Mapping[tuple[str, str], object],
    name: tuple[str, str],
    attribute: str,
    base: tuple[str, str] | None,
) -> float:
    """An entry's number, as a share of another entry's if there is one."""
    value = float(getattr(entries[name], attribute))
    return value if base is None else value / float(getattr(entries[base], attribute))


def draw_figure_8(
    paper: Mapping[tuple[str, str], Sequence[Shares]], ours: Mapping[str, Mapping[str, Shares]], path: Path
) -> None:
    """Draw memory saved, time added and key generation saved, in percent of ConvFHE's, by setting."""
    figure = new_figure(11, 9.3)
    figure.suptitle(TITLE.format(8))
    bars = [
        (f"paper, {short}, {case}", colour, name, index)
        for (name, short, index, case), colour in zip(
            (
                ("ark-memory", "MP", 0, "CRot1"),
                ("ark-memory", "MP", 1, "CRot2"),
                ("ark-time", "TP", 0, "CRot1"),
                ("ark-time", "TP", 1, "CRot2"),
            ),
            PAPER,
            strict=True,
        )
    ]
    width = 0.9 / (len(bars) + 3)
    for part, (axes, title) in enumerate(
        zip(
            figure.subplots(3, 1, sharex=True),
            ("a: memory of keys saved, %", "b: time added, %", "c: key generation saved, %"),
            strict=True,
        )
    ):
        for place, (setting, shares_of_setting) in enumerate(ours.items()):
            values = [(paper[setting, name][index][part], colour) for _, colour, name, index in bars]
            for name, colour in zip(("ark-memory", "ark-time", "optimal"), OURS, strict=True):
                values.append((shares_of_setting[name][part] if name in shares_of_setting else 0.0, colour))
            for index, (value, colour) in enumerate(values):
                _bar(axes, place + (index - (len(values) - 1) / 2) * width, value, colour, width, small=True)
        axes.set_title(title, loc="left")
        axes.axhline(0, color="black", linewidth=0.6)
        axes.set_xticks(range(len(ours)), list(ours))
        axes.margins(y=0.15)
    named = [(label, colour) for label, colour, _, _ in bars]
    here = zip(("here, ark-memory", "here, ark-time", "here, optimal in 1x"), OURS, strict=True)
    _legend(figure, [*named, *here])
    save_svg(figure, path)


def _bar(
    axes: Axes, place: float, value: float, colour: str, width: float = 0.38, small: bool = False
) -> None:
    axes.bar(place, value, width, color=colour)
    text = f"{round(value)}" if small or value == round(value) else f"{value:.3g}"
    below = value < 0
    axes.annotate(
        text,
        (place, value),
        xytext=(0, -2 if below else 2),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=6,
    )


def _legend(figure: Figure, entries: Sequence[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=label) for label, colour in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False)
