"""ARK (Chan et al., ePrint 2024/1948): its lists, its tables and its figures 7 and 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Literal

from keywright.errors import InfeasibleBudgetError
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Budget,
    Chain,
    CostModel,
    KeyPlan,
    Planner,
    Workload,
    make_group,
    smallest_basis,
    smallest_shared_basis,
)
from keywright.plan.strategies.rotation_patterns import OURS, TEXT, Interpretation, pattern_keys
from published import convfhe

from studies.network_keys.networks import Network
from studies.network_keys.page_parts import GB, require, step, table
from studies.network_keys.rotation_lists import read, workloads

ROT1 = [1152, 4608, 4224, 7680, 9216, 384, 3840, 7296, 8448, 1536, 5760, 3072, 5376, 768, 2304]
ROT2 = [3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, 2049, 4097, 8193, 16385, 32769, 65537]
POWERS = [2, 4, 8, 16, 32, 64, 128]
"""The example of section III.C."""

PRIORITIES: tuple[Literal["memory", "time"], ...] = ("memory", "time")
READINGS = {
    "here": OURS,
    "algorithm 1 by the text": Interpretation(long_runs=True, every_offset=False),
    "algorithm 4 by the text": Interpretation(long_runs=False, every_offset=True),
    "both by the text": TEXT,
}
KERNEL = [32 * i + j for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0)]
GROUP = AutomorphismGroup(16)
LEVEL = 1
"""Where figure 7's layers are planned: the level of ConvFHE's packings; the paper does not state one."""


@dataclass(frozen=True)
class Figure7Row:
    """The statements of section IV.A of ARK about figure 7.

    Attributes:
        encoding: slots (a 5x5 kernel of one ciphertext) or coefficients (ConvFHE's packings).
        whose: the owner of the keys.
        keys: how many.
        gigabytes: of memory.
        milliseconds: of the layer.
        strategy: the strategy here that makes these keys.
    """

    encoding: str
    whose: str
    keys: int
    gigabytes: float
    milliseconds: float
    strategy: str


FIGURE_7 = (
    # ARK is 31.09 % slower than ConvFHE, whose milliseconds are not in the text.
    Figure7Row("slots", "ConvFHE", 25, 11.74, 447 / 1.3109, "all-required"),
    Figure7Row("slots", "ARK", 8, 4.75, 447, "ark-memory"),
    Figure7Row("slots", "LowMem", 4, 3.07, 575, "lowmem"),
    Figure7Row("coefficients", "ConvFHE", 16, 8.10, 601, "all-required"),
    Figure7Row("coefficients", "ARK", 9, 4.00, 869, "ark-memory"),
)
TABLE_1 = {
    "3-20-1": (81.37, 86.74, 93.81),
    "5-20-1": (81.05, 87.56, 94.85),
    "7-20-1": (81.78, 87.88, 93.06),
    "5-8-3": (88.31, 93.05, 94.91),
    "3-14-3": (88.75, 92.39, 96.06),
    "3-20-3": (88.85, 90.39, 98.30),
}
"""Setting to ConvFHE's GB of rotation keys, GB in all, and the share printed."""


@dataclass(frozen=True)
class Measured:
    """ConvFHE's figure and ARK's for CRot1 and CRot2: GB of rotation keys, seconds of a network, seconds of
    key generation."""

    gigabytes: tuple[float, float, float]
    seconds: tuple[float, float, float]
    generation: tuple[float, float, float]


TABLES_2_3 = {
    ("3-20-1", "ark-memory"): Measured((81.37, 60.76, 47.87), (406, 409, 457), (495, 274, 232)),
    ("5-20-1", "ark-memory"): Measured((81.05, 58.73, 49.55), (405, 409, 454), (498, 271, 202)),
    ("7-20-1", "ark-memory"): Measured((81.78, 60.76, 48.26), (429, 432, 466), (499, 276, 205)),
    ("5-8-3", "ark-memory"): Measured((88.31, 64.70, 60.76), (272, 277, 320), (525, 290, 271)),
    ("3-14-3", "ark-memory"): Measured((88.75, 65.89, 60.57), (436, 447, 485), (530, 276, 261)),
    ("3-20-3", "ark-memory"): Measured((88.85, 64.89, 60.76), (594, 607, 650), (530, 275, 225)),
    ("3-20-1", "ark-time"): Measured((81.37, 61.34, 50.73), (406, 407, 444), (495, 278, 273)),
    ("5-20-1", "ark-time"): Measured((82.75, 61.34, 51.07), (404, 406, 441), (497, 280, 248)),
    ("7-20-1", "ark-time"): Measured((81.78, 60.57, 49.55), (429, 430, 458), (510, 274, 257)),
    ("5-8-3", "ark-time"): Measured((88.31, 68.22, 61.34), (272, 275, 312), (525, 296, 276)),
    ("3-14-3", "ark-time"): Measured((87.73, 68.02, 61.34), (436, 441, 478), (530, 290, 273)),
    ("3-20-3", "ark-time"): Measured((86.85, 70.99, 61.34), (594, 601, 631), (530, 293, 275)),
}
"""Setting and configuration (memory- and time-prioritised) to tables II and III."""


def lists(seconds: float) -> tuple[str, dict[str, object]]:
    """ARK's three lists: the keys of the paper, those of its algorithms here, and the fewest possible; and
    numbers for the text.
    """
    rows = []
    for name, paper, numbers, automorphisms in (
        ("5x5 kernel", "8", KERNEL, [GROUP.rotation(number) for number in KERNEL]),
        ("rot1", "about 8 (46 % fewer)", ROT1, [GROUP.rotation(number) for number in ROT1]),
        ("rot2, as Galois elements", "9", ROT2, [GROUP.from_galois_element(g) for g in ROT2]),
    ):
        scheme = pattern_keys(numbers, "memory")
        rotations = sum(len(way) for way in scheme.decompositions.values())
        with step(f"fewest keys for {name}"):
            basis = smallest_basis(GROUP, automorphisms, seconds)
            shared = smallest_shared_basis(GROUP, automorphisms, seconds)
        if not shared.proven:
            raise SystemExit(f"{name}: {seconds:g} s are not enough for one shared input")
        # What one input can do ciphertexts of their own can do as well.
        best = min(basis, shared, key=lambda scheme: len(scheme.keys))
        fewest = f"{len(best.keys)}"
        if len(best.keys) > basis.lower_bound:
            fewest = f"{basis.lower_bound} to {fewest}"
        kept = ", ".join(
            ("-" if key.conjugate else "") + f"5^{key.step}" if "Galois" in name else str(key.step)
            for key in best.keys
        )
        summary = f"{len(scheme.keys)}, {rotations} rotations"
        rows.append((name, len(numbers), paper, summary, fewest, kept, len(shared.keys)))
    headings = ("list", "automorphisms", "ARK's paper", "its algorithms here", "fewest, independent", "keys")
    return table((*headings, "fewest, one input"), rows), _in_words()


def by_the_text() -> dict[str, object]:
    """Keys and rotations of ARK by each reading of its algorithms, each list once."""
    named = {"2 to 128": POWERS, "1 to 16384": [1 << bit for bit in range(15)], "rot1": ROT1}
    for name, workload in workloads().items():
        steps = _signed_steps(workload)
        if not any(sorted(steps) == sorted(others) for others in named.values()):
            named[name] = steps
    rows = []
    for name, numbers in named.items():
        for priority in PRIORITIES:
            scheme = [pattern_keys(numbers, priority, reading) for reading in READINGS.values()]
            summaries = [f"{len(one.keys)} / {sum(map(len, one.decompositions.values()))}" for one in scheme]
            rows.append((name, len(numbers), f"ark-{priority}", *summaries))
    steps = named["3-20-1"]
    saved = [100 * (1 - len(pattern_keys(steps, "memory", one).keys) / len(steps)) for one in (TEXT, OURS)]
    return {
        "ark_text": table(("numbers", "how many", "strategy", *READINGS), rows),
        "ark_text_saves": f"{saved[0]:.0f}",
        "ark_saves": f"{saved[1]:.0f}",
    }


def _signed_steps(workload: Workload) -> list[int]:
    slots = workload.automorphisms.slots
    steps = [one.step for one in workload.highest_levels if not one.conjugate]
    return [step - slots if step > slots // 2 else step for step in steps]


def _in_words() -> dict[str, object]:
    rot1 = pattern_keys(ROT1, "memory").keys
    require(pattern_keys(ROT2, "memory").decompositions[5] == (3, 3, -1), "ARK makes 5 of {3, 3, -1}")
    require(GROUP.from_galois_element(5) == GROUP.rotation(1), "X -> X^5 is a rotation by 1")
    plan = STRATEGIES["lowmem"].plan(slots_layer(), CostModel())
    return {
        "rot1": len(ROT1),
        "rot1_half": round(0.54 * len(ROT1)),
        "rot1_keys": len(rot1),
        "rot1_others": " and ".join(str(key) for key in rot1 if key & (key - 1)),
        "wrong": -(3 * 3),
        "lowmem_rotations": plan.switches,
        "lowmem_keys": len(plan.keys),
        "lowmem_hops": plan.max_hops,
    }


def table_1(networks_by_name: Mapping[str, Network]) -> str:
    """Table I, and ConvFHE's keys by its source."""
    rows = []
    for setting, (keys, everything, share) in TABLE_1.items():
        count, stored = convfhe.made_keys(read("convfhe_resnet"), setting)
        used = network_of(networks_by_name, setting).own
        rows.append(
            (
                setting,
                f"{keys:.2f}",
                f"{everything:.2f}",
                f"{share:.2f}",
                f"{100 * keys / everything:.2f}",
                f"{count}: {stored / GB:.1f}",
                f"{len(used.keys)}: {used.stored_bytes / GB:.1f}",
            )
        )
    headings = ("setting", "paper, keys, GB", "paper, all, GB", "paper, %", "the quotient, %")
    return table((*headings, "keys made by the source, GB", "of them used, GB"), rows)


def tables_2_and_3(networks_by_name: Mapping[str, Network], model: CostModel) -> str:
    """Tables II and III, ARK's strategies with the source's key shapes, and `optimal`."""
    rows: list[Sequence[object]] = []

    def cells(own: float, *others: float, digits: int = 1) -> str:
        return f"{own:.{digits}f} to " + " / ".join(f"{other:.{digits}f}" for other in others)

    for setting in TABLE_1:
        network = network_of(networks_by_name, setting)
        ours = configurations(network)
        own = network.own
        for name, plan in ours.items():
            paper = TABLES_2_3.get((setting, name))
            printed = ["", "", ""]
            if paper is not None:
                printed = [
                    cells(*paper.gigabytes, digits=2),
                    cells(*paper.seconds, digits=0),
                    cells(*paper.generation, digits=0),
                ]
            rows.append(
                (
                    setting,
                    name,
                    *printed,
                    cells(own.stored_bytes / GB, both_halves(plan) / GB),
                    cells(network.seconds, plan.seconds(model)),
                    cells(generation(own, model), generation(plan, model), digits=0),
                )
            )
    headings = ("setting", "strategy", "paper, GB", "paper, s", "paper, key generation, s")
    return table((*headings, "here, GB", "here, s", "here, key generation, s"), rows)


def shares() -> dict[tuple[str, str], list[tuple[float, float, float]]]:
    """Figure 8 by tables II and III: setting and configuration to the percentages of memory saved, of time
    added and of key generation saved, for CRot1 and CRot2.
    """
    out = {}
    for key, paper in TABLES_2_3.items():
        out[key] = [
            (
                100 * (1 - paper.gigabytes[case] / paper.gigabytes[0]),
                100 * (paper.seconds[case] / paper.seconds[0] - 1),
                100 * (1 - paper.generation[case] / paper.generation[0]),
            )
            for case in (1, 2)
        ]
    return out


def check_figure_8(ours: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> None:
    """Check what the text says about the figure."""
    most = max(share[1] for shares_of_setting in shares().values() for share in shares_of_setting)
    added = [
        shares_of_setting[name][1]
        for shares_of_setting in ours.values()
        for name in ("ark-memory", "ark-time")
    ]
    require(min(added) > most, "time grows more here than in the paper")


def our_shares(network: Network, model: CostModel) -> dict[str, tuple[float, float, float]]:
    """The same of the strategies here, against the program's own keys."""
    own = network.own
    return {
        name: (
            100 * (1 - both_halves(plan) / own.stored_bytes),
            100 * (plan.seconds(model) / network.seconds - 1),
            100 * (1 - generation(plan, model) / generation(own, model)),
        )
        for name, plan in configurations(network).items()
    }


def configurations(network: Network) -> dict[str, KeyPlan]:
    """ARK's strategies with the keys of ConvFHE's source, and `optimal` in the time of its own keys."""
    workload, model = network.workload, network.model
    out = {
        name: convfhe.with_own_keys(STRATEGIES[name].plan(workload, model))
        for name in ("ark-memory", "ark-time")
    }
    if 1.0 in network.best:
        out["optimal"] = network.best[1.0]
    return out


def network_of(networks_by_name: Mapping[str, Network], setting: str) -> Network:
    """The network of a setting, or the one that has the same key switches."""
    if setting in networks_by_name:
        return networks_by_name[setting]
    groups = convfhe.convert(read("convfhe_resnet"), setting).groups
    return next(network for network in networks_by_name.values() if network.workload.groups == groups)


def both_halves(plan: KeyPlan) -> int:
    """Bytes of a plan's keys without seeds, as ConvFHE stores them."""
    return sum(key.shape.stored_bytes * (2 if key.shape.seeded else 1) for key in plan.keys)


def generation(plan: KeyPlan, model: CostModel) -> float:
    """Seconds to make the keys of a plan, one thread."""
    return sum(model.key_seconds(key.shape) for key in plan.keys)


def slots_layer() -> Workload:
    """The 5x5 kernel of one ciphertext in ConvFHE's parameters."""
    return Workload("5x5 kernel", _chain(), (make_group(GROUP, "kernel", LEVEL, KERNEL),))


def coefficients_layer() -> Workload:
    """A packing of ConvFHE: automorphisms of one ciphertext each."""
    packs = read("convfhe_resnet")["pack_automorphisms"]
    targets = [GROUP.from_galois_element(int(pack["galois"])) for pack in packs]
    groups = tuple(make_group(GROUP, "layer/pack", LEVEL, [target]) for target in targets)
    return Workload("packing", _chain(), groups)


@dataclass(frozen=True)
class Planned:
    """A layer of figure 7 here.

    Attributes:
        keys: how many.
        gigabytes: both halves stored.
        milliseconds: of its key switches, one thread.
    """

    keys: int
    gigabytes: float
    milliseconds: float

    @classmethod
    def of(cls, plan: KeyPlan, model: CostModel) -> Planned:
        """The figures of a plan."""
        return cls(len(plan.keys), both_halves(plan) / GB, 1e3 * plan.seconds(model))


def figure_7(model: CostModel) -> dict[tuple[str, str], Planned]:
    """Encoding and owner of the keys to their figures here, in the shapes of ConvFHE's source; and
    `optimal` in the time of ConvFHE's keys, if a plan is as fast.
    """
    out = {}
    for encoding, convolution in (("slots", slots_layer()), ("coefficients", coefficients_layer())):
        for layer in (layer for layer in FIGURE_7 if layer.encoding == encoding):
            plan = convfhe.with_own_keys(STRATEGIES[layer.strategy].plan(convolution, model))
            out[encoding, layer.whose] = Planned.of(plan, model)
        own = convfhe.with_own_keys(STRATEGIES["all-required"].plan(convolution, model))
        with step(f"figure 7, {encoding}"), suppress(InfeasibleBudgetError):
            best = Planner(convolution, model).best(Budget(seconds=own.seconds(model)))
            out[encoding, "optimal"] = Planned.of(best, model)
    return out


def figure_7_table(planned: Mapping[tuple[str, str], Planned]) -> tuple[str, dict[str, object]]:
    """The numbers of figure 7, and values for the text."""
    rows: list[Sequence[object]] = []
    for (encoding, whose), here in planned.items():
        paper = next((one for one in FIGURE_7 if (one.encoding, one.whose) == (encoding, whose)), None)
        printed = ["", "", ""]
        if paper is not None:
            printed = [str(paper.keys), f"{paper.gigabytes:.2f}", f"{paper.milliseconds:.0f}"]
        numbers = (here.keys, f"{here.gigabytes:.2f}", f"{here.milliseconds:.0f}")
        rows.append((f"{encoding}, {whose}", *printed, *numbers))
    own, ark, lowmem = FIGURE_7[:3]
    slopes = [
        (one.gigabytes - other.gigabytes) / (one.keys - other.keys)
        for one, other in ((own, ark), (ark, lowmem))
    ]
    rest = [one.gigabytes - slope * one.keys for one, slope in zip((ark, lowmem), slopes, strict=True)]
    source = int(read("convfhe_resnet")["params"]["one_full_key_bytes"]) / GB
    values: dict[str, object] = {
        "per_key": f"{min(slopes):.2f} to {max(slopes):.2f}",
        "per_key_of_source": f"{min(slopes) / source:.1f}",
        "beside_keys": f"{min(rest):.1f} to {max(rest):.1f}",
    }
    headings = ("encoding, keys of", "paper, keys", "paper, GB", "paper, ms", "here, keys", "here, GB")
    return table((*headings, "here, ms"), rows), values


@cache
def _chain() -> Chain:
    return convfhe.convert(read("convfhe_resnet"), "3-20-1").chain
