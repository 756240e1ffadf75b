"""Figures 10 and 11 of KDS with the runs of this study: `python -m studies.executed_keys.picture`.

A bar is a key set: above, processor seconds of linear layers, bootstraps and the rest; below, bytes of its
keys by the paper's formula. Runs are those of the records that the ledger names.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.pages.plot import new_figure, save_svg

from studies.ledger.key_sets import SETS
from studies.ledger.records import ROOT, Record, records, value_of

PAGE = ROOT / "docs" / "reproduction" / "kds-figures-10-11.svg"
PANELS = {
    "executed_gru": "GRU + MLP",
    "executed_relu": "ResNet-20, ReLU",
    "executed_aespa": "ResNet-20, AESPA",
    "executed_squeeze_relu": "SqueezeNet, ReLU",
    "executed_squeeze_square": "SqueezeNet, squares",
}
"""Records by the ledger's names."""
PARTS = {"linear": "#1f4e9c", "bootstrap": "#5b9bd5", "rest": "#c9ced6"}
LABELS = {"linear": "linear layers", "bootstrap": "bootstraps", "rest": "the rest"}
BYTES = "#b99a6b"


@dataclass(frozen=True)
class Bar:
    """Medians over the runs of a key set: processor seconds of the parts, and of all; GB by the formula."""

    parts: tuple[float, ...]
    seconds: float
    gigabytes: float


def bars(record: Record) -> dict[str, Bar]:
    """The bars of a network by key set, in the order of `SETS`; of the sets that the record has."""
    ran = {row["set"] for row in record.lines}

    def median(name: str, column: str) -> float:
        median = [value_of(row, column) for row in record.select(f"set: {name}")]
        return statistics.median(value for value in median if isinstance(value, float))

    return {
        name: Bar(
            tuple(median(name, f"processor.{part}") for part in PARTS),
            median(name, "processor_seconds"),
            median(name, "formula_bytes") / 1e9,
        )
        for name in SETS
        if name in ran
    }


def draw(panels: Mapping[str, Mapping[str, Bar]], path: Path) -> None:
    """Write a column for each network, times above bytes.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(2.7 * len(panels), 7)
    figure.suptitle("KDS (Joo et al. 2025), figures 10 and 11, executed here on one thread")
    for (above, below), (title, panel) in zip(
        figure.subplots(2, len(panels), squeeze=False).T, panels.items(), strict=True
    ):
        places = [place for place, name in enumerate(SETS) if name in panel]
        bottom = [0.0] * len(panel)
        for part, (name, colour) in enumerate(PARTS.items()):
            heights = [bar.parts[part] for bar in panel.values()]
            above.bar(places, heights, 0.8, bottom=bottom, color=colour, label=LABELS[name])
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        below.bar(places, [bar.gigabytes for bar in panel.values()], 0.8, color=BYTES, label="bytes of keys")
        for place, top, bar in zip(places, bottom, panel.values(), strict=True):
            for axes, height, text in (
                (above, top, f"{bar.seconds:.1f}"),
                (below, bar.gigabytes, f"{bar.gigabytes:.1f}"),
            ):
                axes.annotate(text, (place, height), ha="center", va="bottom", fontsize=6.5)
        above.set_title(title, fontsize="medium")
        above.set_xticks([])
        below.set_xticks(range(len(SETS)), list(SETS.values()), rotation=60, ha="right", fontsize="small")
        for axes in (above, below):
            axes.margins(y=0.12)
    times, sizes = figure.axes[0], figure.axes[len(panels)]
    times.set_ylabel("processor seconds")
    sizes.set_ylabel("GB, the paper's formula")
    handles = [bars for axes in (times, sizes) for bars in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    save_svg(figure, path)


def panels() -> dict[str, dict[str, Bar]]:
    """Every network of the ledger's records, by its title."""
    listed = records()
    return {title: bars(listed[name]) for name, title in PANELS.items()}


def main() -> int:
    """Write the picture."""
    draw(panels(), PAGE)
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
