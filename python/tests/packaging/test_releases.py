"""Files that every release wrote are read for ever: vectors/releases, and what this version writes."""

import hashlib
import json
import shutil
from pathlib import Path

import golden_files
import keywright as kw
import numpy as np
import pytest
from keywright._core import EncryptedSum, EncryptedUpdate, SumKey, SumParameters
from keywright.plan.cost.calibration import Calibration
from keywright.plan.keys import plan_file
from keywright.plan.workload.workload import Workload
from keywright.serve.tenants.accounts import Accounts
from keywright.serve.tenants.quotas import Quotas

RELEASES = sorted(path.name for path in golden_files.FOLDER.glob("*"))
VALUES = np.array([1.5, -2.25, 0.5, 3.0])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases") / "this version"
    golden_files.write(folder)
    return folder


@pytest.fixture(params=["this version", *RELEASES])
def release(request: pytest.FixtureRequest, written: Path) -> Path:
    return written if request.param == written.name else golden_files.FOLDER / request.param


def test_no_file_was_changed(release: Path) -> None:
    lines = (release / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    files = {
        path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in release.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert files == listed


def test_ckks_keys_and_ciphertexts(release: Path) -> None:
    folder = release / "ckks"
    parameters = kw.Parameters.load(folder / "parameters.kw", insecure=True)
    secret = kw.SecretKey.load(folder / "secret.kw", parameters)
    decryptor = kw.Decryptor(secret)
    fresh = kw.SeededCiphertext.load(folder / "input.kw", parameters).expand()
    assert np.allclose(decryptor.decrypt(fresh), VALUES, atol=1e-6)
    expected = np.roll(VALUES**2, -1)
    stored = kw.Ciphertext.load(folder / "answer.kw", parameters)
    assert np.allclose(decryptor.decrypt(stored), expected, atol=1e-4)
    # Old keys still evaluate, and an old public key still encrypts.
    evaluator = kw.Evaluator(parameters, kw.EvaluationKeys.load(folder / "keys.kw", parameters))
    public = kw.PublicKey.load(folder / "public.kw", parameters)
    anew = evaluator.add(fresh, kw.Encryptor(public).encrypt(VALUES, slots=4, magnitude=4))
    assert np.allclose(decryptor.decrypt(evaluator.square(anew)), (2 * VALUES) ** 2, atol=1e-3)
    assert np.allclose(decryptor.decrypt(evaluator.rotate(fresh, 1)), np.roll(VALUES, -1), atol=1e-5)


def test_bfv_ciphertexts(release: Path) -> None:
    folder = release / "bfv"
    parameters = kw.bfv.Parameters.load(folder / "parameters.kw")
    decryptor = kw.bfv.Decryptor(kw.SecretKey.load(folder / "secret.kw", parameters))
    integers = decryptor.decrypt(kw.bfv.SeededCiphertext.load(folder / "input.kw", parameters).expand())
    assert integers[:4].tolist() == [7, -3, 40_000 - 65_537, 12]


def test_thin_clients(release: Path) -> None:
    folder = release / "thin"
    server = kw.Parameters.load(folder / "server.kw")
    handed_out = kw.thin.Parameters.from_bytes((folder / "client.kw").read_bytes())
    client = kw.thin.Client.from_secret_bytes((folder / "secret.kw").read_bytes(), handed_out)
    for name in ("upload.kw", "compact.kw"):
        upload = handed_out.read_upload((folder / name).read_bytes(), server)
        numbers = client.decrypt(handed_out.write_answer(upload), 4)
        assert np.allclose(numbers, VALUES * 2**16, atol=4)


def test_sums_of_updates(release: Path) -> None:
    folder, parameters = release / "sums", SumParameters(4, 1 << 20)
    key = SumKey.load(folder / "key.kw", parameters)
    update = EncryptedUpdate.from_bytes((folder / "update.kw").read_bytes(), parameters)
    total = EncryptedSum.from_bytes((folder / "sum.kw").read_bytes(), parameters)
    assert (update.session, update.round, update.client, update.weight) == (bytes(range(16)), 3, 8, 8)
    assert total.contributors == [(8, 8), (9, 9)]
    assert key.decrypt(total).tolist() == [17, -10, 2000]


def test_a_model_and_its_client(release: Path, tmp_path: Path) -> None:
    with np.load(release / "samples.npz") as stored:
        inputs, outputs = stored["inputs"], stored["outputs"]
    owner = tmp_path / "client"
    shutil.copytree(release / "client", owner)
    # Git keeps no such modes.
    (owner / "secret.kw").chmod(0o600)
    client = kw.load_client(owner)
    assert np.allclose(client.decrypt((release / "answer.kw").read_bytes()), outputs, atol=1e-3)
    server = kw.load_server(release / "model")
    server.load_keys(client.keys())
    answer = server.run((release / "message.kw").read_bytes())
    assert np.allclose(client.decrypt(answer), outputs, atol=1e-3)
    assert np.allclose(client.decrypt(server.run(client.encrypt(inputs))), outputs, atol=1e-3)
    assert plan_file.load(release / "client" / "plan.json") == plan_file.load(release / "model" / "plan.json")


def test_settings(release: Path) -> None:
    folder = release / "settings"
    assert Calibration.from_json((folder / "calibration.json").read_text()).measured
    accounts = Accounts.load(folder / "accounts.json")
    assert accounts.tenant("Bearer golden-key-of-a-release-that-opens-nothing") == "clinic"
    quota = Quotas.load(folder / "quotas.json").of("clinic")
    assert (quota.bytes, quota.seconds) == (1000, 60)
    workload = Workload.from_json((folder / "program.json").read_text())
    assert json.loads(workload.to_json()) == json.loads((folder / "program.json").read_text())
