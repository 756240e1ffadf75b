"""The page docs/reproduction/keys.md and its pictures: `python -m studies.network_keys`.

It is made of the rotation lists in `lists/`. All times are predictions of the cost model; nothing is
encrypted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from string import Template

from harness.measurement.machine import commit
from harness.pages.prose import wrapped
from keywright.plan import Chain, CostModel
from keywright.plan.cost.model import TYPICAL_WEIGHTS
from published import convfhe

from studies.network_keys import ark, kds, printed
from studies.network_keys.beside_optimal import compare
from studies.network_keys.networks import (
    FACTORS,
    Network,
    derived,
    derived_rows,
    networks,
    open_network,
    open_plans,
    open_rows,
    targets,
)
from studies.network_keys.page_parts import GB, require, step
from studies.network_keys.pictures import draw_figure_7, draw_figure_8
from studies.network_keys.rotation_lists import read

SETTINGS = ("3-20-1", "3-20-3")
"""Of ConvFHE, for which the project has a target of bytes."""

PAGE = Path(__file__).parents[3] / "docs" / "reproduction" / "keys.md"

WEIGHTS = TYPICAL_WEIGHTS
"""Of the planner without a calibration. A test says where the page has other ones."""


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.network_keys", description="Write docs/reproduction/keys.md."
    )
    parser.add_argument(
        "--seconds", type=float, default=900, help="for each proof of a fewest number of keys"
    )
    parser.add_argument("--hops", type=int, default=4, choices=[1, 2, 3, 4], help="most hops of optimal")
    parser.add_argument(
        "--out", type=Path, default=PAGE, help="the page (default: docs/reproduction/keys.md)"
    )
    parser.add_argument(
        "--pictures", action="store_true", help="only draw the pictures, from the tables of the page as it is"
    )
    options = parser.parse_args()
    pictures = {name: options.out.with_name(f"{name}.svg") for name in ("ark-figure-7", "ark-figure-8")}
    if options.pictures:
        text = options.out.read_text()
        draw_figure_7(printed.figure_7(text), pictures["ark-figure-7"])
        draw_figure_8(ark.shares(), printed.figure_8(text), pictures["ark-figure-8"])
        return 0
    model = CostModel(WEIGHTS)
    values: dict[str, object] = {
        "day": f"{date.today():%-d %B %Y}",
        "commit": commit(),
        "hops": options.hops,
        "kds": kds.key_bytes(),
        "kds_keysets": kds.as_printed(),
    }

    values["ark"], words = ark.lists(options.seconds)
    values |= words
    values |= ark.by_the_text()
    layers = ark.figure_7(model)
    values["ark_7"], words = ark.figure_7_table(layers)
    values |= words
    values["kds_computed"], words = kds.computed(model, options.hops)
    values |= words

    networks_by_name = networks(model, options.hops)
    values["ark_1"] = ark.table_1(networks_by_name)
    values["ark_2"] = ark.tables_2_and_3(networks_by_name, model)
    for name, network in networks_by_name.items():
        key = name.replace("-", "_").lower()
        values[key if key[0].isalpha() else f"_{key}"] = network.rows()
    values |= _compared(networks_by_name)
    values |= _of_lists(networks_by_name)

    planner, every = open_network(model, options.hops)
    plans = open_plans(planner, every)
    values["open"] = open_rows(plans, every, model)
    sent = derived(planner, every)
    values["derived"] = derived_rows(sent, every, model)
    values["targets"] = targets(networks_by_name, plans, sent)
    gaps = [plan.gap for network in networks_by_name.values() for plan in network.best.values()]
    shares = [round(100 * gap) for gap in (*gaps, *(plan.gap for plan in plans.values())) if gap is not None]
    values["gaps"] = f"{min(shares)} to {max(shares)}"
    values["fifteenth"] = " ".join(_fifteenth(networks_by_name[setting]) for setting in SETTINGS)

    draw_figure_7(layers, pictures["ark-figure-7"])
    ours = {
        setting: ark.our_shares(ark.network_of(networks_by_name, setting), model) for setting in ark.TABLE_1
    }
    ark.check_figure_8(ours)
    draw_figure_8(ark.shares(), ours, pictures["ark-figure-8"])
    text = Template((Path(__file__).parent / "page.md").read_text()).substitute(values)
    options.out.write_text(wrapped(text))
    for path in (options.out, *pictures.values()):
        print(path)
    return 0


def _fifteenth(network: Network) -> str:
    """In words: the plan for a setting of ConvFHE in the time of its own keys, or in the least multiple."""
    setting = network.workload.name.removeprefix("ConvFHE ")
    own = convfhe.made_keys(read("convfhe_resnet"), setting)[1]
    factors = [factor for factor in network.best if factor >= 1]
    if not factors:
        return f"For {setting} no plan is known in {max(FACTORS):g} times the time of its own keys."
    factor = min(factors)
    plan, stored = network.best[factor], ark.both_halves(network.best[factor])
    size = (
        f"has 1/{own / plan.stored_bytes:.1f} of its bytes; with both halves stored it would have "
        f"{stored / GB:.1f} GB, 1/{own / stored:.1f}."
    )
    if factor == 1:
        return f"The plan for {setting} in the time of its own keys {size}"
    return (
        f"For {setting} no plan is known in the time of its own keys; the one in {factor:g} times it {size}"
    )


def _compared(networks_by_name: Mapping[str, Network]) -> dict[str, object]:
    """Numbers of the comparison with every strategy on every list.

    Raises:
        SystemExit: `optimal` is worse than one of them.
    """
    longer: dict[str, int] = {}
    compared = smaller = 0
    for name, network in networks_by_name.items():
        with step(f"every strategy beside optimal, {name}"):
            comparison = compare(network.planner)
        if comparison.worse:
            raise SystemExit("\n".join(comparison.worse))
        compared += comparison.compared
        smaller += comparison.smaller
        longer |= {one: max(hops, longer.get(one, 0)) for one, hops in comparison.longer.items()}
    words = ", ".join(f"`{name}` (up to {hops})" for name, hops in longer.items())
    return {"compared": compared, "programs": len(networks_by_name), "longer": words, "smaller": smaller}


def _of_lists(networks_by_name: Mapping[str, Network]) -> dict[str, object]:
    """What the text says of the programs."""
    mp_cnn, low = networks_by_name["FHE-MP-CNN"], networks_by_name["exp1"]
    chain = mp_cnn.workload.chain
    largest = max((key.shape for key in mp_cnn.own.keys), key=lambda shape: shape.stored_bytes)
    estimate = read("fhe_mp_cnn_resnet20")["estimate"]
    theirs = read("convfhe_resnet")["params"]
    bits = sum(low.workload.chain.q) + sum(low.workload.chain.p)
    secure = Chain(16, (60,), (60,)).modulus_bound
    require(len(chain.p) == 1 and len(largest.digits) == len(chain.q), "FHE-MP-CNN has one prime a digit")
    require(bits > secure, "LowMemoryFHEResNet20's modulus is above the bound for 128 bits")
    return {
        "mp_primes": len(chain.q),
        "mp_special": f"{chain.p[0]:g}",
        "mp_weight": read("fhe_mp_cnn_resnet20")["params"]["hamming_weight"],
        "mp_keys": estimate["keys_incl_conjugation"],
        "mp_two_hops": len(mp_cnn.workload.highest_levels) - (estimate["keys_incl_conjugation"] - 1),
        "mp_gib": f"{estimate['all_keys_GiB']:.0f}",
        "mp_gb": f"{estimate['all_keys_bytes'] / GB:.0f}",
        "mp_digits": len(largest.digits),
        "mp_key": f"{largest.stored_bytes / GB:.2f}",
        "conv_dnum": theirs["dnum"],
        "conv_special": theirs["special_primes"],
        "conv_pack": theirs["pack_keys_count"],
        "conv_made": convfhe.made_keys(read("convfhe_resnet"), "3-20-1")[0],
        "low_primes": len(low.workload.chain.q),
        "low_special": len(low.workload.chain.p),
        "low_bits": f"{bits:.0f}",
        "secure_bits": secure,
    }


if __name__ == "__main__":
    sys.exit(main())
