"""Time and bytes of a round, as bars."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np
from harness.pages.plot import new_figure

STAGES = (
    ("client_cpu_s", "encryption on a client, CPU s"),
    ("server_cpu_s", "aggregation, CPU s"),
    ("open_cpu_s", "decryption, CPU s"),
    ("update_bytes", "bytes of an update"),
)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A panel for every model and stage: settings side by side, ways as colours; hatched bars are
    extrapolated."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))
    figure = new_figure(4.2 * len(STAGES), 3.6 * len(models))
    axes = figure.subplots(len(models), len(STAGES), squeeze=False)
    for line, model in zip(axes, models, strict=True):
        own = [row for row in rows if row["model"] == model]
        settings = list(dict.fromkeys((row["partition"], row["clients"]) for row in own))
        for axis, (stage, title) in zip(line, STAGES, strict=True):
            width = 0.8 / len(ways)
            for number, way in enumerate(ways):
                rows_of_setting = [
                    [row for row in own if (row["partition"], row["clients"]) == s and row["way"] == way]
                    for s in settings
                ]
                heights = [
                    statistics.median(row[stage] for row in runs) if runs else 0 for runs in rows_of_setting
                ]
                places = np.arange(len(settings)) + (number - (len(ways) - 1) / 2) * width
                hatch = "//" if any(row["extrapolated"] for runs in rows_of_setting for row in runs) else ""
                axis.bar(places, heights, width, label=way, hatch=hatch)
            axis.set_yscale("log")
            axis.set_xticks(range(len(settings)), [f"{kind}, {clients}" for kind, clients in settings])
            axis.set_title(f"{model}: {title}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=100)
