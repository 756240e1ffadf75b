"""Published strategies and `optimal` for the programs of the lists."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from keywright.errors import InfeasibleBudgetError
from keywright.plan import STRATEGIES, Budget, CostModel, KeyPlan, Planner, Workload
from keywright.plan.keys.derivation import DerivationDesign
from keywright.plan.search.joint_planner import JointPlanner
from published import convfhe, fhe_mp_cnn

from studies.network_keys.page_parts import GB, step, table
from studies.network_keys.rotation_lists import read, workloads

FACTORS = (0.75, 1.0, 1.05, 1.5)
OPEN_FACTORS = (0.5, 0.75, 1.0, 1.05, 1.5)
SPECIAL = ((61.0,) * 4, (61.0,), (51.0,))
"""Special primes that FHE-MP-CNN is planned with under a ternary secret, beside its own parameters."""
SENT = 600e6
SHARE = 15
"""ConvFHE's bytes are to become at most this part of them, in no more time."""
STORED = ((1.05, 4.0), (1.5, 1.5))
"""Most GB that FHE-MP-CNN's keys are to have, in so much of the time of all-required."""


@dataclass
class Network:
    """A program with its own plan, to which budgets are relative, and the plans for it.

    Attributes:
        workload: from a list.
        model: predicts times.
        hops: most hops of `optimal`.
    """

    workload: Workload
    model: CostModel
    hops: int
    planner: Planner = field(init=False)
    own: KeyPlan = field(init=False)
    best: dict[float, KeyPlan] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Search, and take the best plan for each budget of time."""
        with step(self.workload.name):
            every = STRATEGIES["all-required"].plan(self.workload, self.model)
            # ConvFHE alone makes keys of two kinds.
            own = self.workload.name.startswith("ConvFHE")
            self.own = convfhe.with_own_keys(every) if own else every
            self.planner = Planner(self.workload, self.model, max_hops=self.hops)
            for factor in FACTORS:
                try:
                    self.best[factor] = self.planner.best(Budget(seconds=factor * self.seconds))
                except InfeasibleBudgetError as error:
                    print(f"\n{error}", file=sys.stderr)

    @property
    def seconds(self) -> float:
        """Predicted time of the program with its own keys."""
        return self.own.seconds(self.model)

    def rows(self) -> str:
        """A row for the program's own keys, for each strategy, and for `optimal` at each budget."""
        plans: list[tuple[str, KeyPlan]] = []
        if self.own.strategy != "all-required" or not self.own.keys[0].shape.seeded:
            plans.append(("ConvFHE's own keys, both halves stored", self.own))
        plans += [(name, strategy.plan(self.workload, self.model)) for name, strategy in STRATEGIES.items()]
        plans += [(f"optimal, time at most {factor:g}x", plan) for factor, plan in self.best.items()]
        rows = [
            (
                name,
                len(plan.keys),
                f"{plan.stored_bytes / GB:.2f}",
                f"{plan.seconds(self.model):.1f}",
                f"{plan.seconds(self.model) / self.seconds:.2f}",
                plan.max_hops,
                f"{plan.noise_bits(self.model):.1f}",
                "" if plan.gap is None else f"{100 * plan.gap:.0f} %",
            )
            for name, plan in plans
        ]
        headings = ("strategy", "keys", "GB, seeded", "s", "of its own", "hops", "noise, bits", "gap")
        return table(headings, rows)


def networks(model: CostModel, hops: int) -> Mapping[str, Network]:
    """Every program of the lists, planned."""
    return {name: Network(workload, model, hops) for name, workload in workloads().items()}


def open_network(model: CostModel, hops: int) -> tuple[JointPlanner, float]:
    """FHE-MP-CNN with the factors of its bootstrappings, its special primes and its secret open, its own
    parameters first; and the predicted seconds of its own keys."""
    data = read("fhe_mp_cnn_resnet20")
    own = fhe_mp_cnn.convert_open(data)
    variants = [fhe_mp_cnn.convert_open(data, special) for special in SPECIAL]
    with step("FHE-MP-CNN, everything open"):
        planner = JointPlanner([own, *variants], model, max_hops=hops)
    return planner, STRATEGIES["all-required"].plan(own.published, model).seconds(model)


def open_plans(planner: JointPlanner, every: float) -> dict[tuple[str, float], KeyPlan]:
    """The best plans with its own parameters and with any, by budget."""
    plans = {}
    for name, best in (("its own", planner.planners[0].best), ("any", planner.best)):
        for factor in OPEN_FACTORS:
            with step(f"{name} parameters, time at most {factor:g}x"), suppress(InfeasibleBudgetError):
                plans[name, factor] = best(Budget(seconds=factor * every))
    return plans


