"""Figures 7 and 8 and table 5 of KDS by the paper's own rule: `python -m studies.bootstrapping_keys.rule`.

By that rule an alpha divides the number of ciphertext primes, and there are alpha special primes. A bootstrap
is measured for each alpha at the largest depth that has it, and for the largest alpha of every depth, in turn
with our dynamic digits, which no rule limits. The record is written case by case: the same command with the
same --out resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.console import Console
from harness.folders import record_folder
from harness.pages.table import MISSING, heading, markdown
from harness.programs.suite import build, output

from studies.bootstrapping_keys import page, paper
from studies.bootstrapping_keys.cases import Case, static
from studies.bootstrapping_keys.grid import paper_column
from studies.bootstrapping_keys.record import line, read, result, together
from studies.bootstrapping_keys.report import Results, gigabytes, ratio, seconds

NAMES = ("rule_depths", "rule_alphas")
"""Tables of the page."""

MEMORY = 6 << 30
"""Bytes of keys held at once; a case above it streams."""


def by_rule(log_n: int, depth: int, alpha: int) -> Case:
    """Static digits with as many special primes."""
    return static(log_n, depth, alpha, alpha)


def stored(log_n: int, depth: int, alpha: int) -> Case:
    """Its keys at the highest level, not measured."""
    return Case(log_n, depth, alpha, alpha, key_levels="top", coalescing=False, timed=False)


def dynamic(log_n: int, depth: int) -> Case:
    """Our fastest digits at that depth."""
    return Case(log_n, depth, "most", "dynamic_dropped")


def alphas(depth: int) -> list[int]:
    """The alphas of a depth by the rule, as the paper has them: without the one digit of all 17 primes
    at depth 1."""
    return [alpha for alpha in paper.alphas(depth) if alpha <= depth + paper.CONSUMED]


def series() -> list[tuple[int, int]]:
    """Figure 7: each alpha of the rule with its largest depth."""
    return [(alpha, paper_column(alpha).depth) for alpha in paper.ALPHAS_STATED]


def schedule(log_n: int, depths: Sequence[int]) -> list[Case]:
    """The cases of these depths in the order in which they are measured, each once."""
    cases = []
    for depth in depths:
        measured = dict.fromkeys([alphas(depth)[-1], *(alpha for alpha, of in series() if of == depth)])
        cases += [stored(log_n, depth, alpha) for alpha in measured]
        if measured.keys() != {1}:
            cases += [by_rule(log_n, depth, alpha) for alpha in measured]
            cases.append(dynamic(log_n, depth))
    return cases


def tables(results: Results, log_n: int) -> dict[str, list[str]]:
    """The tables that a record has all cases of, by name."""
    tables = {}
    if all(case in results for case in schedule(log_n, range(paper.LARGEST_DEPTH, 0, -1))):
        tables["rule_depths"] = _depths(results, log_n)
        tables["rule_alphas"] = _alphas(results, log_n)
    return tables


def _depths(results: Results, log_n: int) -> list[str]:
    rows = []
    for depth, printed in paper.TABLE_5.items():
        allowed = alphas(depth)
        alpha = allowed[-1]
        keys = gigabytes(results[stored(log_n, depth, alpha)].raw["formula_bytes"])
        theirs = printed.alpha_1 if printed.maximum is None else printed.maximum
        static_one, free = results.get(by_rule(log_n, depth, alpha)), results.get(dynamic(log_n, depth))
        timed = [MISSING] * 3
        if static_one and free:
            timed = [seconds(static_one), seconds(free), ratio(static_one, free)]
        rows.append([depth, ", ".join(map(str, allowed)), theirs, keys, *timed])
    head = ["depth", "alphas of the rule", "paper, GB of the largest", "here, GB of the largest"]
    return markdown([*head, "largest, s", "dynamic, any alpha, s", "over the largest"], rows)


def _alphas(results: Results, log_n: int) -> list[str]:
    rows = []
    for alpha, depth in series():
        chosen = results[by_rule(log_n, depth, alpha)]
        keys = gigabytes(results[stored(log_n, depth, alpha)].raw["formula_bytes"])
        rows.append([alpha, depth, seconds(chosen), keys])
    return markdown(["alpha", "largest depth", "seconds", "GB, formula"], rows)


def main() -> int:
    """Measure what the record lacks, then fill the page. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.bootstrapping_keys.rule", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--log-n", type=int, choices=range(11, 17), default=16, help="ring (default: 16)")
    parser.add_argument("--depths", default="16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1", help="some of 1 to 16")
    parser.add_argument("--rounds", type=int, default=1, help="timed bootstraps of each case, in turn")
    parser.add_argument("--out", type=Path, help="folder of the record (default: record/DATE-kds-rule)")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced, once the record is whole")
    options = parser.parse_args()
    folder = record_folder(options.out, "kds-rule")
    path = folder / "rule.jsonl"
    console, results = Console(), read(path)
    cases = schedule(options.log_n, [int(text) for text in options.depths.split(",")])
    programs = build(console, ("key_design",))
    with path.open("a") as raw:
        for turn in range(options.rounds):
            for case in cases:
                known = results.get(case)
                if known is not None and (not case.timed or known.rounds > turn):
                    continue
                console.line(f"round {turn + 1}: {' '.join(case.options())}")
                words = ["--runs", str(int(case.timed)), "--memory", str(MEMORY)]
                measurement = result(
                    case, json.loads(output([str(programs / "key_design"), *case.options(), *words]))
                )
                results[case] = measurement if known is None else together(known, measurement)
                print(line(measurement), file=raw, flush=True)
    made_tables = tables(results, options.log_n)
    text = heading(f"Bootstrapping keys by the paper's rule, 2^{options.log_n}", "one thread")
    for name in NAMES:
        text += [f"## {name}", "", *made_tables.get(name, ["Not in this record."]), ""]
    (folder / "rule.md").write_text("\n".join(text))
    if options.page is not None:
        of_page = options.page.read_text()
        options.page.write_text(page.fill(of_page, made_tables, page.marks(of_page)))
    console.line(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
