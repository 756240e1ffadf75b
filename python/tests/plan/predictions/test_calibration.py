"""Calibrations: the fit to a recorded machine, and malformed files. Nothing is timed here."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median

import keywright as kw
import numpy as np
import pytest
from keywright.errors import FormatError
from keywright.plan import CostModel
from keywright.plan.cost.calibration import (
    Calibration,
    Measurement,
    _nonnegative,
    describe_machine,
    fit,
    measured_work,
    ring_factor,
    stored_model,
)
from keywright.plan.cost.gauge import CHAINS
from keywright.plan.cost.measuring import cases, medians, transform_cases
from keywright.plan.cost.model import RING_FACTORS, TYPICAL_WEIGHTS, Weights, Work, engine_use
from keywright.plan.cost.operations import Operation, product_operation
from keywright.plan.ring.chain import shapes
from keywright.plan.workload.ring_switches import RingSwitches, ring_keys

RECORDED = Path(__file__).parents[1] / "calibration.json"
"""The output of keywright calibrate on one machine with AVX-512."""


def recorded() -> Calibration:
    return Calibration.from_json(RECORDED.read_text())


def test_the_recorded_machine_is_fitted_and_predicted() -> None:
    calibration = recorded()
    again = fit(calibration.measured)
    for log_n, weights in calibration.weights.items():
        assert np.allclose(
            [value or 0.0 for value in vars(again.weights[log_n]).values()],
            [value or 0.0 for value in vars(weights).values()],
            rtol=1e-6,
            atol=1e-12,
        )
    assert again.gauges == calibration.gauges
    model = calibration.model
    for log_n in calibration.weights:
        for what in ("switch", "hoisted"):
            measurements = [
                e for e in calibration.measured if e.what == what and e.shape.chain.log_n == log_n
            ]
            slow = [entry.gauge / calibration.gauges[log_n] for entry in measurements]
            errors = [
                abs(entry.predicted(model) * times / entry.seconds - 1)
                for entry, times in zip(measurements, slow, strict=True)
            ]
            assert len(errors) >= 2
            assert median(errors) <= 0.1
            assert max(errors) <= 0.2
    for entry in calibration.measured:
        cost = model.switch(entry.shape, entry.level)
        assert cost is not None
        if entry.what == "switch":
            assert entry.predicted(model) == pytest.approx(cost.alone)
        elif entry.what == "hoisted":
            assert entry.predicted(model) == pytest.approx(cost.own + cost.shared / entry.count)
    assert Calibration.from_json(calibration.to_json()) == calibration


def test_predictions_without_a_calibration_are_of_the_recorded_machine() -> None:
    calibration = recorded()
    assert set(calibration.gauges) == set(RING_FACTORS)
    for log_n, gauge in calibration.gauges.items():
        entries = [entry for entry in calibration.measured if entry.shape.chain.log_n == log_n]
        timed = [entry for entry in entries if entry.what not in ("key", "load")]
        rows = [np.array(measured_work(e).features) * e.gauge / (e.seconds * gauge) for e in timed]
        assert ring_factor(TYPICAL_WEIGHTS, np.array(rows)) == pytest.approx(RING_FACTORS[log_n], rel=0.01)
        steady = [e.predicted(CostModel()) * e.gauge / (e.seconds * gauge) for e in entries]
        for what in ("switch", "hoisted", "transform", "product", "ring", "key"):
            ratios = [r for r, entry in zip(steady, entries, strict=True) if entry.what == what]
            assert not ratios or 0.8 <= median(ratios) <= 1.2, (log_n, what)


OTHER = Weights(
    transform=160e-6,
    product=100e-6,
    conversion=30e-6,
    key_limb=2e-3,
    load_limb=1e-3,
    key_row=3e-3,
    key_prime=4e-3,
    wide_transform=190e-6,
    wide_product=130e-6,
    wide_conversion=25e-6,
    stored_product=140e-6,
    diagonal=70e-6,
    multiplication=40e-6,
    visit=30e-6,
    embedding=900e-6,
    call=20e-6,
)
"""Weights between half and twice the typical ones."""


def made_entries(weights: Weights) -> list[Measurement]:
    """Return the measurements of a machine with these weights."""
    model = CostModel({15: weights})
    entries = []
    for case in cases(15):
        entries += [
            Measurement(what, case.shape, case.level, n, 1.0) for what, n in (("switch", 1), ("hoisted", 4))
        ]
        entries += [Measurement(what, case.shape, case.shape.level, 1, 1.0) for what in ("key", "load")]
    for transform_case in transform_cases(15):
        shape, babies, giants = transform_case.shape, transform_case.babies - 1, transform_case.giants - 1
        entries.append(
            Measurement("transform", shape, shape.level, babies, 1.0, giants, transform_case.operation)
        )
    for level in (13, 5):
        shape = shapes(entries[0].shape.chain, level)[0]
        entries.append(Measurement("product", shape, level, 1, 1.0, 0, product_operation("", level)))
        for counts in ({"visits": 2, "rescaled": 2}, {"visits": 2}, {"transforms": 1, "embeddings": 1}):
            entries.append(Measurement("operation", shape, level, 1, 1.0, 0, Operation("", level, **counts)))
    return [replace(entry, seconds=entry.predicted(model)) for entry in entries]


def test_weights_in_proportion_are_found() -> None:
    keys = {"key_limb": 2e-3, "load_limb": 1e-3, "key_row": 3e-3, "key_prime": 4e-3}
    scaled = {name: 1.7 * value for name, value in vars(TYPICAL_WEIGHTS).items()}
    weights = Weights(**(scaled | keys))
    fitted = fit(made_entries(weights)).weights[15]
    assert np.allclose(list(vars(fitted).values()), list(vars(weights).values()), rtol=1e-6)


def test_other_weights_are_found_as_far_as_times_tell() -> None:
    entries = made_entries(OTHER)
    calibration = fit(entries)
    errors = [abs(entry.predicted(calibration.model) / entry.seconds - 1) for entry in entries]
    assert max(errors) <= 0.05
    members = vars(calibration.weights[15])
    for name, value in vars(OTHER).items():
        # A call takes little of the time of anything in this ring.
        assert members[name] == pytest.approx(value, rel=0.6 if name == "call" else 0.2)


def test_a_machine_that_is_slow_now_and_then_is_fitted_at_one_speed() -> None:
    rng = np.random.default_rng(1)
    slow = rng.permutation(np.linspace(0.7, 1.3, len(entries := made_entries(OTHER))))
    drifted = [
        replace(entry, seconds=entry.seconds * times, gauge=0.2 * times)
        for entry, times in zip(entries, slow, strict=True)
    ]
    steady, drifting = fit(entries), fit(drifted)
    assert drifting.gauges[15] == pytest.approx(0.2 * np.median(slow))
    for name, value in vars(steady.weights[15]).items():
        assert vars(drifting.weights[15])[name] == pytest.approx(value * np.median(slow), rel=1e-6, abs=1e-12)


def test_runs_are_settled_by_medians() -> None:
    case = replace(made_entries(OTHER)[0], seconds=0.0, gauge=0.0)
    other = replace(case, level=case.level - 1)
    # The machine slows down to half its speed, and the clock of one run falls behind.
    times = [(1.0, 0.1), (1.1, 0.1), (2.0, 0.2), (0.01, 0.1), (2.2, 0.2)]
    runs = [replace(case, seconds=seconds, gauge=gauge) for seconds, gauge in times]
    first, second = medians([*runs[:2], replace(other, seconds=3.0, gauge=0.5), *runs[2:]])
    assert (first.seconds, first.seconds / first.gauge) == pytest.approx((1.1, 10.0))
    assert second == replace(other, seconds=3.0, gauge=0.5)


@pytest.mark.parametrize("seed", range(20))
def test_nonnegative_least_squares_against_every_support(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(9, 4)) + 0.4
    goal = rng.normal(size=9) + 1
    least = min(
        float(np.sum((rows[:, list(kept)] @ solution - goal) ** 2))
        for kept in (
            tuple(i for i in range(4) if mask[i]) for mask in product((False, True), repeat=4) if any(mask)
        )
        for solution in [np.linalg.lstsq(rows[:, list(kept)], goal, rcond=None)[0]]
        if (solution >= 0).all()
    )
    x = _nonnegative(rows, goal)
    assert (x >= 0).all()
    assert np.sum((rows @ x - goal) ** 2) <= least * (1 + 1e-9)


def test_cases_are_keys_that_the_engine_makes() -> None:
    for log_n, (q, p) in CHAINS.items():
        parameters = kw.Parameters.from_bits(log_n, q, p, 40)
        for held_out in (False, True):
            listed = cases(log_n, held_out=held_out)
            assert len(set(listed)) == len(listed) >= 3
            for case in listed:
                shape = case.shape
                alpha = min(shape.alpha, max(shape.level + 1, shape.special))
                spec = kw.KeySpec.rotation(
                    parameters, 1, shape.level, alpha, shape.seeded, list(shape.special_primes)
                )
                assert spec.bytes == shape.stored_bytes
                assert case.level <= shape.level
                assert engine_use(shape, case.level) is not None


def test_threads_are_as_much_faster_as_measured_or_by_amdahls_law() -> None:
    calibration = replace(recorded(), speedups={2: 1.6})
    assert Calibration.from_json(calibration.to_json()) == calibration
    assert [calibration.speedup(threads) for threads in (1, 2)] == [1, 1.6]
    # Three quarters of the time are shared: 1 / (1/4 + 3/8) = 1.6.
    assert calibration.speedup(4) == pytest.approx(1 / (1 / 4 + 3 / 16))
    assert [recorded().speedup(threads) for threads in (1, 2)] == [1, None]


def test_a_switch_from_a_larger_ring_is_predicted_as_plans_count_it() -> None:
    model = recorded().model
    chain = next(e.shape.chain for e in recorded().measured if e.shape.chain.log_n == 15)
    (keys,) = ring_keys(chain, [RingSwitches(16, 5, 1)])
    entry = Measurement("ring", keys.shape, 4, keys.parts, 1.0)
    assert keys.parts == 2
    assert entry.predicted(model) == keys.work(4).seconds(model.of_degree(15)) > 0
    fitted = fit([*recorded().measured, replace(entry, seconds=entry.predicted(model))])
    assert Calibration.from_json(fitted.to_json()).measured[-1].what == "ring"
    with pytest.raises(
        FormatError, match="measured at the higher level", check=lambda error: error.code == "calibration"
    ):
        replace(entry, level=keys.shape.level + 1).predicted(model)


def test_weights_are_seconds() -> None:
    with pytest.raises(ValueError, match="finite"):
        Weights(-1.0, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="finite"):
        Weights(1.0, 0.0, 0.0, 0.0, wide_product=float("inf"))
    with pytest.raises(ValueError, match="one ring degree"):
        CostModel({})
    assert Work((1, 1), (1, 1), (1, 1)).seconds(Weights(1, 2, 3, 0)) == 12
    assert Work((1, 1), (1, 1), (1, 1)).seconds(Weights(1, 2, 3, 0, wide_conversion=0.0)) == 9


def test_files_that_are_no_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "calibration.json"
    monkeypatch.setenv("KEYWRIGHT_CALIBRATION", str(path))
    assert Calibration.path() == path
    assert Calibration.stored() is None
    assert stored_model().weights == CostModel().weights
    path.write_text(RECORDED.read_text())
    with pytest.raises(
        FormatError, match="run keywright calibrate", check=lambda error: error.code == "machine"
    ) as error:
        stored_model()
    assert (error.value.found, error.value.expected) == ("recorded", describe_machine())
    here = replace(recorded(), machine=describe_machine())
    path.write_text(here.to_json())
    assert stored_model().weights == dict(here.weights)
    data = json.loads(RECORDED.read_text())
    for name, value in (
        ("format", "other"),
        ("weights", {}),
        ("weights", {"16": {"transform": 1}}),
        ("measured", []),
        ("measured", [{"what": "switch"}]),
        ("measured", [{**data["measured"][0], "what": "nap"}]),
        ("measured", [{**data["measured"][0], "seconds": 0}]),
        ("measured", [{**data["measured"][0], "operation": {"name": "", "level": 0, "count": 1, "naps": 1}}]),
        ("measured", [{**data["measured"][0], "gauge": 0}]),
        ("gauges", {"13": 1.0}),
        ("weights", {**data["weights"], "17": data["weights"]["16"]}),
        ("gauges", dict.fromkeys(data["gauges"], 0.0)),
        ("format", "keywright-calibration-3"),
        ("chains", [{"log_n": 99, "q": [30], "p": [30], "bound": None}]),
        ("chains", 7),
        ("speedups", {"1": 1.0}),
        ("speedups", {"2": 0}),
    ):
        with pytest.raises(
            FormatError, match="not a calibration", check=lambda error: error.code == "calibration"
        ):
            Calibration.from_json(json.dumps({**data, name: value}))
    for text in ("", "[]", "null", "{", RECORDED.read_text()[:-9], "[" * 100_000):
        with pytest.raises(
            FormatError, match="not a calibration", check=lambda error: error.code == "calibration"
        ):
            Calibration.from_json(text)
    with pytest.raises(FormatError, match="no key switch", check=lambda error: error.code == "calibration"):
        fit([entry for entry in recorded().measured if entry.what == "key"])
    first = recorded().measured[0]
    with pytest.raises(
        FormatError, match="without its operation", check=lambda error: error.code == "calibration"
    ):
        replace(first, what="transform", level=first.shape.level).predicted(recorded().model)
    with pytest.raises(
        FormatError, match="measured at the higher level", check=lambda error: error.code == "calibration"
    ):
        replace(first, what="switch", level=first.shape.level + 1).predicted(recorded().model)
