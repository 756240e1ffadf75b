"""`compile`: compiles a model for private inference."""

import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

from keywright import compiler
from keywright._core import Parameters
from keywright._progress import Progress, silent
from keywright.compiler.activations.fit import Thresholds
from keywright.compiler.front_ends.estimator_refusals import in_its_words
from keywright.compiler.front_ends.feature_names import with_used_columns
from keywright.compiler.front_ends.model_source import with_fixed
from keywright.errors import EncodeError, ModelRefusedError, ParameterError
from keywright.errors.choices import meant, require_choice
from keywright.errors.network import RefusalError
from keywright.plan.memory.machine import large_blocks_kept
from keywright.program.arrays import table_names

from .estimator import with_estimator
from .model import Model
from .parameters.parameter_choice import Client, Compilation, Ring


class FitOptions(TypedDict, total=False):
    """The attributes of `keywright.compiler.Fit`, but for the calibration data."""

    activations: Mapping[str, str]
    accuracy: float | None
    error: float | None
    noise: float
    ranges: compiler.Ranges
    thresholds: Thresholds
    bins: int | None


@large_blocks_kept()
def compile(  # noqa: A001 (read as keywright.compile)
    model: object,
    calibration: Any = None,
    *,
    client: Client = "slots",
    inputs: Mapping[str, Any] | None = None,
    parameters: str | Parameters | Ring | None = None,
    batch: int | None = None,
    samples: int = 1,
    labels: Sequence[str] = (),
    progress: Progress = silent,
    **fit: Unpack[FitOptions],
) -> Model:
    """Compile a model for private inference. Parameters, polynomials, packing and keys are chosen
    automatically, and each choice can be overridden; `Model.with_plan`, `Model.with_keys_within` and
    `Model.with_server_within` choose other keys.

    Args:
        model: an ONNX model, its bytes or its path; a ``torch.nn.Module``; or a fitted estimator or pipeline
            of scikit-learn. Export a model first, by `keywright.compiler.to_onnx`, if it cannot be exported
            with the shape of the calibration data.
        calibration: typical inputs, (count, *input_shape), required for activations other than polynomials
            and for deep models; a mapping of arrays for several inputs, or of columns, or a data frame.
        client: the kind of clients that encrypt. "slots": clients with this package; the program computes on
            their ciphertexts directly, without a bootstrap by the server. "thin": clients with a single prime
            and no Fourier transform, in Python, a browser or C, that upload less than a megabyte per request;
            the server bootstraps their ciphertexts.
        inputs: values of inputs that are the same for all samples, by name; they become constants.
            Calibration data may leave them out.
        parameters: the name of a preset of `keywright.Parameters.presets()` or of
            `keywright.BootstrapperPlan.presets()`; or your own parameters, without bootstraps, or a part of
            their slots and levels as a `keywright.model.Ring`. By default the smallest preset that is deep
            enough. Thin clients need a preset with a bootstrap.
        batch: number of samples that share ciphertexts, a power of two.
        samples: number of samples to evaluate at a time; without ``batch``, the fastest batch for them is
            chosen. `Model.save` stores the program of this batch, and clients of a service send as many
            samples per request.
        labels: labels of the outputs.
        progress: receives the progress of both parts: the polynomials, and the program with its keys.
        fit: how closely the program must follow the model: ``activations``, ``accuracy``, ``error``,
            ``noise`` and ``ranges`` of `keywright.compiler.Fit`, and for trees ``thresholds`` and ``bins``.
            Without ``accuracy`` and ``error``, labels are judged by agreement: none may change that the model
            decides clearly. Probabilities, and other answers behind the client's last steps, may change by a
            tenth of their range, other values by a tenth of their spread. `Fit` has the whole rule.

    Raises:
        TypeError: another kind of model, or missing calibration data.
        PackageMissingError: the library that exports such a model is not installed.
        ModelRefusedError: the model cannot be compiled; with every reason.
        EncodeError: calibration data of the wrong shape or not finite.
        ParameterError: an unknown name, contradictory choices, or ciphertexts
            with fewer slots than the batch has samples.
    """
    _require_known(fit)
    require_choice("client", client, get_args(Client))
    if isinstance(labels, str) or not all(isinstance(label, str) for label in labels):
        raise ParameterError(
            f"labels is {labels!r}; use a list of strings, one for each output", what="labels"
        )
    _require_mapping(inputs)
    model = Path(model) if isinstance(model, os.PathLike) else model
    calibration = with_used_columns(model, calibration)
    _require_samples(calibration)
    with progress("reading the model, choosing polynomials", None), in_its_words(model):
        try:
            source, calibration = with_fixed(model, calibration, inputs or {})
        except RefusalError as reason:
            raise ModelRefusedError([reason]) from reason
        approximated = compiler.approximate(source, compiler.Fit(calibration=calibration, **fit))
        accuracy, error = fit.get("accuracy"), fit.get("error")
        approximated = with_estimator(approximated, model, calibration, accuracy, error)
    name = Path(model).stem if isinstance(model, str | Path) else "model"
    ring = Ring(parameters) if isinstance(parameters, Parameters) else parameters
    compilation = Compilation(approximated, ring, client=client, name=name, labels=tuple(labels))
    with progress("choosing parameters and layouts, planning keys", None):
        own = compilation.for_samples(samples) if batch is None else compilation.for_batch(batch)
        compiled = Model.of(own, compilation, fixed_batch=batch is not None)
        compiled.require_precision()
    return compiled


def _require_known(options: Mapping[str, object]) -> None:
    """Refuse keyword arguments that `compile` does not have.

    Raises:
        TypeError: asks whether the nearest is meant.
    """
    known = [*FitOptions.__annotations__, *inspect.signature(compile).parameters]
    for name in options:
        if name not in FitOptions.__annotations__:
            text = f"compile() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{text}; {meant(name, [each for each in known if each != 'fit'])}")


def _require_mapping(inputs: object) -> None:
    """Refuse values of fixed inputs without their names. Raises `ParameterError`."""
    if inputs is not None and not isinstance(inputs, Mapping):
        text = f"inputs is {type(inputs).__name__}; use a mapping of values by the names of inputs"
        raise ParameterError(text, what="inputs")


def _require_samples(calibration: Any) -> None:
    """Refuse calibration data, an array or a table, without a sample.

    Raises:
        EncodeError: there is none.
    """
    names = table_names(calibration)
    for each in [calibration] if names is None else [calibration[name] for name in names]:
        if tuple(getattr(each, "shape", ()))[:1] == (0,) or (isinstance(each, list | tuple) and not each):
            raise EncodeError(
                "calibration data hold no samples; pass typical ones, or leave calibration= out",
                code="samples",
            )
