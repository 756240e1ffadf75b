"""Loads model files: reads them, checks them with onnx, and refuses files that are too large."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import onnx
from numpy.typing import ArrayLike

from keywright._reading.arrays import require_file
from keywright._reading.documents import Limits, read_json
from keywright._reading.records import refusing
from keywright.compiler.limits import MAX_MODEL_BYTES, require_at_most
from keywright.errors.network import RefusalError
from keywright.program.arrays import as_array
from keywright.program.client.samples import Column
from keywright.program.stored_tensors import external_file, require_inferable, require_inside, stored_tensors

from .rewriting.decomposed_operators import with_erf
from .rewriting.fused_operators import with_operators_apart

Result = TypeVar("Result")

VALUES = "keywright.values"
"""Metadata of a model whose outputs are values, like those of a regression: the largest one is no label."""

UNCOMPARED = "keywright.uncompared"
"""Metadata of an exported model: which of its outputs were not compared with those of the module, and why."""

COLUMNS = "keywright.columns"
"""Metadata of a model that takes a table: its columns as JSON, each a name, a kind and categories."""

CLIENT = "keywright.client"
"""Metadata of a model: values, as JSON, that the client computes whatever their operators."""

LIMITS = Limits(48 << 20, 1 << 21)
"""Of metadata, which list a table's columns and their categories."""


def load_model(model: onnx.ModelProto | str | Path | bytes) -> onnx.ModelProto:
    """Return the model as a protobuf object, from a path, bytes, or the object itself; checked by onnx.

    Raises:
        RefusalError: not an ONNX model, one that contradicts the standard, bytes that refer to weights in
            files, or a path of a folder.
        RefusalError: the model, or its files of weights, are too large; nothing was read.
        FormatError: the path is a pipe or a device.
        FileNotFoundError: there is no such file.
    """
    if isinstance(model, onnx.ModelProto):
        loaded = model
    elif isinstance(model, bytes):
        require_at_most("the model", "bytes", len(model), MAX_MODEL_BYTES)
        loaded = _parsed(lambda: onnx.load_model_from_string(model))
    else:
        path = Path(model)
        if path.is_dir():
            text = f"{path} is a folder, and a model is an ONNX file; name the file"
            raise RefusalError(f"{text}, or load the folder of a compiled model by keywright.load")
        require_file(path)
        size = path.stat().st_size
        require_at_most(f"the model {path.name!r}", "bytes", size, MAX_MODEL_BYTES)
        loaded = _parsed(lambda: onnx.load(path, load_external_data=False))
        beside = {name for tensor in stored_tensors(loaded) if (name := external_file(tensor))}
        size += sum(_size_beside(path, name) for name in beside)
        require_at_most(f"the model {path.name!r} with its weights", "bytes", size, MAX_MODEL_BYTES)
        _parsed(lambda: onnx.external_data_helper.load_external_data_for_model(loaded, str(path.parent)))
    require_inside(loaded)
    require_inferable(loaded)
    if loaded.functions:  # nothing reads those that are left, and onnx would write out some
        given, loaded = loaded, onnx.ModelProto()
        loaded.CopyFrom(given)
        del loaded.functions[:]
    apart = _parsed(lambda: with_operators_apart(loaded))
    loaded = _with_shapes(apart)
    standard = _parsed(lambda: with_erf(loaded))
    _parsed(lambda: onnx.checker.check_model(standard))
    return standard


