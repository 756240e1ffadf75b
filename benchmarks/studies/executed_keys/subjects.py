"""The networks: what is compiled, for which parameters, and the samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import keywright as kw
import numpy as np
from harness.folders import HERE
from keywright import compiler
from keywright.model.parameters.presets import BootstrapPreset
from keywright.plan import CostModel
from keywright.plan.ring.preset_plans import bootstrap_plans
from numpy.typing import NDArray

from studies.networks.networks import cifar, digits

EXAMPLES = HERE.parent / "examples"
sys.path.insert(0, str(EXAMPLES))

from train_nsl_kdd import Features, Records, split  # noqa: E402

Samples = NDArray[np.float64]
SEED = 1
"""Of the split that examples/train_nsl_kdd.py trains on."""


@dataclass(frozen=True)
class Subject:
    """A network.

    Attributes:
        title: what it is.
        samples: calibration samples and those that are run, from the argument --data.
        model: ONNX file that comes with this repository; None where --model names it.
        activations: methods of `keywright.compiler.Fit.activations`.
        preset: its bootstrapping; without one the parameters are `parameters`.
        parameters: made where there is no preset.
    """

    title: str
    samples: Callable[[Path | None, int], tuple[Samples, Samples]]
    model: Path | None = None
    activations: Mapping[str, str] = field(default_factory=dict)
    preset: str | None = None
    parameters: Callable[[], kw.Parameters] | None = None


def small_parameters() -> kw.Parameters:
    """Six levels in a ring without security, for tests."""
    return kw.Parameters.from_bits(11, [51, *[40] * 6], [51] * 3, 40, insecure=True)


def nsl_kdd(data: Path | None, count: int) -> tuple[Samples, Samples]:
    """Rows of a folder of NSL-KDD's files: of the part that is trained on, and held out."""
    if data is None:
        raise SystemExit("--data names the folder of NSL-KDD's files")
    records = Records(data / "KDDTrain+.txt.gz")
    rows = Features(records)(records).astype(np.float64)
    trained, held = split(len(rows), np.random.default_rng(SEED))
    return rows[list(trained[:300])], rows[list(held[:count])]


def labelled(data: Path) -> Iterator[tuple[str, Samples, NDArray[np.int64]]]:
    """The held-out rows of a folder of NSL-KDD's files, and those of KDDTest+, with their classes."""
    records, test = Records(data / "KDDTrain+.txt.gz"), Records(data / "KDDTest+.txt")
    features = Features(records)
    rows, labels = features(records), records.labels()
    _, held = split(len(rows), np.random.default_rng(SEED))
    yield "held out", rows[list(held)].astype(np.float64), labels[list(held)]
    yield "KDDTest+", features(test).astype(np.float64), test.labels()


def cifar_images(data: Path | None, count: int) -> tuple[Samples, Samples]:
    """Images of a tar file of CIFAR-10's test images: the last hundred, and the first ones."""
    calibration, first = (cifar(data, numbers).samples for numbers in (range(9900, 10000), range(count)))
    return calibration.astype(np.float64), first.astype(np.float64)


def shipped_digits(data: Path | None, count: int) -> tuple[Samples, Samples]:
    """Handwritten digits that come with the package."""
    calibration, first = (digits(data, numbers).samples for numbers in (range(50), range(50, 50 + count)))
    return calibration.astype(np.float64), first.astype(np.float64)


SUBJECTS = {
    "digits": Subject(
        "convolutional, squares, 8 x 8 digits, in a ring without security",
        shipped_digits,
        HERE.parent / "python" / "keywright" / "data" / "digits.onnx",
        parameters=small_parameters,
    ),
    "gru": Subject(
        "GRU(128) of four steps + MLP on NSL-KDD, activations of degree 7",
        nsl_kdd,
        EXAMPLES / "models" / "gru_nsl_kdd.onnx",
        {"sigmoid": "chebyshev:7", "tanh": "chebyshev:7"},
        preset="N16_QP1732_L9_S45_real",
    ),
    "resnet20-aespa": Subject("ResNet-20, AESPA, CIFAR-10", cifar_images, preset="N16_QP1732_L9_S45_real"),
    "resnet20-relu": Subject(
        "ResNet-20, ReLU, CIFAR-10",
        cifar_images,
        activations={"relu": "minimax:13"},
        preset="N16_QP1745_L15_S40_real",
    ),
    "squeezenet-square": Subject(
        "SqueezeNet, squares, CIFAR-10", cifar_images, preset="N16_QP1732_L9_S45_real"
    ),
    "squeezenet-relu": Subject(
        "SqueezeNet, ReLU, CIFAR-10",
        cifar_images,
        activations={"relu": "minimax:13"},
        preset="N16_QP1745_L15_S40_real",
    ),
}


@dataclass(frozen=True)
class Compiled:
    """A program, what it is for, and the plans of its bootstraps."""

    program: compiler.Program
    parameters: kw.Parameters
    bootstraps: Sequence[kw.BootstrapperPlan]


def load(subject: Subject, program: compiler.Program) -> Compiled:
    """A stored program with its parameters."""
    if subject.preset is None:
        assert subject.parameters is not None
        return Compiled(program, subject.parameters(), ())
    plans = bootstrap_plans(program)
    return Compiled(program, plans[0].parameters, plans)


def fit(subject: Subject, calibration: Samples) -> compiler.Fit:
    """The subject's polynomials on calibration samples."""
    return compiler.Fit(calibration=calibration, activations=dict(subject.activations))


def compile_subject(subject: Subject, model: Path, calibration: Samples) -> Compiled:
    """All in one ring, as in the paper."""
    polynomials = fit(subject, calibration)
    if subject.preset is None:
        assert subject.parameters is not None
        parameters = subject.parameters()
        # One prime above the lowest: a result may then be larger than 1.
        target = compiler.Target(
            slots=parameters.max_slots, levels=parameters.max_level, output_level=1, batch=1
        )
        return load(subject, compiler.compile_program(model, target, polynomials))
    shipped = BootstrapPreset(subject.preset, CostModel())
    target = compiler.Target(
        slots=shipped.plan.slots, levels=shipped.plan.output_level, bootstraps=shipped.options, batch=1
    )
    return load(subject, compiler.compile_program(model, target, polynomials))
