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
from pathlib import Path
from typing import Any

from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    DerivedKeys,
    InfeasibleBudgetError,
    JointPlanner,
    KeyPlan,
    Planner,
    Program,
    ProgramError,
    published_bytes,
    smallest_basis,
    smallest_shared_basis,
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
ARK_FIGURE_7 = (
    ("slots", "ConvFHE", 25, 11.74, "341, from 447 and 31.09 %"),
    ("slots", "ARK", 8, 4.75, "447"),
    ("slots", "LowMem", 4, 3.07, "575"),
    ("coefficients", "ConvFHE", 16, 8.10, "601"),
    ("coefficients", "ARK", 9, 4.00, "869"),
)
"""Encoding, whose keys, number, GB and milliseconds of a layer, as section IV.A of ARK states them for
figure 7."""
ARK_TABLES_2_3 = {
    ("3-20-1", "ark-memory"): ((81.37, 60.76, 47.87), (406, 409, 457), (495, 274, 232)),
    ("3-20-1", "ark-time"): ((81.37, 61.34, 50.73), (406, 407, 444), (495, 278, 273)),
    ("3-20-3", "ark-memory"): ((88.85, 64.89, 60.76), (594, 607, 650), (530, 275, 225)),
    ("3-20-3", "ark-time"): ((86.85, 70.99, 61.34), (594, 601, 631), (530, 293, 275)),
}
"""Setting and configuration to ConvFHE's, CRot1's and CRot2's GB of rotation keys, seconds of a network,
seconds of key
generation: tables II and III of ARK, which figure 8 shows as shares."""
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
KDS_ALPHAS = (1, 2, 4, 8, 16)
"""The alphas of figure 5 of KDS."""
KDS_CHAIN = Chain(16, (51, *[50] * 30), (51,) * 3)
"""31 primes of about 50 bits, as a multiplication depth of 16 and the 15 levels of a bootstrapping take."""
SPECIAL = ((61.0,) * 4, (61.0,), (51.0,))
"""Special primes that FHE-MP-CNN is planned with under a ternary secret, beside its own parameters."""
FACTORS = (0.5, 0.75, 1.0, 1.05, 1.5)
SENT = 600e6


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
        shared = smallest_shared_basis(group, automorphisms, seconds)
        if not shared.proven:
            raise SystemExit(f"{name}: {seconds:g} s are not enough for one shared input")
        # What one input can do ciphertexts of their own can do as well.
        fewest = f"{len(basis.keys)}" if basis.proven else f"{basis.lower_bound} to {len(shared.keys)}"
        best = basis if basis.proven else shared
        kept = ", ".join(
            ("-" if key.conjugate else "") + f"5^{key.step}" if "Galois" in name else str(key.step)
            for key in best.keys
        )
        made = f"{len(found.keys)}, {rotations} rotations"
        rows.append((name, len(numbers), paper, made, fewest, kept, len(shared.keys)))
    headings = ("list", "automorphisms", "ARK's paper", "its algorithms here", "fewest, independent", "keys")
    return table((*headings, "fewest, one input"), rows)


def ark_figure_7(data: Mapping[str, Any]) -> list[str]:
    """Keys and bytes of the single layers of ARK's figure 7, and what so many of ConvFHE's keys have by its
    source."""
    sizes = {
        "slots": int(data["params"]["one_full_key_bytes"]),
        "coefficients": int(data["params"]["one_pack_key_bytes"]),
    }
    rows = [
        (f"{layer}, {name}", keys, f"{size:.2f}", f"{keys * sizes[layer] / GB:.2f}", milliseconds)
        for layer, name, keys, size, milliseconds in ARK_FIGURE_7
    ]
    headings = ("encoding", "paper, keys", "paper, GB", "so many keys by ConvFHE's source, GB", "paper, ms")
    return table(headings, rows)


