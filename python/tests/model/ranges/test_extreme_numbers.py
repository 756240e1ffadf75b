"""Every number of a manifest and of a program file that is as large or as small as numbers get: what a
client computes with it is finite, or a typed error."""

from __future__ import annotations

import base64
import copy
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.errors import KeywrightError
from keywright.errors.engine import EncodeError, FormatError
from keywright.model import Model
from keywright.model.served.manifest import Manifest
from keywright.runtime import run_clear
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tests.serve.hostile import at, places
from tests.serve.network import make_thin

EXTREMES = (1e308, -1e308, 5e-324, -5e-324)
RNG = np.random.default_rng(8)
SAMPLES = RNG.normal(size=(80, 3)) * [1e5, 1.0, 1e-7] + [1.7e9, 0.0, -3e-6]
UNIT = RNG.uniform(-1, 1, (80, 3))
LABELS = np.where(UNIT @ [1.0, -2.0, 0.5] > 0, "yes", "no")


def normalised() -> Model:
    """Inputs and outputs with offsets and scales, and a joint range."""
    return kw.compile(LinearRegression().fit(SAMPLES, SAMPLES @ np.ones((3, 2)) * [1e6, 1e-3]), SAMPLES)


def classifier() -> Model:
    """First steps, and last ones."""
    first = make_pipeline(MinMaxScaler(), StandardScaler())
    return kw.compile(make_pipeline(first, LogisticRegression()).fit(UNIT, LABELS), UNIT)


def tree() -> Model:
    """Binned inputs."""
    return kw.compile(DecisionTreeRegressor(max_depth=2).fit(UNIT, UNIT[:, 0]), UNIT)


MAKERS: dict[str, Callable[[], Model]] = {
    "normalised": normalised,
    "classifier": classifier,
    "tree": tree,
    "thin": make_thin,
}


@pytest.fixture(scope="module", params=MAKERS)
def model(request: pytest.FixtureRequest) -> Model:
    return MAKERS[request.param]()


def changed(data: bytes) -> Iterator[tuple[str, bytes]]:
    """JSON with one number replaced by an extreme, also in the ONNX models inside."""
    entry = json.loads(data)
    for place in places(entry):
        value = at(entry, place)
        if isinstance(value, float):
            for extreme in EXTREMES:
                other = copy.deepcopy(entry)
                at(other, place[:-1])[place[-1]] = extreme
                yield f"{place}: {extreme}", json.dumps(other).encode()
        elif place[-1] == "model" and isinstance(value, str):
            for what, steps in changed_steps(base64.b64decode(value)):
                other = copy.deepcopy(entry)
                at(other, place[:-1])[place[-1]] = base64.b64encode(steps).decode()
                yield f"{place}, {what}", json.dumps(other).encode()


def changed_steps(data: bytes) -> Iterator[tuple[str, bytes]]:
    """An ONNX model with one of its stored numbers replaced."""
    for extreme in EXTREMES:
        for number in range(len(onnx.load_model_from_string(data).graph.initializer)):
            steps = onnx.load_model_from_string(data)
            tensor = steps.graph.initializer[number]
            array = np.array(onnx.numpy_helper.to_array(tensor))
            if array.dtype.kind == "f" and array.size:
                array.flat[0] = np.clip(extreme, np.finfo(array.dtype).min, np.finfo(array.dtype).max)
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
                yield f"{tensor.name}: {extreme}", steps.SerializeToString()
        for place, node in enumerate(onnx.load_model_from_string(data).graph.node):
            for entry, attribute in enumerate(node.attribute):
                if attribute.floats or attribute.type == onnx.AttributeProto.FLOAT:
                    steps = onnx.load_model_from_string(data)
                    own, single = steps.graph.node[place].attribute[entry], np.clip(extreme, -3e38, 3e38)
                    if attribute.floats:
                        own.floats[0] = single
                    else:
                        own.f = single
                    yield f"{node.op_type}.{attribute.name}: {extreme}", steps.SerializeToString()


def compute(manifest: Manifest, samples: Any) -> list[Any]:
    """What a client computes before encryption and after decryption."""
    features, _ = manifest.features(samples)
    if manifest.input.missing(features).any():
        return []
    manifest.require_range(features)
    packed = manifest.input.entering(features)
    manifest.input.require_magnitude(features, manifest.input_magnitude)
    shape = manifest.output.places.shape
    outputs = manifest.output.leaving(np.stack([np.full(shape, 0.75), np.full(shape, -0.5)]))
    return [packed, outputs, *manifest.answers(outputs).values()]


def require_finite(values: list[Any], what: str) -> None:
    for value in values:
        assert value.dtype.kind != "f" or np.isfinite(value).all(), what


def test_every_number_of_a_manifest_gives_finite_numbers_or_an_error(model: Model) -> None:
    samples = (SAMPLES if model.manifest.input.normalisation is not None else UNIT)[:2]
    if model.manifest.sample_shape != (3,):
        samples = RNG.uniform(-1, 1, (2, *model.manifest.sample_shape))
    require_finite(compute(model.manifest, samples), "as it is")
    tried = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for what, data in changed(model.manifest.encoded):
            tried += 1
            try:
                require_finite(compute(Manifest.read(data), samples), what)
            except KeywrightError:
                continue
    assert tried >= 8


def test_every_number_of_a_program_gives_finite_numbers_or_an_error(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "program.kwp"
    compiler.save(model.program, path)
    samples = RNG.uniform(-1, 1, (2, *model.program.input.shape))
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    tried = 0
    for name, data in entries.items():
        for what, other in changed(data) if name == "program.json" else changed_array(data):
            tried += 1
            with zipfile.ZipFile(path, "w") as archive:
                for each, content in (entries | {name: other}).items():
                    archive.writestr(each, content)
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                try:
                    program = compiler.load(path)
                    outputs = run_clear(program, samples)
                    require_finite([outputs, *program.answers(outputs).values()], f"{name}: {what}")
                except KeywrightError:
                    continue
    assert tried >= 8


def changed_array(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A numpy file of which the first number is replaced."""
    array = np.load(io.BytesIO(data))
    if array.dtype.kind != "f" or not array.size:
        return
    for extreme in EXTREMES:
        array.flat[0] = extreme
        file = io.BytesIO()
        np.save(file, array)
        yield f"{extreme}", file.getvalue()


def test_the_errors_say_what_is_too_large(tmp_path: Path) -> None:
    thin = make_thin()
    entry = json.loads(thin.manifest.encoded) | {"factor": 1e308}
    manifest = Manifest.read(json.dumps(entry).encode())
    with pytest.raises(FormatError, match=r"multiplies them by up to 1e\+308"):
        manifest.output.leaving(np.full((1, *manifest.output.places.shape), 10.0))
    with pytest.raises(EncodeError, match="too large"):
        run_clear(thin.program, np.full(thin.program.input.shape, 1e308))
