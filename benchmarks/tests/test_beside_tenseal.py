import numpy as np
import pytest
from keywright.compiler.checking import run_onnxruntime
from studies import beside_tenseal as study


@pytest.mark.parametrize("make", [study.matrix, study.logistic, study.network])
def test_layers_and_the_model_are_the_same_function(make) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("onnxruntime")
    work = make()
    clear = work.clear()
    # At most four products of 64 terms in single precision; partial sums are below those of magnitudes.
    largest = np.abs(work.samples)
    for layer in work.layers:
        largest = study.Layer(np.abs(layer.weights), np.abs(layer.bias), layer.square)(largest)
    assert (np.abs(run_onnxruntime(work.model, work.samples) - clear) <= 2**-24 * 512 * largest).all()


def test_the_smallest_ring_that_holds_the_levels_is_asked_for() -> None:
    request = study.network().request()
    assert request["log_q"] == [60, 45, 45, 45, 45, 45, 60]
    assert request["log_n"] == 14
    assert study.matrix().request()["log_n"] == 13
    assert [len(layer["weights"]) for layer in request["layers"]] == [31, 33, 17]
    values = np.append(study.network().samples[0], 1.0)
    for layer in request["layers"]:
        values = values @ np.array(layer["weights"])
        values = values**2 if layer["square"] else values
    assert values == pytest.approx(study.network().clear()[0], rel=1e-12)
    assert [layer["square"] for layer in request["layers"]] == [True, True, False]


def test_a_wrong_result_ends_the_run() -> None:
    line = {"result": [1.0, 2.0]}
    study.check("right", line, np.array([1.0, 2.0001]), np.array([3.0, 9.0]), 2.0)
    assert line["same_label"]
    assert line["error"] == pytest.approx(1e-4)
    with pytest.raises(SystemExit, match=r"wrong: a result is off by 1"):
        study.check("wrong", {"result": [1.0, 3.0]}, np.array([1.0, 2.0]), np.array([0.0, 1.0]), 2.0)
    with pytest.raises(SystemExit):
        study.check("none", {"result": [np.nan]}, np.array([1.0]), np.array([1.0]), 2.0)


def test_ratios_are_of_a_round() -> None:
    lines = [
        [
            {"encrypt_s": t, "evaluate_s": 2 * t, "decrypt_s": t, "sent_bytes": 4000, "returned_bytes": 2000}
            | {"error": 1e-3, "same_label": True}
            for t in times
        ]
        for times in ((2.0, 8.0), (1.0, 2.0))
    ]
    facts = {side: {"setup_s": 3.0, "key_bytes": 5_000_000} for side in ("tenseal", "keywright")}
    rows = study.lines_of("a work", lines[0], lines[1], facts)
    assert rows[0] == ["a work", "encrypt, ms", "5000 (2000 to 8000)", "1500 (1000 to 2000)", "3 (2 to 4)"]
    assert rows[4][1:] == ["keys, MB", "5", "5", "1"]
    assert rows[-1][1:] == ["labels as the model's", "2 of 2", "2 of 2", ""]