def open_rows(plans: Mapping[tuple[str, float], KeyPlan], every: float, model: CostModel) -> str:
    """A row for each of them."""
    rows = []
    for (name, factor), plan in plans.items():
        chain = plan.workload.chain
        rows.append(
            (
                name,
                f"{factor:g}x",
                f"{len(chain.p)} x {chain.p[0]:g}"
                + (", ephemeral" if plan.workload.common.ephemeral else ""),
                len(plan.keys),
                f"{plan.stored_bytes / GB:.2f}",
                f"{plan.seconds(model) / every:.2f}",
                plan.max_hops,
                f"{plan.noise_bits(model):.1f}",
                f"{100 * (plan.gap or 0.0):.0f} %",
            )
        )
    headings = ("parameters", "time at most", "special primes", "keys", "GB, seeded", "of its own", "hops")
    return table((*headings, "noise, bits", "gap"), rows)


def derived(planner: JointPlanner, every: float) -> dict[float, DerivationDesign | None]:
    """Derivations from `SENT` bytes, by time of the program."""
    out: dict[float, DerivationDesign | None] = {}
    for factor in (1.05, 1.5):
        with step(f"derived keys, time at most {factor:g}x"):
            try:
                out[factor] = planner.derived(SENT, factor * every)
            except InfeasibleBudgetError as error:
                print(f"\n{error}", file=sys.stderr)
                out[factor] = None
    return out


def derived_rows(plans: Mapping[float, DerivationDesign | None], every: float, model: CostModel) -> str:
    """A row for each budget of time."""
    rows: list[Sequence[object]] = []
    for factor, plan in plans.items():
        if plan is None:
            rows.append([f"{factor:g}x", "none found", *[""] * 8])
            continue
        chain = plan.plan.workload.chain
        rows.append(
            (
                f"{factor:g}x",
                f"{plan.sent_bytes / 1e6:.0f}",
                f"{len(plan.masters)} of {plan.shape.stored_bytes / 1e6:.0f} MB",
                len(plan.direct),
                f"{len(chain.p)} x {chain.p[0]:g}",
                f"{plan.costs.client_seconds:.1f}",
                f"{plan.costs.server_seconds:.0f}",
                f"{plan.stored_bytes / GB:.1f}",
                f"{plan.plan.seconds(model) / every:.2f}",
                f"{plan.costs.noise_bits:.1f}",
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
    return table((*headings, "held, GB", "of its own", "noise, bits"), rows)


def targets(
    networks_by_name: Mapping[str, Network],
    opened: Mapping[tuple[str, float], KeyPlan],
    sent: Mapping[float, DerivationDesign | None],
) -> str:
    """The targets of this project, and whether they are reached."""
    rows = []

    def note(what: str, budget: str, target: float, ours: float | None, *, theirs_stored: bool) -> None:
        if ours is None:
            rows.append((what, budget, f"{target:.2f}", "none found", "", "no"))
            return
        reached = "yes" if ours <= target else "no"
        if theirs_stored:  # The target is of keys with both halves: like for like, ours have them, too.
            reached = (
                f"{reached}, seeded; both halves: {2 * ours:.2f}, {'yes' if 2 * ours <= target else 'no'}"
            )
        rows.append((what, budget, f"{target:.2f}", f"{ours:.2f}", f"{ours / target:.2f}", reached))

    for setting in ("3-20-1", "3-20-3"):
        _, stored = convfhe.made_keys(read("convfhe_resnet"), setting)
        best = networks_by_name[setting].best.get(1.0)
        target = stored / GB / SHARE
        what = f"ConvFHE {setting}: 1/{SHARE} of its own {stored / GB:.1f} GB"
        note(what, "1x", target, None if best is None else best.stored_bytes / GB, theirs_stored=True)
    for factor, target in STORED:
        best = opened.get(("any", factor))
        ours = None if best is None else best.stored_bytes / GB
        note("FHE-MP-CNN, stored", f"{factor:g}x", target, ours, theirs_stored=False)
    for factor, keys in sent.items():
        ours = None if keys is None else keys.sent_bytes / GB
        note("FHE-MP-CNN, sent with derived keys", f"{factor:g}x", SENT / GB, ours, theirs_stored=False)
    return table(("keys of", "time at most", "target, GB", "GB, seeded", "of the target", "reached"), rows)
