"""A client of a service without the program computes the first steps of the manifest."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import compiler
from keywright.client import RemoteModel
from keywright.compiler.front_ends.model_source import to_source
from keywright.errors import EncodeError
from keywright.errors.engine import FormatError
from keywright.errors.network import OutOfRangeError
from keywright.model import Model
from keywright.model.served.manifest import VERSION, Manifest
from keywright.program.interface import ClientSteps
from keywright.runtime import run_clear
from keywright.serve import Service
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from tests.serve.network import WORKERS, compile_thin, listening, make_thin

RNG = np.random.default_rng(3)
SAMPLES = np.empty((150, 2), object)
SAMPLES[:, 0] = np.where(RNG.random(150) < 0.1, np.nan, RNG.normal(size=150))
SAMPLES[:, 1] = RNG.choice(["Lima", "Oslo", "Rome"], 150)
LABELS = np.where(SAMPLES[:, 1] == "Oslo", "yes", "no")
PIPELINE = make_pipeline(
    ColumnTransformer([("a", SimpleImputer(), [0]), ("b", OneHotEncoder(), [1])]), LogisticRegression()
).fit(SAMPLES, LABELS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("steps") / "model"
    kw.compile(PIPELINE, calibration=SAMPLES).save(folder)
    return Model.load(folder)


def test_a_client_without_the_program_gives_rows_of_a_table(served: Model, tmp_path: Path) -> None:
    service = Service(served, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url).session() as session:
        with pytest.raises(
            EncodeError,
            match="has 'Bonn', which is not one of the 3 categories",
            check=lambda error: error.code == "samples",
        ):
            session.remote.check([[0.5, "Bonn"]])
        session.upload_keys()
        outputs = session.infer(SAMPLES[:3])
        answers = session.manifest.answers(outputs)["output_label"]
        one = session.infer(SAMPLES[0])
    service.close()
    assert answers.tolist() == PIPELINE.predict(SAMPLES[:3]).tolist()
    assert one.shape == outputs.shape[1:]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "bm8="),
        ("model", 7),
        ("shape", [9]),
        ("shape", [-1]),
        ("columns", [["a", "numbers", None]]),
        ("columns", [["a", "text", None]]),
        ("inputs", [["numbers", [1], "thoughts"]]),
        ("inputs", {}),
        ("together", 1),
    ],
)
def test_damaged_first_steps_are_refused(served: Model, name: str, value: object) -> None:
    entry = json.loads(served.manifest.encoded)
    entry["first_steps"][name] = value
    with pytest.raises(FormatError, check=lambda error: error.code == "manifest"):
        Manifest.read(json.dumps(entry).encode())


def no_type(tensor: onnx.TensorProto) -> None:
    tensor.data_type = 99


def complex_numbers(tensor: onnx.TensorProto) -> None:
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.full(2, 1j, np.complex64), tensor.name))


def other_extents(tensor: onnx.TensorProto) -> None:
    tensor.dims[:] = [1 << 31, 4]


@pytest.mark.parametrize("damage", [no_type, complex_numbers, other_extents])
def test_damaged_tensors_of_first_steps_are_refused(
    served: Model, damage: Callable[[onnx.TensorProto], None]
) -> None:
    steps = served.program.input.steps.first
    assert steps is not None
    model = onnx.load_model_from_string(steps.data)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "damaged"))
    damage(model.graph.initializer[-1])
    with pytest.raises((FormatError, EncodeError)):
        replace(steps, data=model.SerializeToString()).features(SAMPLES[:2])


LINES = np.where(SAMPLES[:, 1] == "Oslo", 2.0, -1.0)
THIN = {
    "columns": PIPELINE,
    "bits of trees": make_pipeline(PIPELINE[0], DecisionTreeRegressor(max_depth=2)).fit(SAMPLES, LINES),
}


@pytest.mark.parametrize("name", THIN)
def test_clients_of_coefficients_compute_first_steps(name: str, tmp_path: Path) -> None:
    """Clients in browsers and in C read manifests of version 4 alone, and refuse these."""
    model = compile_thin(to_source(THIN[name], SAMPLES), compiler.Fit(calibration=SAMPLES), batch=2)
    assert json.loads(model.manifest.encoded)["version"] > VERSION
    service = Service(model, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url, insecure=True).session() as session:
        with pytest.raises(EncodeError, match="'Bonn'"):
            session.remote.check([[0.5, "Bonn"]])
        session.upload_keys()
        outputs = session.infer(SAMPLES[:3])
    service.close()
    expected = run_clear(model.program, model.program.features(SAMPLES[:3])[0])
    np.testing.assert_allclose(outputs, expected, atol=1e-3)


def test_clients_of_coefficients_check_masks() -> None:
    manifest = make_thin().manifest
    masked = replace(manifest, input=replace(manifest.input, steps=ClientSteps(bits=(2,))))
    assert json.loads(masked.encoded)["version"] > VERSION
    with pytest.raises(OutOfRangeError, match="the mask in the input"):
        Manifest.read(masked.encoded).require_range(np.full((1, 16), 0.5))
