"""Pictures, which need matplotlib; everything else does without."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of `width` by `height` inches, drawn without a screen.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure: the same bytes for the same figure, without a date, its words as text."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "keywright", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


@contextmanager
def or_say(what: str) -> Iterator[None]:
    """Draw what it encloses; say `what` on standard error where matplotlib is not installed."""
    try:
        yield
    except ImportError:
        print(f"{what}: matplotlib is not installed", file=sys.stderr)
