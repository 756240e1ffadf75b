"""Figure 6 of KDS: the use of the modulus, for each alpha: `python -m studies.bootstrapping_keys.grid`.

Theirs as their rules have it: primes of the size of the scale, alpha a divisor of the number of ciphertext
primes. Ours in bits, as `benchmarks/suite/src/key_design.rs` makes parameters, any alpha.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.pages.plot import new_figure, save_svg

from studies.bootstrapping_keys.paper import ALPHAS_STATED, CONSUMED, LARGEST_DEPTH, PRIMES

PAGE = Path(__file__).parents[3] / "docs" / "reproduction" / "kds-figure-6.svg"
BOUND = 1747
"""Bits for 128 bits of security at N = 2^16, uniform ternary secret."""

SCALE = 50
BASE = 51
SLOTS_TO_COEFFS = (32,) * 3
EVAL_MOD = (50,) * 7 + (59, 60)
COEFFS_TO_SLOTS = (43,) * 3
SPECIAL = (61, 60)
"""The widest special primes; all others have the bits of the scale."""

OUR_ALPHAS = range(1, 19)
PARTS = {"q_0": "#6b7280", "levels": "#5b9bd5", "bootstrapping": "#e6c14a", "special": "#b03030"}
UNUSED = "#d9dce1"


@dataclass(frozen=True)
class Column:
    """One alpha: bits by purpose, in the order of `PARTS`, and the remaining depth."""

    alpha: int
    depth: int
    bits: tuple[int, int, int, int]

    @property
    def unused(self) -> int:
        """Bits within the bound that nothing uses."""
        return BOUND - sum(self.bits)


def paper_column(alpha: int) -> Column:
    """The largest depth that their rules leave for an alpha."""
    tops = range(LARGEST_DEPTH + CONSUMED + 1, CONSUMED + 1, -1)
    primes = next(n for n in tops if n % alpha == 0 and n + alpha <= PRIMES)
    depth = primes - 1 - CONSUMED
    return Column(alpha, depth, (SCALE, depth * SCALE, CONSUMED * SCALE, alpha * SCALE))


def our_column(alpha: int) -> Column:
    """The largest depth that the bits leave for an alpha: 19 - alpha, as far as special primes fit."""
    special = sum(SPECIAL[:alpha]) + SCALE * max(0, alpha - len(SPECIAL))
    boot = sum(SLOTS_TO_COEFFS) + sum(EVAL_MOD) + sum(COEFFS_TO_SLOTS)
    depth = (BOUND - BASE - boot - special) // SCALE
    return Column(alpha, depth, (BASE, depth * SCALE, boot, special))


def draw(columns: Mapping[str, Sequence[Column]], path: Path) -> None:
    """Write a panel for each: bits from below, one bar for an alpha, with its depth above.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(11, 4.5)
    figure.suptitle("KDS (Joo et al. 2025), figure 6, redrawn: N = 2^16, 128 bits of security")
    for axes, (title, series) in zip(
        figure.subplots(1, len(columns), sharey=True), columns.items(), strict=True
    ):
        places = range(len(series))
        below = [0] * len(series)
        for part, (name, colour) in enumerate(PARTS.items()):
            heights = [column.bits[part] for column in series]
            axes.bar(places, heights, bottom=below, color=colour, label=name, width=0.8)
            below = [low + high for low, high in zip(below, heights, strict=True)]
        axes.bar(places, [c.unused for c in series], bottom=below, color=UNUSED, label="unused", width=0.8)
        for place, column in enumerate(series):
            axes.annotate(str(column.depth), (place, BOUND), ha="center", va="bottom", fontsize=7)
        axes.set_xticks(places, [str(column.alpha) for column in series])
        axes.set(xlabel="alpha; above a bar: depth", title=title)
    figure.axes[0].set_ylabel("bits of the modulus of the largest key")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
    save_svg(figure, path)


def main() -> int:
    """Write the picture."""
    parser = argparse.ArgumentParser(prog="python -m studies.bootstrapping_keys.grid", description=__doc__)
    parser.parse_args()
    draw(
        {
            "the paper's rules": [paper_column(alpha) for alpha in ALPHAS_STATED],
            "here: any alpha, special primes of any width": [our_column(alpha) for alpha in OUR_ALPHAS],
        },
        PAGE,
    )
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
