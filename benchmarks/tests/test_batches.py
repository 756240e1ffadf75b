import numpy as np
import pytest
from keywright import compiler
from keywright.compiler.checking import run_onnxruntime
from keywright.runtime import run_clear
from studies import batches


def test_a_line_has_medians_of_a_sample() -> None:
    row = batches.Row(4, 3, [0.3, 0.6, 1.2], [1.5] * 3, 3000, 1500, 5_000_000, 1e-8, 1e-6, 0.5)
    head, rule, line = batches.table([row])
    assert head.count("|") == rule.count("|") == line.count("|")
    assert line == "| 4 | 200 [100, 400] | 500 [500, 500] | 1 | 0.5 | 5 | 1.0e-08 | 50.0% |"


def test_the_network_is_followed() -> None:
    pytest.importorskip("onnxruntime")
    model, typical, tests = batches.perceptron()
    assert tests.shape == (143, 30)
    fit = compiler.Fit(calibration=typical, activations={"relu": batches.ACTIVATION})
    program = compiler.compile_program(
        model, compiler.Target(slots=16384, levels=14, samples=len(tests)), fit
    )
    assert program.batch == 256
    labels = run_onnxruntime(model, tests).argmax(1)
    assert np.array_equal(run_clear(program, tests).argmax(1), labels)
