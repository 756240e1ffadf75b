"""Tables of a design's resources."""

import sys
from collections import Counter

from device import COLUMNS, Counts, Target, scaled
from hierarchy import Design, Kind

HEAD = """\
# Resources: yosys estimate

Made by `make hw-syn` with {version}, `synth_xilinx`, for UltraScale+ unless the heading names another
family. Nothing is placed or routed: clock frequency, routed area and power are unknown. Every kind of module
(a module with its parameters) is synthesised by itself and counted as often as the elaborated design holds
it, so nothing is optimised across modules. A BRAM is one of 36 Kbit; a LUT counts whatever its inputs; LUT
as memory are those that distributed memory takes. Adders, folds and products of tiles (`mod_add`,
`sparse_fold`, `tiled_mul`) are in the rows of what uses them.
"""


def label(kind: Kind) -> str:
    """What its row is called: kinds that differ in more than the width of a chain share one."""
    width = kind.parameters.get("Width", "")
    if kind.module == "bank_memory":
        return f"`{kind.module}`, {int(width) // 16} bits"
    if width in ("60", "51") and kind.module != "delay_line":
        return f"`{kind.module}`, {width} bits"
    return f"`{kind.module}`"


def row(cells: list[object], counts: dict[str, float] | Counts, columns: list[str], mark: str = "") -> str:
    """A line of a table."""
    values = [f"{mark}{counts.get(column, 0):,.10g}{mark}" for column in columns]
    return f"| {' | '.join([*map(str, cells), *values])} |"


def heading(cells: list[str], columns: list[str]) -> list[str]:
    """The first two lines of a table."""
    return [f"| {' | '.join([*cells, *columns])} |", f"|---|{'---:|' * (len(cells) - 1 + len(columns))}"]


class Page:
    """What a design needs, from what each of its kinds does, given by the kind's digest."""

    def __init__(self, target: Target, design: Design, kept: dict[str, Counts]) -> None:
        self.target, self.design = target, design
        self.own = {name: kept[design.digest(name)] for name, _, _ in design.walk({})}
        self.total: Counts = Counter()
        for name, _, times in design.walk({}):
            self.total += scaled(self.own[name], times)

    def _inclusive(self, name: str) -> Counts:
        """A kind with everything in it."""
        counts = Counter(self.own[name])
        for below, times in self.design.children(name).items():
            counts += scaled(self._inclusive(below), times)
        return counts

    def _kinds(self) -> list[str]:
        rows: dict[str, tuple[int, int, Counts]] = {}
        for name, _, times in self.design.walk({}):
            key = label(self.design.kinds[name])
            kinds, units, counts = rows.get(key, (0, 0, Counter()))
            rows[key] = (kinds + 1, units + times, counts + scaled(self.own[name], times))
        columns = list(COLUMNS)
        return [
            "Every kind of module without what is in other rows, over all its units:", "",
            *heading(["module", "kinds", "units"], columns),
            *(row([key, *rows[key][:2]], rows[key][2], columns) for key in sorted(rows)),
            row(["**sum**", "", ""], self.total, columns, "**"),
        ]  # fmt: skip

    def _groups(self) -> dict[str, Counts]:
        names = {module: group.name for group in self.target.group for module in group.modules}
        counts: dict[str, Counts] = {group.name: Counter() for group in self.target.group}
        rest = self.target.group[-1].name
        for name, group, times in self.design.walk(names):
            counts[group or rest] += scaled(self.own[name], times)
        return counts

    def _blocks(self) -> list[str]:
        lines = {}
        for name in self.own:
            if self.design.kinds[name].module in self.target.blocks:
                key = label(self.design.kinds[name])
                lines[key] = row([key], self._inclusive(name), list(COLUMNS))
        if not lines:
            return []
        return [
            "", "Blocks with all that is in them, one of each:", "",
            *heading(["block"], list(COLUMNS)),
            *(lines[key] for key in sorted(lines)),
        ]  # fmt: skip

    def _comparison(self, groups: dict[str, Counts]) -> list[str]:
        columns = [column for column in COLUMNS if column != "LUT as memory"]
        lines = [
            "Beside the paper's breakdown. A LUT here is one of logic or of memory:", "",
            *heading(["part", "whose"], columns),
        ]  # fmt: skip
        ours, theirs = Counter[str](), Counter[str]()
        for comparison in self.target.compare:
            counts: Counts = Counter()
            for group in comparison.groups:
                counts += groups[group]
            counts["LUT"] += counts["LUT as memory"]
            ours += counts
            theirs += Counter(comparison.paper)
            lines += [
                row([comparison.name, "paper"], comparison.paper, columns),
                row(["", "here"], counts, columns),
            ]
        return [*lines, row(["**sum**", "paper"], theirs, columns), row(["", "here"], ours, columns)]

    def lines(self) -> list[str]:
        """All tables; ends the program if a limit is exceeded."""
        groups = self._groups()
        lines = ["", f"## {self.target.name}", "", *self._kinds(), "", "By what it does:", ""]
        lines += heading(["part"], list(COLUMNS))
        lines += [row([name], counts, list(COLUMNS)) for name, counts in groups.items()]
        lines += [*self._blocks(), ""]
        if self.target.compare:
            lines += [*self._comparison(groups), ""]
        lines.append(f"The paper's: {self.target.paper}.")
        if self.target.limits:
            lines += ["", "| | paper, at most | here |", "|---|---:|---:|"]
        reached = {
            **self.total,
            "LUT, logic and memory": self.total["LUT"] + self.total["LUT as memory"],
            "cycles x DSP": self.target.cycles * self.total["DSP"],
        }
        for what, limit in self.target.limits.items():
            if reached[what] > limit:
                sys.exit(f"{self.target.name}: {reached[what]:,g} {what} are above the limit of {limit:,g}")
            lines.append(f"| {what} | {limit:,.10g} | {reached[what]:,.10g} |")
        return lines
