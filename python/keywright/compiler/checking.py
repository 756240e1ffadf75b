"""Compares a program with onnxruntime, on clear data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from keywright.errors import PackageMissingError
from keywright.program.arrays import Vector
from keywright.program.program import Program
from keywright.runtime.clear_run import run_batch

from .activations.ranges import predictions
from .front_ends.parts.client_end import load_parts
from .front_ends.reference import runtime_session


@dataclass(frozen=True)
class CheckReport:
    """The difference between a program and the model that it was compiled from.

    Attributes:
        samples: number of samples.
        max_abs_error: largest absolute difference of any output value.
        agreement: share of samples with the same largest output, or with the same sign of a single output
            that the client turns into a label; 1 for another single output.
        outputs: the program's outputs, (samples, *output_shape).
        expected: the model's outputs, without the client's part.
    """

    samples: int
    max_abs_error: float
    agreement: float
    outputs: Vector
    expected: Vector


def run_onnxruntime(model: onnx.ModelProto, samples: Vector) -> Vector:
    """Return the model's outputs, (count, *output_shape), for samples (count, *input_shape), evaluated one at
    a time; several outputs of a sample one behind the other. If the model has a fixed batch size, the sample
    is repeated.

    Raises:
        PackageMissingError: onnxruntime is not installed.
    """
    try:
        session = runtime_session(model)
    except ImportError as error:
        raise PackageMissingError("onnxruntime", "check") from error
    source = session.get_inputs()[0]
    kind = np.float64 if source.type == "tensor(double)" else np.float32
    batch = source.shape[0] if source.shape and isinstance(source.shape[0], int) else 1
    outputs = []
    for sample in samples:
        results = session.run(None, {source.name: np.repeat(sample[None].astype(kind), batch, axis=0)})
        parts = [each[0] if np.ndim(each) and len(each) == batch else each for each in results]
        outputs.append(parts[0] if len(parts) == 1 else np.concatenate(list(map(np.ravel, parts))))
    return np.asarray(outputs, np.float64)


def check(program: Program, samples: Any, model: onnx.ModelProto | str | Path | bytes) -> CheckReport:
    """Compare a program, evaluated in the clear, with its model, evaluated by onnxruntime.

    Args:
        samples: (count, *input_shape); what `Program.features` takes, if the program has first steps.
        model: the source of the program.

    Raises:
        EncodeError: no samples, or another shape.
        PackageMissingError: onnxruntime is not installed.
    """
    inputs, _ = program.features(samples)
    outputs = np.concatenate([run_batch(program, batch) for batch in program.batches(inputs)])
    expected = run_onnxruntime(load_parts(model, samples)[0], inputs).reshape(outputs.shape)
    flat, reference = outputs.reshape(len(inputs), -1), expected.reshape(len(inputs), -1)
    signed = program.output.client_part is not None and program.output.client_part.takes_signs
    result, target = predictions(flat, signed=signed), predictions(reference, signed=signed)
    agreement = 1.0 if result is None or target is None else float((result == target).mean())
    return CheckReport(len(inputs), float(np.abs(flat - reference).max()), agreement, outputs, expected)
