"""The table of bootstrapping presets, a row for each from the last record that has it.

`keywright bench bootstrap --preset NAME --vectors 100 --threads 1 --json` prints a line of a record.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from keywright import BootstrapperPlan

from studies.ledger.records import ROOT, NoFigure

RECORDS = (
    "2026-11-23-presets",
    "2026-11-27-presets",
    "2026-11-28-presets",
    "2026-11-29-presets",
    "2026-11-29-preset-12-levels",
)
COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "preset": lambda of: f"`{of['preset']}`",
    "values": lambda of: f"2^{math.log2(of['slots']):.0f} {of['values']}",
    "levels left": lambda of: f"{of['levels_left']} of {of['log_scale']:.0f} bits",
    "seconds": lambda of: f"{of['median_s']:.1f}",
    "worst: predicted, seen": lambda of: f"{of['predicted_worst_bits']:.1f}, {of['worst_bits']:.1f}",
    "keys": lambda of: str(of["keys"]),
    "key bytes": lambda of: f"{of['key_bytes'] / 1e9:.2f} GB",
    "peak memory": lambda of: f"{of['peak_rss_bytes'] / 1e9:.1f} GB",
    "matrices": lambda of: f"{of['matrix_bytes'] / 1e9:.2f} GB",
    "mean: predicted, seen": lambda of: f"{of['predicted_mean_bits']:.1f}, {of['mean_bits']:.1f}",
    "result, worst": lambda of: f"{of['result_worst_bits']:.1f}",
    "bound": lambda of: f"{of['bound_bits']:.1f}",
    "fails": lambda of: "never" if of["log2_failure"] is None else f"2^{of['log2_failure']:.0f}",
    "vectors": lambda of: str(of["vectors"]),
    "K, degree, r, arcsine": lambda of: ", ".join(map(str, of["approximation"])),
}
"""Those by which a preset is chosen come first: a screen shows nine."""


def table() -> str:
    """Return the table, a row for each preset, in the order of their first record.

    Raises:
        NoFigure: the result of a record was not right.
    """
    paths = (ROOT / "benchmarks" / "record" / name / "one_thread.jsonl" for name in RECORDS)
    lines = (line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    rows = {row["preset"]: row for row in map(json.loads, lines)}
    if wrong := [name for name, row in rows.items() if not row["checked"]]:
        raise NoFigure(f"results were not right: {', '.join(wrong)}")
    # A wide table scrolls; its cells need not be narrow.
    cells = [
        [cell(rows[name]).replace(" ", "\N{NO-BREAK SPACE}") for cell in COLUMNS.values()]
        for name in rows
        if name in BootstrapperPlan.presets()
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in ([*COLUMNS], ["---"] * len(COLUMNS), *cells))
