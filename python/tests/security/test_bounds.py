"""The bounds that keys are checked against, compared with the estimates, and the command that prints them."""

import json

import keywright as kw
import pytest
from keywright import security
from keywright._core import maximum_log_qp
from keywright.cli import main
from keywright.commands.planning.security import of_parameters

MARGIN = 0.05
"""Estimates are printed with one decimal: 127.95 is 128.0."""


@pytest.mark.parametrize(
    ("log_n", "weight"),
    [(13, None), (15, 32), (16, 24)]
    + [pytest.param(log_n, None, marks=pytest.mark.full) for log_n in (10, 11, 12, 14, 15, 16, 17)]
    + [pytest.param(log_n, w, marks=pytest.mark.full) for w in (192, 32) for log_n in (16, 17)]
    + [pytest.param(17, 24, marks=pytest.mark.full)],
)
def test_every_bound_has_128_bits_against_every_attack(log_n: int, weight: int | None) -> None:
    n = 1 << log_n
    secret = security.ternary() if weight is None else security.sparse(weight, n)
    estimate = security.estimate(security.Problem(n, maximum_log_qp(log_n, weight), secret))
    assert estimate.bits >= 128 - MARGIN, estimate.cheapest


def test_the_bound_for_weight_192_is_the_largest_there_is() -> None:
    bound = maximum_log_qp(15, 192)
    least, more = (
        security.estimate(security.Problem(1 << 15, log_q, security.sparse(192, 1 << 15))).bits
        for log_q in (bound, bound + 2)
    )
    assert least >= 128 > more


def test_the_command_prints_every_secret_of_a_preset(capsys: pytest.CaptureFixture[str]) -> None:
    name = next(name for name in kw.BootstrapperPlan.presets() if name.startswith("N15"))
    plan = kw.BootstrapperPlan.preset(name)
    assert main(["security", name, "--json"]) == 0
    key, ephemeral = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (key["what"], key["secret"], key["n"]) == ("the key", "ternary", 1 << 15)
    assert key["log_qp"] == pytest.approx(plan.parameters.log_qp, abs=1e-3)
    assert (ephemeral["what"], ephemeral["secret"]) == ("the ephemeral key", "sparse:32")
    assert ephemeral["log_qp"] <= maximum_log_qp(15, 32)
    for shown in (key, ephemeral):
        assert {row["attack"] for row in shown["attacks"]} == set(security.ATTACKS)
        bits = [row["bits"] for row in shown["attacks"] if row["bits"] is not None]
        assert shown["bits"] == min(bits) >= 128


def test_an_ephemeral_secret_is_estimated_with_its_own_weight() -> None:
    """Presets without an arcsine and with 7 levels for the reduction have a sparser one."""
    weights = {
        name: of_parameters(name, 3.19)["the ephemeral key"].secret.name
        for name in kw.BootstrapperPlan.presets()
    }
    sparser = {name for name, secret in weights.items() if secret == "sparse:24"}
    assert sparser == {"N16_QP1716_L13_S40", "N16_QP1716_L13_S40_real"}
    assert {weights[name] for name in weights.keys() - sparser} == {"sparse:32"}


def test_the_command_takes_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    # Without the dual attack of ePrint 2024/463: a toy, broken in seconds.
    assert main(["security", "--log-n", "10", "--log-qp", "100", "--secret", "sparse:64", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["secret"] == "sparse:64"
    assert printed["bits"] < 45
    assert main(["security", "--log-n", "10", "--log-qp", "100", "--model", "core-svp"]) == 0
    shown = capsys.readouterr().out
    assert "hybrid-mitm" in shown
    assert "core-svp" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to estimate"),
        (("N13_QP214_S38", "--log-n", "13"), "both parameters and a modulus"),
        (("--log-n", "13"), "need each other"),
        (("--log-n", "64", "--log-qp", "100"), "--log-n 64 is out of range"),
        (("--log-n", "13", "--log-qp", "100", "--secret", "sparse:"), "not a known distribution"),
        (("--log-n", "13", "--log-qp", "100", "--secret", "sparse:9000"), "weight of the secret"),
        (("--log-n", "13", "--log-qp", "1"), "modulus"),
        (("no-such-preset",), "neither a preset nor a file"),
    ],
)
def test_what_cannot_be_estimated_is_said(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["security", *arguments]) == 2
    assert said in capsys.readouterr().err
