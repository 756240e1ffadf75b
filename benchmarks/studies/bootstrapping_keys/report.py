"""Tables of a record, in Markdown: the paper's figures compared with ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from harness.pages.table import MISSING, markdown

from studies.bootstrapping_keys import paper
from studies.bootstrapping_keys.cases import Alpha, Case, static
from studies.bootstrapping_keys.record import Result

Results = dict[Case, Result]
ABSENT = "Not in this record."
DYNAMIC = ("dynamic", "dynamic_dropped")
PROCESSOR = "processor_seconds"
CLOCKS = {PROCESSOR: "", "seconds": ", by wall time"}
"""The clock of the processor, and the clock on the wall, with what a row says about each."""


class Tables:
    """The tables for which a record is sufficient."""

    def __init__(self, results: Results, log_n: int) -> None:
        self.results, self.log_n = results, log_n

    def timed(self, depth: int, special: Alpha, alpha: Alpha) -> Result | None:
        """A measured bootstrap; static digits are not coalesced."""
        case = Case(self.log_n, depth, special, alpha)
        if alpha not in DYNAMIC:
            case = static(self.log_n, depth, special, alpha)
        return self.results.get(case)

    def planned(self, depth: int, special: Alpha, alpha: Alpha, levels: str) -> Result | None:
        """What a plan tells."""
        return self.results.get(Case(self.log_n, depth, special, alpha, key_levels=levels, timed=False))

    def depths(self) -> list[int]:
        """Depths at which anything was measured, from the largest."""
        return sorted({case.depth for case in self.results if case.timed}, reverse=True)

    def four(self, depth: int) -> list[Result | None]:
        """alpha = 1, the maximum, dynamic, dynamic with dropped primes."""
        kinds: list[tuple[Alpha, Alpha]]
        kinds = [(1, 1), ("most", "maximum"), ("most", "dynamic"), ("most", "dynamic_dropped")]
        return [self.timed(depth, special, alpha) for special, alpha in kinds]

    def latency(self) -> list[str]:
        """Figures 4 and 8: a bootstrap against the depth."""
        rows = []
        for depth in self.depths():
            one, most, dynamic, dropped = self.four(depth)
            if one is None or dropped is None:
                continue
            cells = [seconds(result) for result in (one, most, dynamic, dropped)]
            alpha = MISSING if most is None else str(most.alpha)
            ratios = [ratio(slow, dropped, clock) for slow in (one, most) for clock in CLOCKS]
            rows.append([str(depth), cells[0], alpha, *cells[1:], *ratios])
        head = ["depth", "alpha = 1", "maximum", "its time", "dynamic", "with dropped primes"]
        return markdown([*head, "over alpha = 1", "by wall time", "over the maximum", "by wall time"], rows)

    def sweep(self) -> list[str]:
        """Figure 7: alpha, the depth that it leaves, time and bytes."""
        rows = []
        for depth in self.depths():
            fastest = self.timed(depth, "most", "maximum") or (
                self.timed(depth, 1, 1) if depth > 17 else None
            )
            if fastest is None:
                continue
            raw = fastest.raw
            sizes = [gigabytes(raw["formula_bytes"]), gigabytes(raw["key_bytes"])]
            rows.append(
                [str(fastest.alpha), str(depth), seconds(fastest), *sizes, f"{raw['worst_bits']:.1f}"]
            )
        rows.sort(key=lambda row: int(row[0]))
        return markdown(["alpha", "depth", "seconds", "GB, formula", "GB, stored", "worst bits"], rows)

    def stages(self) -> list[str]:
        """Figure 4: where the time goes at depth 16."""
        one, _, _, dropped = self.four(16)
        single = self.timed(16, 1, "dynamic_dropped")
        coalesced = self.results.get(Case(self.log_n, 16, 1, 1))
        columns = [
            result for result in (one, coalesced, single, dropped) if result and result.stage("eval_mod")
        ]
        if len(columns) < 2:
            return []
        names = ["slots_to_coeffs", "mod_raise", "coeffs_to_slots", "eval_mod"]
        rows = [[name, *(f"{result.stage(name):.2f}" for result in columns)] for name in names]
        rows.append(["all", *(seconds(result) for result in columns)])
        return markdown(["stage", *(title(result) for result in columns)], rows)

    def memory(self) -> list[str]:
        """Table 5: bytes of the rotation keys against the depth."""
        rows = []
        for depth, theirs in paper.TABLE_5.items():
            memory = [
                self.planned(depth, 1, 1, "top"),
                self.planned(depth, "most", "maximum", "top"),
                self.planned(depth, "most", "dynamic_dropped", "top"),
                self.planned(depth, "most", "dynamic_dropped", "needed"),
            ]
            if all(one is None for one in memory):
                continue
            printed = [theirs.alpha_1, theirs.maximum, theirs.dynamic, theirs.level_aware]
            ours = [MISSING if one is None else gigabytes(one.raw["formula_bytes"]) for one in memory]
            stored = MISSING if memory[3] is None else gigabytes(memory[3].raw["key_bytes"])
            alpha = MISSING if memory[1] is None else str(memory[1].alpha)
            pairs = [
                f"{MISSING if one is None else f'{one:.1f}'} / {other}"
                for one, other in zip(printed, ours, strict=True)
            ]
            rows.append([str(depth), pairs[0], alpha, *pairs[1:], stored])
        head = ["depth", "alpha = 1", "our maximum", "maximum", "dynamic", "dynamic, level-aware", "stored"]
        return markdown(head, rows)

    def consistency(self) -> list[str]:
        """Check table 5 for consistency: every figure as a number of keys of the highest level."""
        rows = []
        for depth, row in paper.TABLE_5.items():
            keys = paper.implied_keys(depth, row.alpha_1, 1)
            if row.maximum is None or row.dynamic is None:
                rows.append([str(depth), f"{keys:.2f}", *[MISSING] * 4])
                continue
            alphas = paper.alphas(depth)
            sizes = {alpha: keys * paper.key_bytes(depth, alpha) / paper.GB for alpha in alphas}
            # The largest set of as many keys that is not above the figure, which is rounded.
            fitting = {alpha: size for alpha, size in sizes.items() if size <= row.maximum + 0.0005}
            alpha = max(fitting, key=lambda alpha: fitting[alpha])
            maximum = f"{paper.implied_keys(depth, row.maximum, alpha):.2f} of alpha = {alpha}"
            total = f"{sum(sizes.values()):.3f}"
            rows.append(
                [
                    str(depth),
                    f"{keys:.2f}",
                    maximum,
                    ", ".join(map(str, alphas)),
                    f"{row.dynamic:.3f}",
                    total,
                ]
            )
        head = [
            "depth",
            "alpha = 1, keys",
            "maximum, keys",
            "possible alphas",
            "dynamic, GB",
            "a set for each",
        ]
        return markdown(head, rows)

    def findings(self) -> list[str]:
        """Compare each claim with the record."""
        rows = []
        fours = {depth: self.four(depth) for depth in self.depths()}
        for what, printed, slow, fast in (
            ("dynamic over alpha = 1, mean over depths", f"{paper.DYNAMIC_OVER_1:.2f}x", 0, 3),
            ("the same without dropped primes", MISSING, 0, 2),
            ("dynamic over the maximum, mean", f"{paper.DYNAMIC_OVER_MAXIMUM:.2f}x", 1, 3),
        ):
            pairs = [(four[slow], four[fast]) for four in fours.values()]
            for clock, of_clock in CLOCKS.items():
                each = [speeds(a, b, clock) for a, b in pairs if a and b]
                means = [statistics.mean(of_round) for of_round in zip(*each, strict=False)]
                rows.append([what + of_clock, printed, cell(means)])
        one = self.timed(16, 1, 1)
        for name, result in (
            ("largest key with one special prime", self.timed(16, 1, "dynamic_dropped")),
            ("", self.timed(16, "most", "dynamic_dropped")),
        ):
            if one is None or result is None:
                continue
            for what, stated in paper.DEPTH_16.items():
                ours = (one.stage(what), result.stage(what))
                where = f", {name}" if name else ""
                said, theirs = f"dynamic over alpha = 1 at depth 16, {what}{where}", f"{stated:.2f}x"
                if what == "all":
                    rows += [
                        [said + of_clock, theirs, ratio(one, result, clock)]
                        for clock, of_clock in CLOCKS.items()
                    ]
                else:
                    # The system's clock of a thread does not see a stage of a small ring.
                    rows.append(claim(said, theirs, [ours[0] / ours[1] if min(ours) > 0 else math.nan]))
        five = self.timed(9, "most", 5) or self.timed(14, "most", "maximum")
        if one and five:
            said = f"alpha = 5 (depth {five.case.depth}) over alpha = 1 (depth 16)"
            rows.append([said, f"{paper.ALPHA_5_OVER_1:.2f}x", ratio(one, five)])
        top, aware = self.planned(16, 1, 1, "top"), self.planned(16, "most", "dynamic_dropped", "needed")
        if top and aware:
            printed_row = paper.TABLE_5[16]
            printed_bytes = f"{printed_row.alpha_1:.1f} to {printed_row.level_aware:.1f} GB"
            shrunk = f"{gigabytes(top.raw['formula_bytes'])} to {gigabytes(aware.raw['formula_bytes'])} GB"
            stored = f"{gigabytes(aware.raw['key_bytes'])} GB stored"
            rows.append(["rotation keys at depth 16, by their formula", printed_bytes, f"{shrunk}; {stored}"])
        return markdown(["claim", "paper", "here"], rows)

    def everything(self) -> dict[str, list[str]]:
        """Return all tables by name; a note replaces those for which the record is not sufficient."""
        tables = {
            "findings": self.findings(),
            "latency": self.latency(),
            "stages": self.stages(),
            "sweep": self.sweep(),
            "memory": self.memory(),
            "consistency": self.consistency(),
        }
        return {name: lines if len(lines) > 2 else [ABSENT] for name, lines in tables.items()}


def title(result: Result) -> str:
    """What a column of the stages shows."""
    case = result.case
    if case.alpha != "dynamic_dropped":
        return f"alpha = {result.alpha}, " + ("coalesced" if case.coalescing else "static")
    plural = "" if result.raw["special"] == 1 else "s"
    return f"dynamic, {result.raw['special']} special prime{plural} at the top"


def speeds(slow: Result, fast: Result, clock: str) -> list[float]:
    """How many times faster, in each run of both."""
    return [a / b for a, b in zip(slow.raw[clock], fast.raw[clock], strict=False)]


def ratio(slow: Result | None, fast: Result | None, clock: str = PROCESSOR) -> str:
    """The same as a cell."""
    return MISSING if slow is None or fast is None else cell(speeds(slow, fast, clock))


def cell(ratios: Sequence[float]) -> str:
    """The median of ratios, with the least and the most."""
    if not ratios:
        return MISSING
    spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{statistics.median(ratios):.2f}x{spread}"


def claim(what: str, printed: str, result: Iterable[float]) -> list[str]:
    """A row of the findings."""
    return [what, printed, ", ".join(f"{value:.2f}x" for value in result if math.isfinite(value)) or MISSING]


def seconds(result: Result | None) -> str:
    """Processor seconds as a cell, with the least and the most."""
    if result is None:
        return MISSING
    times = result.raw[PROCESSOR]
    spread = f" ({min(times):.2f} to {max(times):.2f})" if len(times) > 1 else ""
    return f"{result.seconds:.2f}{spread}"


def gigabytes(count: int) -> str:
    """GB of 10^9 bytes, as the paper counts."""
    return f"{count / paper.GB:.2f}"