def with_graph(model: onnx.ModelProto, graph: onnx.GraphProto) -> onnx.ModelProto:
    """Return another graph with the versions of operators of a model, which exporters list in any order."""
    opsets = sorted(model.opset_import, key=lambda each: each.domain)
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=model.ir_version)


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose outputs have types and shapes: the inferred ones where it declares none.

    Raises:
        RefusalError: those of an output cannot be inferred.
    """

    def missing(value: onnx.ValueInfoProto) -> bool:
        kind = value.type
        return not kind.WhichOneof("value") or (
            kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape")
        )

    if not any(map(missing, model.graph.output)):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    inferred = _parsed(lambda: onnx.shape_inference.infer_shapes(model)).graph
    known = {value.name: value for value in [*inferred.value_info, *inferred.output]}
    for value in result.graph.output:
        if missing(value):
            if value.name not in known or missing(known[value.name]):
                raise RefusalError(
                    f"output {value.name!r} of the ONNX model has no shape, and none can be inferred; "
                    "declare it, as onnx.shape_inference.infer_shapes does where it can"
                )
            value.type.CopyFrom(known[value.name].type)
    return result


def gives_values(model: onnx.ModelProto) -> bool:
    """Whether a model says that its outputs are values, none of them a score of a label."""
    return any(entry.key == VALUES for entry in model.metadata_props)


def uncompared(model: onnx.ModelProto) -> str:
    """Return which outputs of an exported model were not compared with those of its module, and why; empty if
    all of them were, or if it comes from elsewhere."""
    return metadata(model, UNCOMPARED)


def metadata(model: onnx.ModelProto, key: str) -> str:
    """Return a property of a model; empty if it has none of that name."""
    return next((entry.value for entry in model.metadata_props if entry.key == key), "")


def listed(model: onnx.ModelProto, key: str, content: str) -> list[Any]:
    """Return the list that is a property of a model, as JSON; empty if there is none of that name.

    Raises:
        RefusalError: it is not JSON, or too large.
    """
    with refusing(f"a list of {content}", RefusalError, code="model"):
        return list(read_json(metadata(model, key) or "[]", LIMITS))


def client_values(model: onnx.ModelProto) -> frozenset[str]:
    """Return the values that a model names for the client."""
    return frozenset(map(str, listed(model, CLIENT, "the client's values")))


def columns_in(model: onnx.ModelProto) -> tuple[Column, ...]:
    """Return the columns of a model that takes a table."""
    with refusing("a list of columns", RefusalError, code="model"):
        return tuple(
            Column(str(name), kind, known and (*(math.nan if each is None else each for each in known),))
            for name, kind, known in listed(model, COLUMNS, "columns")
        )


def with_fixed_inputs(model: onnx.ModelProto, fixed: Mapping[str, ArrayLike]) -> onnx.ModelProto:
    """Return a model in which some inputs are constants.

    Args:
        fixed: their values by name, in the shape of the input for one sample, or one number.

    Raises:
        RefusalError: the model has no such input, or all its inputs are fixed, or values are of another type.
        EncodeError: values are no array.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    inputs = {value.name: value for value in graph.input}
    require_left(inputs.keys() - {tensor.name for tensor in graph.initializer}, fixed)
    for name, values in fixed.items():
        if name not in inputs:
            known = ", ".join(map(repr, inputs))
            raise RefusalError(f"inputs= fixes {name!r}, and the model has the inputs {known}")
        kind = onnx.helper.tensor_dtype_to_np_dtype(inputs[name].type.tensor_type.elem_type)
        axes = len(inputs[name].type.tensor_type.shape.dim)
        array = as_array(values, f"inputs of {name!r}")
        try:
            array = array.astype(kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise RefusalError(f"inputs of {name!r} are not of its type, {kind}: {error}") from None
        array = array[None] if array.ndim == axes - 1 and array.ndim else array
        array = array.reshape((1,) * axes) if array.ndim == 0 else array
        kept = [tensor for tensor in graph.initializer if tensor.name != name]
        del graph.initializer[:]
        graph.initializer.extend([*kept, onnx.numpy_helper.from_array(array, name)])
        graph.input.remove(inputs[name])
    return result


def require_left(names: Collection[str], fixed: Collection[str]) -> None:
    """Refuse to fix every input of a model. Raises `RefusalError`."""
    if set(names) <= set(fixed):
        every = ", ".join(map(repr, sorted(names)))
        raise RefusalError(f"inputs= fixes every input of the model, {every}; leave out one to encrypt")


def _parsed(read: Callable[[], Result]) -> Result:
    """Return the result of onnx's parser or of a rewriter, which raise errors of many classes for damaged
    models."""
    try:
        return read()
    except RefusalError:
        raise
    except Exception as error:
        raise RefusalError(f"not a valid ONNX model: {error}; export the model again") from error


def _size_beside(path: Path, name: str) -> int:
    """Return the bytes of a file beside a model; 0 if it is missing, which onnx reports when it reads it."""
    beside = path.parent / name
    return beside.stat().st_size if beside.is_file() else 0


def sample_shape(model: onnx.ModelProto) -> Sequence[object]:
    """Return the declared extents of a sample of a model's first input, without the batch dimension: sizes,
    names, or 0 if they are unknown."""
    constants = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in constants:
            return [d.dim_value or d.dim_param for d in value.type.tensor_type.shape.dim][1:]
    return []
