"""The SqueezeNet of examples/train_squeezenet.py becomes an ONNX file that computes what it should."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

CONVERTER = Path(__file__).parents[3] / "examples" / "convert_squeezenet.py"
SQUEEZED = {2: 16, 3: 16, 4: 32, 5: 32, 6: 48, 7: 48, 8: 64, 9: 64}


def weights(square: bool) -> dict[str, NDArray[np.float64]]:
    """Kernels that pass on the mean of their inputs, at the centre; activations that differ by layer."""
    weights: dict[str, NDArray[np.float64]] = {}

    def convolution(name: str, inputs: int, outputs: int, kernel: int) -> None:
        weight = np.zeros((outputs, inputs, kernel, kernel))
        weight[:, :, kernel // 2, kernel // 2] = 1 / inputs
        weights[f"{name}.weight"], weights[f"{name}.bias"] = weight, np.full(outputs, 0.25)
        if square and "expand" not in name:
            weights[f"{name}.coefficients"] = np.repeat([[0.1], [0.5], [0.2]], outputs, axis=1)

    convolution("conv_1", 3, 64, 3)
    inputs = 64
    for number, squeezed in SQUEEZED.items():
        convolution(f"fire_{number}.squeeze", inputs, squeezed, 1)
        for kernel in (1, 3):
            convolution(f"fire_{number}.expand{kernel}x{kernel}", squeezed, 4 * squeezed, kernel)
        inputs = 8 * squeezed
    convolution("conv_10", inputs, 10, 1)
    return weights


@pytest.mark.parametrize("square", [False, True], ids=["relu", "square"])
def test_the_network_is_that_of_the_weights(tmp_path: Path, square: bool) -> None:
    np.savez(tmp_path / "w.npz", accuracy=np.asarray(0.5), **weights(square))  # type: ignore[arg-type]
    command = [sys.executable, str(CONVERTER), str(tmp_path / "w.npz"), str(tmp_path / "m.onnx")]
    subprocess.run(command, check=True)
    mean = np.asarray([0.485, 0.456, 0.406])
    image = np.repeat(mean, 32 * 32).reshape(1, 3, 32, 32) * np.ones((1, 3, 32, 32))
    (scores,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(
        None, {"image": image.astype(np.float32)}
    )

    def activated(value: NDArray[np.float64]) -> NDArray[np.float64]:
        return 0.1 + 0.5 * value + 0.2 * value**2 if square else np.maximum(value, 0.0)

    def pooled(value: NDArray[np.float64]) -> NDArray[np.float64]:
        padded = np.pad(value, 1)
        return sum(
            padded[i : i + len(value) : 2, j : j + len(value) : 2] for i in range(3) for j in range(3)
        ) / np.asarray(9.0)

    # All channels are alike: one is followed. Padding of means counts as zeros.
    value = pooled(activated(np.full((32, 32), 0.25)))
    for number in SQUEEZED:
        value = activated(value + 0.25) + 0.25
        value = pooled(value) if number in (4, 8) else value
    expected = activated(value + 0.25).mean()
    assert scores.shape == (1, 10)
    assert np.abs(scores - expected).max() < 1e-4 * abs(expected)
