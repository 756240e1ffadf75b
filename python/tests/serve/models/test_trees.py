"""A client of a service that has no program: it gets bits to compute, and no threshold."""

import json
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.engine import FormatError
from keywright.errors.service import BadRequestError
from keywright.model import Model
from keywright.model.served.manifest import Manifest
from keywright.runtime import run_clear
from keywright.serve import Service
from sklearn.tree import DecisionTreeClassifier
from tests.serve.network import WORKERS, listening

RNG = np.random.default_rng(3)
SAMPLES = RNG.normal(size=(300, 4))
SAMPLES[RNG.random(SAMPLES.shape) < 0.1] = np.nan
LABELS = np.where(np.nan_to_num(SAMPLES[:, 0]) + np.nan_to_num(SAMPLES[:, 1]) > 0, "yes", "no")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Model:
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(SAMPLES, LABELS)
    folder = tmp_path_factory.mktemp("trees") / "tree"
    kw.compile(tree, calibration=SAMPLES, bins=16, batch=2).save(folder)
    return Model.load(folder)


def test_a_client_without_the_program_gets_labels(served: Model, tmp_path: Path) -> None:
    service = Service(served, tmp_path, workers=WORKERS)
    with listening(service) as server, RemoteModel(server.url).session() as session:
        session.upload_keys()
        outputs = session.infer(SAMPLES[:3])
        answers = session.manifest.answers(outputs)["label"]
        with pytest.raises(BadRequestError, match="not finite"):
            session.infer(np.full(4, np.inf))
        with pytest.raises(BadRequestError, match=r"shape \(4,\)"):
            session.infer(np.zeros(5))
    service.close()
    clear = np.concatenate([run_clear(served.program, each)[None] for each in SAMPLES[:3]])
    assert answers.tolist() == served.program.answers(clear)["label"].tolist()


def test_the_manifest_holds_the_first_step_and_no_weights(served: Model) -> None:
    manifest = Manifest.read(served.manifest.encoded)
    assert manifest.input.steps.binning is not None
    assert manifest.sample_shape == (4,)
    assert np.array_equal(manifest.input.entering(SAMPLES), served.program.input.entering(SAMPLES))
    assert manifest.encoded == served.manifest.encoded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("edges", [1.0]),
        ("edges", "1.0"),
        ("columns", [9]),
        ("features", 0),
        ("missing", [3, 2, 1]),
        ("single", 1),
    ],
)
def test_a_damaged_first_step_is_refused(served: Model, name: str, value: object) -> None:
    entry = json.loads(served.manifest.encoded)
    entry["binning"][name] = value
    with pytest.raises(FormatError, check=lambda error: error.code == "manifest"):
        Manifest.read(json.dumps(entry).encode())
