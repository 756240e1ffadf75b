"""Odd graphs beside onnxruntime: the compiled function is what it computes, or there is a typed refusal.

The other tests of operators take the reference implementation, by which the compiler itself folds constants.
Cases are those that both, or one of them, once read otherwise.
"""

import keywright as kw
import numpy as np
import pytest
from keywright.compiler import Fit
from keywright.compiler.approximating import approximate
from keywright.errors import ModelRefusedError

from ..running import encrypted, small
from .cases import CASES, Array, ort


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_what_the_runtime_computes_or_refused(name: str) -> None:
    case = CASES[name]
    model, samples = case.model(), case.data
    if case.refused is not None:
        with pytest.raises(ModelRefusedError, match=case.refused):
            approximate(model, Fit(calibration=samples))
        return
    approximated = approximate(model, Fit(calibration=samples, activations={}, error=1e300))
    outputs = approximated.outputs
    if approximated.output.client_part is not None:
        parts = approximated.output.client_part.run(outputs).values()
        outputs = np.concatenate(
            [np.asarray(part, np.float64).reshape(len(samples), -1) for part in parts], 1
        )
    agree(outputs, case.expected(model))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refused is None])
def test_compiled_samples_are_those_of_the_runtime_together(name: str) -> None:
    """What the runtime computes of all samples at once are the rows that it computes of each."""
    case = CASES[name]
    model = case.model()
    try:
        together = case.run(model, case.data) if case.batch == "N" else []
    except ort.capi.onnxruntime_pybind11_state.RuntimeException:
        return  # it takes one sample
    for place, each in enumerate(together):
        assert len(each) == len(case.data)
        alone = np.concatenate([case.run(model, sample[None])[place] for sample in case.data])
        agree(each.astype(np.float64), alone.astype(np.float64))


def agree(outputs: Array, expected: Array) -> None:
    """Check that outputs are those of single precision."""
    assert outputs.shape == expected.shape
    size = float(np.abs(expected).max())
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-3 * size if size < 1e-6 else 2e-5 * size)


def few() -> list[str]:
    """Return the cases that are run on ciphertexts: those of one linear map."""
    return [name for name, case in CASES.items() if case.encrypted]


@pytest.mark.parametrize("name", few())
def test_a_model_on_ciphertexts_is_what_the_runtime_computes(name: str) -> None:
    case = CASES[name]
    model, samples = case.model(), case.data
    compiled = kw.compile(model, samples, parameters=small(3))
    outputs = encrypted(compiled, samples[:1]).outputs.reshape(1, -1)
    expected = case.expected(model)
    np.testing.assert_allclose(outputs, expected[:1], rtol=0, atol=1e-4 * np.abs(expected).max())
