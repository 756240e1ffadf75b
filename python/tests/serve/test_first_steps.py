"""A client of a service without the program computes the first steps of the manifest."""

import json
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors import (
    EncodeError,
)
from keywright.errors.engine import FormatError
from keywright.model import Model
from keywright.model.served.manifest import Manifest
from keywright.serve import Service
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.serve.network import WORKERS, listening

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
            match="has 'Bonn', which is none of the 3 categories",
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
