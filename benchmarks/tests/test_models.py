import json
import re

import numpy as np
import pytest
from harness.folders import HERE
from keywright import compiler
from keywright.runtime import run_clear
from studies.models import measure
from studies.models.__main__ import HEADINGS, IMPORTS, MODELS, row


def test_quality_is_the_share_of_labels_or_of_variance() -> None:
    scores = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    assert measure.quality(scores, np.array([1, 0, 0, 0]), classes=True) == 0.75
    one = np.array([[0.5], [-0.5], [0.1]])
    assert measure.quality(one, np.array([1, 0, 0]), classes=True) == pytest.approx(2 / 3)
    # Residuals 1, 1, 0 of values whose squares about their mean sum to 2.
    values = np.array([[2.0], [1.0], [3.0]])
    assert measure.quality(values, np.array([1.0, 2.0, 3.0]), classes=False) == pytest.approx(0.0)


def test_a_row_is_of_a_test() -> None:
    line = {
        "model": "keras-dense",
        "tests": 50,
        "clear": 0.98,
        "encrypted": 0.96,
        "same_labels": 49,
        "encrypt_s": 0.25,
        "evaluate_s": 0.5,
        "decrypt_s": 0.25,
        "key_bytes": 7_000_000,
        "sent_bytes": 500_000,
        "returned_bytes": 100_000,
        "peak_bytes": 300_000_000,
    }
    cells = row(line)
    assert len(cells) == len(HEADINGS)
    assert cells[2:] == ["50", "98.0%", "96.0%", "49", "1.00", "20.0", "7.00", "10.0, 2.00", "300"]


def test_ten_models_of_four_frameworks() -> None:
    frameworks = {name.partition("-")[0] for name in MODELS}
    assert len(MODELS) == 10
    assert frameworks == set(IMPORTS)
    folder = HERE / "studies" / "models"
    for framework in frameworks:
        assert "==" in (folder / "frameworks" / f"{framework}.txt").read_text()
        source = (folder / "training" / f"{framework}.py").read_text()
        assert all(f'"{name}"' in source for name in MODELS if name.startswith(f"{framework}-"))


LARGE = re.compile(r"\b\d\.\d+e\+\d+\b")


@pytest.mark.parametrize("record", ["2026-11-23-models", "2026-11-23-tenseal"])
def test_the_page_has_the_lines_of_the_record(record: str) -> None:
    page = (HERE.parent / "docs" / "reproduction" / "models.md").read_text().splitlines()
    table = (HERE / "record" / record / "table.md").read_text().splitlines()
    # The page writes large numbers out, and a space before a percent sign.
    lines = [LARGE.sub(lambda number: f"{float(number[0]):.0f}", line) for line in table if line[:1] == "|"]
    lines = [line.replace("%", " %") for line in lines]
    assert len(lines) >= 12
    start = page.index(lines[0])
    assert page[start : start + len(lines)] == lines


def test_the_perceptron_keeps_its_accuracy_on_record() -> None:
    line = json.loads((HERE / "record" / "2026-11-23-models" / "sklearn-perceptron.json").read_text())
    assert line["tests"] == line["same_labels"] == 143
    assert line["encrypted"] == line["clear"]


@pytest.mark.filterwarnings("ignore")
def test_the_perceptron_keeps_its_labels() -> None:
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed: no model is exported here")
    from studies.models.training.sklearn import perceptron

    trained = perceptron(None)
    fit = compiler.Fit(calibration=trained.data.train, activations=MODELS["sklearn-perceptron"].activations)
    program = compiler.compile_program(
        trained.onnx, compiler.Target(slots=16384, levels=13, samples=143), fit
    )
    outputs = measure.labels(run_clear(program, trained.data.tests.astype(np.float64)))
    assert len(outputs) == 143
    assert np.array_equal(outputs, measure.labels(np.asarray(trained.outputs)))