def ark_figure_8(settings: Mapping[str, Sequence[tuple[str, KeyPlan]]], model: CostModel) -> list[str]:
    """What ARK's configurations save, by its tables II and III and by the lists; and `optimal`."""

    def share(part: float, whole: float) -> str:
        return f"{100 * (1 - part / whole):.0f}"

    rows: list[Sequence[object]] = []
    for setting, made in settings.items():
        (_, every), *others = made

        def generation(plan: KeyPlan) -> float:
            return sum(model.key_seconds(key.shape) for key in plan.keys)

        for name, plan in others:
            published = ARK_TABLES_2_3.get((setting, name))
            paper = ["", "", ""]
            if published is not None:
                paper = [" / ".join(share(part, base) for part in parts) for base, *parts in published]
            rows.append(
                (
                    setting,
                    name,
                    *paper,
                    share(plan.stored_bytes, every.stored_bytes),
                    share(plan.seconds(model), every.seconds(model)),
                    share(generation(plan), generation(every)),
                )
            )
    headings = ("setting", "strategy", "paper: bytes", "paper: time", "paper: key generation")
    return table((*headings, "here: bytes", "here: time", "here: key generation"), rows)


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


def strategies_of(
    program: Program, model: CostModel, hops: int
) -> tuple[list[str], list[tuple[str, KeyPlan]]]:
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
    return table(headings, rows), plans


def joint(data: Mapping[str, Any], model: CostModel, hops: int) -> tuple[list[str], list[str]]:
    """FHE-MP-CNN with the factors of its bootstrappings, its special primes and its secret open.

    Plans for its own parameters and for the best of all, and keys derived within `SENT` bytes.
    """
    own = fhe_mp_cnn.convert_open(data)
    every = STRATEGIES["all-required"].plan(own.published, model).seconds(model)
    variants = [fhe_mp_cnn.convert_open(data, special) for special in SPECIAL]
    planners = {
        "its own": JointPlanner([own], model, max_hops=hops),
        "any": JointPlanner([own, *variants], model, max_hops=hops),
    }
    rows = []
    for name, planner in planners.items():
        for factor in FACTORS:
            try:
                plan = planner.best(Budget(seconds=factor * every))
            except InfeasibleBudgetError:
                continue
            chain = plan.program.chain
            rows.append(
                (
                    name,
                    f"{factor:g}x",
                    f"{len(chain.p)} x {chain.p[0]:g}" + (", ephemeral" if plan.program.ephemeral else ""),
                    len(plan.keys),
                    f"{plan.stored_bytes / GB:.2f}",
                    f"{plan.seconds(model) / every:.2f}",
                    plan.max_hops,
                    f"{plan.noise_bits(model):.1f}",
                    f"{100 * (plan.gap or 0.0):.0f} %",
                )
            )
    headings = (
        "parameters",
        "time at most",
        "special primes",
        "keys",
        "GB, seeded",
        "of all-required",
        "hops",
    )
    lines = table((*headings, "noise, bits", "gap"), rows)
    return lines, derived_keys(planners["any"], every, model)


def derived_keys(planner: JointPlanner, every: float, model: CostModel) -> list[str]:
    """What the server derives from `SENT` bytes, at several times of the program."""
    rows: list[Sequence[object]] = []
    for factor in (1.05, 1.5):
        try:
            found: DerivedKeys = planner.derived(SENT, factor * every)
        except InfeasibleBudgetError as error:
            print(error, file=sys.stderr)
            rows.append([f"{factor:g}x", "none found", *[""] * 8])
            continue
        chain = found.plan.program.chain
        rows.append(
            (
                f"{factor:g}x",
                f"{found.sent_bytes / 1e6:.0f}",
                f"{len(found.masters)} of {found.shape.stored_bytes / 1e6:.0f} MB",
                len(found.direct),
                f"{len(chain.p)} x {chain.p[0]:g}",
                f"{found.client_seconds:.1f}",
                f"{found.server_seconds:.0f}",
                f"{found.stored_bytes / GB:.1f}",
                f"{found.plan.seconds(model) / every:.2f}",
                f"{found.noise_bits:.1f}",
            )
        )
    headings = (
        "time at most",
        "sent, MB",
        "masters",
        "keys sent",
        "special primes",
        "client, s",
        "server, s",
    )
    return table((*headings, "held, GB", "of all-required", "noise, bits"), rows)


def kds_network(data: Mapping[str, Any]) -> Program:
    """The rotations of FHE-MP-CNN's ResNet-20 without its bootstrappings, in the parameters of KDS."""
    network = fhe_mp_cnn.convert_open(data).program
    groups = [group for group in network.groups if "subsum" not in group.name]
    return Program("ResNet-20", KDS_CHAIN, tuple(groups))


