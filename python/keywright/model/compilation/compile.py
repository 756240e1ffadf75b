"""`compile`: compiles a model for private inference."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import onnx

from keywright import compiler
from keywright._core import Parameters
from keywright.compiler.front_ends.model_file import with_fixed_inputs
from keywright.compiler.front_ends.trees.objects import to_source
from keywright.errors import ModelRefusedError
from keywright.errors.network import ChoiceError, RefusalError
from keywright.model.model import Model
from keywright.model.report.encrypted_error import REFUSED_SHARE, require_precision
from keywright.plan.keys import plan_file
from keywright.plan.keys.key_plan import KeyPlan

from .compilation import Client, Compilation, Ring


class FitOptions(TypedDict, total=False):
    """Choices of `keywright.compiler.Fit`, but for the calibration data."""

    accuracy: float | None
    error: float | None
    activations: Mapping[str, str]
    margin: float | None
    headroom: float
    input_range: tuple[float, float] | None
    thresholds: str
    bins: int | None


def compile(  # noqa: A001 (read as keywright.compile)
    model: object,
    calibration: Any = None,
    *,
    client: Client = "slots",
    example: Any = None,
    inputs: Mapping[str, Any] | None = None,
    preset: str | None = None,
    parameters: Parameters | None = None,
    slots: int | None = None,
    levels: int | None = None,
    batch: int | None = None,
    samples: int = 1,
    plan: KeyPlan | str | Path | None = None,
    memory: int | None = None,
    key_memory: int | None = None,
    noise: float = REFUSED_SHARE,
    name: str | None = None,
    labels: Sequence[str] = (),
    **fit: Unpack[FitOptions],
) -> Model:
    """Compile a model for private inference. Parameters, polynomials, packing and keys are chosen
    automatically, and each choice can be overridden.

    Args:
        model: an ONNX model, its bytes or its path; a ``torch.nn.Module``; or a fitted estimator or pipeline
            of scikit-learn: see `keywright.compiler.to_onnx`.
        calibration: typical inputs, (count, *input_shape), required for activations other than polynomials
            and for deep models; a mapping of arrays for several inputs, or of columns, or a data frame.
        client: who encrypts. "slots": a client with this package; its ciphertexts are those that the program
            computes on, so the server need not bootstrap. "thin": one with a single prime and no Fourier
            transform, in a browser or in C, that uploads less than a megabyte per request; the server
            bootstraps its ciphertexts.
        example: inputs, (count, *input_shape), whose shape the exporters of other libraries use; by default
            the calibration data.
        inputs: values of inputs of an ONNX model that are the same for all samples, by name; they become
            constants.
        preset: parameters by name, one of `keywright.Parameters.presets()` or of
            `keywright.BootstrapperPlan.presets()`; by default the smallest that are deep enough. Thin clients
            need one with a bootstrapping.
        parameters: parameters of your own, without bootstraps, instead of a preset.
        slots, levels: of the ciphertexts to compute on, with ``parameters``; by default all.
        batch: number of samples that share ciphertexts, a power of two.
        samples: number of samples to evaluate at a time; without ``batch``, the fastest batch for them is
            chosen. `Model.save` stores the program of this batch, so clients of a service send as many
            samples in a request.
        plan: key plan from ``keywright plan``.
        memory: bytes of the server's process; the fastest keys within it are planned. By default, the fewest
            bytes of keys with nearly the best speed.
        key_memory: bytes of a client's keys in the server's memory; the fastest keys within it are planned.
        noise: largest predicted error of encryption, as a share of the spread (the standard deviation on the
            calibration data) of any output. A model above it is refused, one above a hundredth is warned of.
        name: for people; by default the file's name.
        labels: labels of the outputs.
        fit: how closely polynomials follow the model: ``accuracy``, ``error``, ``activations``, ``margin``,
            ``headroom`` and ``input_range`` of `keywright.compiler.Fit`, and for trees ``thresholds`` and
            ``bins``.

    Raises:
        TypeError: another kind of model, or a missing example.
        PackageMissingError: the library that exports such a model is not installed.
        ModelRefusedError: the model cannot be compiled; with every reason.
        InvalidSamplesError: calibration data of the wrong shape or not finite.
        ChoiceError: choices that contradict each other.
        ChoiceError: ciphertexts have fewer slots than the batch has samples.
        PlanMismatchError: the plan is for something else.
        MemoryBudgetError: no keys fit the memory.
    """
    if preset is not None and parameters is not None:
        raise ChoiceError("preset= and parameters= exclude each other; give one of them")
    if parameters is None and (slots is not None or levels is not None):
        raise ChoiceError("slots= and levels= need parameters=, because a preset has its own; leave them out")
    if [plan, memory, key_memory].count(None) < 2:
        raise ChoiceError("plan= names the keys, memory= and key_memory= plan them; give one of them")
    chosen = compiler.Fit(calibration=calibration, **fit)
    try:
        loaded = to_source(model, calibration if example is None else example)
        if inputs and isinstance(loaded, onnx.ModelProto):
            loaded = with_fixed_inputs(loaded, inputs)
    except RefusalError as reason:
        raise ModelRefusedError([reason]) from reason
    compilation = Compilation(
        compiler.approximate(loaded, chosen),
        preset if parameters is None else Ring(parameters, slots, levels),
        client=client,
        batch=batch,
        name=name or (Path(model).stem if isinstance(model, str | Path) else "model"),
        labels=tuple(labels),
    )
    compiled = compilation.for_samples(samples)
    if plan is not None:
        compiled = compiled.with_plan(plan if isinstance(plan, KeyPlan) else plan_file.load(Path(plan)))
    elif memory is not None:
        compiled = compiled.with_server_within(memory)
    elif key_memory is not None:
        compiled = compiled.with_keys_within(key_memory)
    require_precision(compiled.encrypted_error, chosen.accuracy, noise)
    return compiled
