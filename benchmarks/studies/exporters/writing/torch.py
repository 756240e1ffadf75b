"""PyTorch, both exporters: `python -m studies.exporters.writing.torch FOLDER`."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnxscript
import torch
import transformers
from torch import nn
from torch.nn import functional

from studies.exporters.writing import attention
from studies.exporters.writing.files import SAMPLES, Case, normal, write

SCRIPTED, DYNAMO = range(13, 21), range(18, 26)
"""Opsets that each is asked for."""


class Function(nn.Module):  # type: ignore[misc]
    """A function of a value behind a dense layer, and one more layer."""

    def __init__(self, function: Callable[[Any], Any], inputs: int, hidden: int, outputs: int = 3) -> None:
        super().__init__()
        self.first, self.last, self.function = nn.Linear(inputs, hidden), nn.LazyLinear(outputs), function

    def forward(self, x: Any) -> Any:
        return self.last(self.function(self.first(x)))


class Recurrent(nn.Module):  # type: ignore[misc]
    """Scores of the last state of a sequence."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(3, 4, batch_first=True, **options)
        self.scores = nn.LazyLinear(2)

    def forward(self, x: Any) -> Any:
        states, _ = self.cell(x)
        return self.scores(states[:, -1])


def dense(function: Callable[[Any], Any]) -> nn.Module:
    """6-8-3 with a function in the middle."""
    return Function(function, 6, 8)


def folded(x: Any) -> Any:
    """(count, 8) as (count, 2, 4)."""
    return x.reshape(-1, 2, 4)


class _Labels(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.scores(x).argmax(-1)


CASES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(6, 3), (6,)),
    "logistic": (lambda: nn.Sequential(nn.Linear(6, 1), nn.Sigmoid()), (6,)),
    "double": (lambda: dense(nn.Tanh()).double(), (6,)),
    "ReLU": (lambda: dense(nn.ReLU()), (6,)),
    "LeakyReLU": (lambda: dense(nn.LeakyReLU(0.2)), (6,)),
    "PReLU": (lambda: dense(nn.PReLU(8)), (6,)),
    "ELU": (lambda: dense(nn.ELU()), (6,)),
    "SELU": (lambda: dense(nn.SELU()), (6,)),
    "Clip": (lambda: dense(nn.Hardtanh(-0.5, 1.0)), (6,)),
    "ReLU6": (lambda: dense(nn.ReLU6()), (6,)),
    "HardSwish": (lambda: dense(nn.Hardswish()), (6,)),
    "SiLU": (lambda: dense(nn.SiLU()), (6,)),
    "GELU": (lambda: dense(nn.GELU()), (6,)),
    "GELU by tanh": (lambda: dense(nn.GELU(approximate="tanh")), (6,)),
    "Mish": (lambda: dense(nn.Mish()), (6,)),
    "Softplus": (lambda: dense(nn.Softplus()), (6,)),
    "Sigmoid": (lambda: dense(nn.Sigmoid()), (6,)),
    "Concat": (lambda: dense(lambda x: torch.cat([x[:, :3], 2 * x, x[:, 5:]], 1)), (6,)),
    "Slice": (lambda: dense(lambda x: x[:, 1:7:2]), (6,)),
    "Split": (lambda: dense(lambda x: x.chunk(2, 1)[0] - x.chunk(2, 1)[1]), (6,)),
    "Pad": (lambda: dense(lambda x: functional.pad(x, (1, 2), value=0.5)), (6,)),
    "Transpose": (lambda: dense(lambda x: folded(x).transpose(1, 2).reshape(-1, 8)), (6,)),
    "Gather": (lambda: dense(lambda x: x[:, [5, 0, 3, 3]]), (6,)),
    "Conv1d": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 3, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(15, 3)
        ),
        (2, 9),
    ),
    "Conv2d": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(27, 3)
        ),
        (1, 8, 8),
    ),
    "ConvTranspose": (
        lambda: nn.Sequential(nn.ConvTranspose2d(1, 2, 2, stride=2), nn.Upsample(scale_factor=2)),
        (1, 3, 3),
    ),
    "MaxPool": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)),
        (1, 6, 6),
    ),
    "LayerNorm": (lambda: dense(nn.LayerNorm(8)), (6,)),
    "GroupNorm": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten()), (2, 8)),
    "RNN": (lambda: Recurrent("RNN"), (3, 3)),
    "GRU": (lambda: Recurrent("GRU"), (3, 3)),
    "LSTM": (lambda: Recurrent("LSTM"), (3, 3)),
    "GRU both ways": (lambda: Recurrent("GRU", bidirectional=True), (3, 3)),
    "Softmax": (lambda: nn.Sequential(nn.Linear(6, 3), nn.Softmax(-1)), (6,)),
    "LogSoftmax": (lambda: nn.Sequential(nn.Linear(6, 3), nn.LogSoftmax(-1)), (6,)),
    "ArgMax": (_Labels, (6,)),
    **attention.CASES,
}
"""By name, with the shape of a sample."""


def cases(dynamo: bool) -> Iterator[Case]:
    """Every module, in evaluation."""
    for name, (build, shape) in CASES.items():
        torch.manual_seed(2)
        module, samples = build().eval(), torch.as_tensor(normal(*shape))
        if name == "double":
            samples = samples.double()
        with torch.no_grad():
            outputs = module(samples).numpy()
        example = samples[:SAMPLES]

        def export(opset: int, module: Any = module, example: Any = example) -> bytes:
            file = io.BytesIO()
            if dynamo:
                one = (example[:1],)
                torch.onnx.export(module, one, dynamo=True, opset_version=opset, verbose=False).save(file)
            else:
                names: dict[str, Any] = {"input_names": ["x"], "dynamic_axes": {"x": {0: "n"}}}
                two = (example[:2],)
                torch.onnx.export(module, two, file, dynamo=False, opset_version=opset, **names)
            return file.getvalue()

        yield Case(name, samples.numpy(), outputs, export)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # its operators have no ONNX form in TorchScript
    versions = {
        "torch": torch.__version__,
        "onnxscript": onnxscript.__version__,
        "transformers": transformers.__version__,
    }
    write("TorchScript", cases(False), SCRIPTED, versions)
    write("dynamo", cases(True), DYNAMO, versions)
