"""`python -m keysets LISTS`, run in the folder `benchmarks`: the page docs/reproduction/keys.md.

LISTS is a folder with the rotation lists of three published networks: convfhe_resnet.json,
fhe_mp_cnn_resnet20.json and lowmemory_fhe_resnet20.json. All times are predictions of the cost model;
nothing is encrypted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    InfeasibleBudgetError,
    KeyPlan,
    Planner,
    Program,
    ProgramError,
    published_bytes,
    smallest_basis,
)
from keywright.plan.converters import convfhe, fhe_mp_cnn, lowmemory
from keywright.plan.strategies.ark import ark_keys

PAGE = Path(__file__).parents[2] / "docs" / "reproduction" / "keys.md"
GB = 1e9
ROT1 = [1152, 4608, 4224, 7680, 9216, 384, 3840, 7296, 8448, 1536, 5760, 3072, 5376, 768, 2304]
ROT2 = [3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, 2049, 4097, 8193, 16385, 32769, 65537]
KERNEL = [32 * i + j for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0)]
ARK_TABLE_2 = {"3-20-1": (81.37, 60.76, 47.87), "3-20-3": (88.85, 64.89, 60.76)}
"""Setting to the GB of rotation keys of ConvFHE, and of ARK memory-prioritised for CRot1 and for CRot2:
table II."""
KDS_KEYSETS = (
    # Index, alpha, level; GB of GRU + MLP (table 6), SqueezeNet and ResNet-20 (table 7, both activations if
    # they differ).
    ("all required", "dynamic", "all", ("553.648",), ("490.968",), ("534.656",)),
    ("all required", "1", "all", ("307.09",), ("253.403",), ("275.952",)),
    ("power of two", "dynamic", "all", ("83.752",), ("108.179",), ("108.179",)),
    ("power of two", "1", "all", ("55.835",), ("55.835",), ("55.835",)),
    ("all required", "dynamic", "needed", ("52.026",), ("45.353", "46.016"), ("47.32", "53.511")),
)
"""Tables 6 and 7 of KDS as printed."""
KDS_COUNTS = {
    "ResNet-20, all required, alpha 1": (275.952, 257),
    "SqueezeNet, all required, alpha 1": (253.403, 236),
    "GRU + MLP, all required, alpha 1": (307.09, 286),
    "power of two, alpha 1": (55.835, 52),
}
"""What KDS print in tables 6 and 7, GB, and the number of keys of 2^30 bytes that it is."""
MORE_SPECIAL = (51, 51, 51, 51)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table, and an empty one."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return [*lines, ""]


def lists_of_ark(seconds: float) -> list[str]:
    """ARK's three lists: the paper's keys, those of its algorithms here, and the fewest that there can be."""
    group = AutomorphismGroup(16)
    rows = []
    for name, paper, numbers, automorphisms in (
        ("5x5 kernel", "8", KERNEL, [group.rotation(step) for step in KERNEL]),
        ("rot1", "about 8 (46 % fewer)", ROT1, [group.rotation(step) for step in ROT1]),
        ("rot2, as Galois elements", "9", ROT2, [group.from_galois_element(g) for g in ROT2]),
    ):
        found = ark_keys(numbers, "memory")
        rotations = sum(len(way) for way in found.decompositions.values())
        basis = smallest_basis(group, automorphisms, seconds)
        fewest = f"{len(basis.keys)}" if basis.proven else f"at least {basis.lower_bound}"
        kept = ", ".join(
            ("-" if key.conjugate else "") + f"5^{key.step}" if "Galois" in name else str(key.step)
            for key in basis.keys
        )
        shown = kept if basis.proven else "the search ran out of time"
        rows.append((name, len(numbers), paper, f"{len(found.keys)}, {rotations} rotations", fewest, shown))
    headings = ("list", "automorphisms", "ARK's paper", "its algorithms here", "fewest, two hops", "keys")
    return table(headings, rows)


def published_key_bytes() -> list[str]:
    """The key sets of KDS tables 6 and 7 by their formula."""
    full = published_bytes(16, 30, 1)
    rows = [
        (name, f"{gigabytes}", count, f"{count * 2**30 / GB:.3f}", f"{count * full / GB:.3f}")
        for name, (gigabytes, count) in KDS_COUNTS.items()
    ]
    return table(("key set", "paper, GB", "keys", "keys x 2^30 B", "keys x formula, level 30"), rows)


def published_keysets() -> list[str]:
    """KDS tables 6 and 7, each figure beside the number of keys of 2^30 bytes that it is."""

    def cell(figures: Sequence[str]) -> str:
        counts = " / ".join(f"{float(figure) * GB / 2**30:.1f}" for figure in figures)
        return f"{' / '.join(figures)} ({counts})"

    rows = [(index, alpha, level, *map(cell, figures)) for index, alpha, level, *figures in KDS_KEYSETS]
    return table(("index", "alpha", "level", "GRU + MLP", "SqueezeNet", "ResNet-20"), rows)


def strategies_of(program: Program, model: CostModel, hops: int) -> tuple[list[str], Planner]:
    """A row for each strategy, and for `optimal` at several budgets."""
    plans: list[tuple[str, KeyPlan]] = []
    for name, strategy in STRATEGIES.items():
        try:
            plans.append((name, strategy.plan(program, model)))
        except ProgramError as error:
            print(f"{program.name}: {name}: {error}", file=sys.stderr)
    every = plans[0][1]
    planner = Planner(program, model, max_hops=hops)
    for factor in (0.75, 1.0, 1.05, 1.5):
        try:
            best = planner.best(Budget(seconds=factor * every.seconds(model)))
        except InfeasibleBudgetError:
            continue
        plans.append((f"optimal, time at most {factor:g}x", best))
    rows = [
        (
            name,
            len(plan.keys),
            f"{plan.stored_bytes / GB:.2f}",
            f"{plan.seconds(model):.0f}",
            f"{plan.seconds(model) / every.seconds(model):.2f}",
            plan.max_hops,
            f"{plan.noise_bits(model):.1f}",
            "" if plan.gap is None else f"{100 * plan.gap:.0f} %",
        )
        for name, plan in plans
    ]
    headings = ("strategy", "keys", "GB, seeded", "s", "of all-required", "hops", "noise, bits", "gap")
    return table(headings, rows), planner


def read(folder: Path, name: str) -> Mapping[str, Any]:
    """A list, parsed."""
    data: Mapping[str, Any] = json.loads((folder / name).read_text())
    return data


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m keysets", description="Write docs/reproduction/keys.md.")
    parser.add_argument("lists", type=Path, help="folder of the rotation lists")
    parser.add_argument("--seconds", type=float, default=60, help="for each proof of a fewest number of keys")
    parser.add_argument("--hops", type=int, default=4, choices=[1, 2, 3, 4], help="most hops of optimal")
    parser.add_argument(
        "--out", type=Path, default=PAGE, help="the page (default: docs/reproduction/keys.md)"
    )
    options = parser.parse_args()
    model = CostModel()
    text = (Path(__file__).parent / "page.md").read_text()
    convfhe_lists = read(options.lists, "convfhe_resnet.json")
    mp_cnn = fhe_mp_cnn.convert(read(options.lists, "fhe_mp_cnn_resnet20.json"))
    dense = replace(
        mp_cnn,
        name=f"{mp_cnn.name}, dense secret",
        chain=Chain(mp_cnn.chain.log_n, mp_cnn.chain.q, MORE_SPECIAL),
    )
    parts = {
        "ark": lists_of_ark(options.seconds),
        "kds": published_key_bytes(),
        "kds_keysets": published_keysets(),
    }
    programs = {
        "mp_cnn": mp_cnn,
        "mp_cnn_dense": dense,
        "convfhe_1": convfhe.convert(convfhe_lists, "3-20-1"),
        "convfhe_3": convfhe.convert(convfhe_lists, "3-20-3"),
        "lowmemory": lowmemory.convert(read(options.lists, "lowmemory_fhe_resnet20.json"), "exp1"),
    }
    for key, program in programs.items():
        print(f"{program.name} ...", file=sys.stderr, flush=True)
        parts[key], _ = strategies_of(program, model, options.hops)
    rows = []
    for setting, (theirs, first, second) in ARK_TABLE_2.items():
        estimate = convfhe_lists["settings"][setting]["key_bytes_estimate"]["total_GiB"] * 2**30 / GB
        rows.append((setting, theirs, first, second, f"{estimate:.1f}"))
    headings = ("setting", "ConvFHE, GB", "ARK CRot1", "ARK CRot2", "ConvFHE's keys by its formula, GB")
    parts["ark_2"] = table(headings, rows)
    for key, lines in parts.items():
        text = text.replace(f"<!-- {key} -->\n", "\n".join([*lines, ""]))
    options.out.write_text(text)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