def kds_computed(data: Mapping[str, Any], model: CostModel) -> list[str]:
    """The rows of KDS table 7 from FHE-MP-CNN's list, by the formula of KDS."""
    program = kds_network(data)
    rotations = len(program.highest_levels())
    stages = data["bootstrap_steps_by_logn"].values()
    bootstrap = {step for stage in stages for steps in stage.values() for step in steps}
    group = AutomorphismGroup(16)
    powers = {group.rotation(sign << bit) for bit in range(15) for sign in (1, -1)}
    with_powers = len(powers | {group.rotation(step) for step in bootstrap})
    together = len({a.step for a in program.highest_levels()} | bootstrap)
    top = published_bytes(16, 30, 1)
    # One key for each alpha, each for the highest level that its special primes leave of 32 primes.
    every = sum(published_bytes(16, 31 - alpha, alpha) for alpha in KDS_ALPHAS)
    plan = STRATEGIES["kds"].plan(program, model)
    needed = sum(published_bytes(16, key.shape.level, key.shape.alpha) for key in plan.keys)

    def both(first: int, second: int, each: int) -> tuple[str, str]:
        return f"{first * each / GB:.1f}", f"{second * each / GB:.1f}"

    rows = [
        ("all required", "dynamic", "all", "534.656", *both(rotations, together, every)),
        ("all required", "1", "all", "275.952", *both(rotations, together, top)),
        ("power of two", "dynamic", "all", "108.179", *both(len(powers), with_powers, every)),
        ("power of two", "1", "all", "55.835", *both(len(powers), with_powers, top)),
        ("all required", "dynamic", "needed", "47.32 / 53.511", f"{needed / GB:.1f}", ""),
    ]
    counts = (
        f"ours, network ({rotations} / {len(powers)} keys)",
        f"with bootstrapping ({together} / {with_powers})",
    )
    return table(("index", "alpha", "level", "paper, ResNet-20, GB", *counts), rows)


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
    mp_cnn_list = read(options.lists, "fhe_mp_cnn_resnet20.json")
    mp_cnn = fhe_mp_cnn.convert(mp_cnn_list)
    parts = {
        "ark": lists_of_ark(options.seconds),
        "kds": published_key_bytes(),
        "kds_keysets": published_keysets(),
        "kds_computed": kds_computed(mp_cnn_list, model),
    }
    programs = {
        "mp_cnn": mp_cnn,
        "convfhe_1": convfhe.convert(convfhe_lists, "3-20-1"),
        "convfhe_3": convfhe.convert(convfhe_lists, "3-20-3"),
        "lowmemory": lowmemory.convert(read(options.lists, "lowmemory_fhe_resnet20.json"), "exp1"),
    }
    plans: dict[str, list[tuple[str, KeyPlan]]] = {}
    for key, program in programs.items():
        print(f"{program.name} ...", file=sys.stderr, flush=True)
        parts[key], plans[key] = strategies_of(program, model, options.hops)
    print("FHE-MP-CNN, everything open ...", file=sys.stderr, flush=True)
    parts["mp_cnn_joint"], parts["mp_cnn_derived"] = joint(mp_cnn_list, model, options.hops)
    rows = []
    settings = {"3-20-1": plans["convfhe_1"], "3-20-3": plans["convfhe_3"]}
    shown = ("all-required", "ark-memory", "ark-time", "optimal, time at most 1x")
    compared = {name: [entry for entry in made if entry[0] in shown] for name, made in settings.items()}
    parts["ark_7"], parts["ark_8"] = ark_figure_7(convfhe_lists), ark_figure_8(compared, model)
    for setting, (theirs, first, second) in ARK_TABLE_2.items():
        estimate = convfhe_lists["settings"][setting]["key_bytes_estimate"]["total_GiB"] * 2**30 / GB
        best = dict(settings[setting])["optimal, time at most 1x"]
        rows.append((setting, theirs, first, second, f"{estimate:.1f}", f"{best.stored_bytes / GB:.2f}"))
    headings = (
        "setting",
        "ConvFHE, GB",
        "ARK CRot1",
        "ARK CRot2",
        "ConvFHE's keys by its formula, GB",
        "optimal, GB",
    )
    parts["ark_2"] = table(headings, rows)
    for key, lines in parts.items():
        text = text.replace(f"<!-- {key} -->\n", "\n".join([*lines, ""]))
    options.out.write_text(text)
    print(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
