"""Write one file of every format of this version, which later ones have to read, into vectors/releases.

    python scripts/golden_files.py

The folder has the name of the version; a released one is never written again. A test
(`python/tests/packaging/test_releases.py`) reads all folders, and one that it writes. They have secrets, but
protect nothing.
"""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
from keywright._core import EncryptedSum, SumKey, SumParameters
from keywright.plan import AutomorphismGroup, Chain, Relinearizations, Workload, make_group
from keywright.plan.cost.calibration import Calibration
from keywright.plan.cost.ephemeral import EphemeralSwitch, FixedKeys
from keywright.plan.cost.operations import Operation
from keywright.plan.workload.workload import CommonWork
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "vectors" / "releases"
VALUES = [1.5, -2.25, 0.5, 3.0]
INTEGERS = [7, -3, 40_000 - 65_537, 12]
SESSION = bytes(range(16))
API_KEY = "golden-key-of-a-release-that-opens-nothing"


def network() -> onnx.ModelProto:
    """Two linear maps with a square between them."""
    random = np.random.default_rng(21)
    shapes = {"first": (6, 4), "bias": (4,), "second": (4, 3)}
    weights = {name: random.normal(size=shape) for name, shape in shapes.items()}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "first", "bias"], ["hidden"]),
            helper.make_node("Mul", ["hidden", "hidden"], ["square"]),
            helper.make_node("MatMul", ["square", "second"], ["y"]),
        ],
        "golden",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def workload() -> Workload:
    """Key switches of a program, of every kind that the file has."""
    return Workload(
        "everything",
        Chain(12, (40, 30, 30), (40,), 240),
        (make_group(AutomorphismGroup(12), "one", 2, [1, 2, 3, 5, 8, 40]),),
        (Relinearizations(2, 1),),
        9.0,
        (Operation("sum", 2, 1, visits=2),),
        CommonWork((EphemeralSwitch(32, 1, 1, 1),), (FixedKeys(1, 1, 2),), (((1, 2), (2, 1)),)),
    )


def write_ckks(folder: Path) -> None:
    """Parameters, keys, ciphertexts, and the answer of a server: ``x^2``, rotated by 1."""
    folder.mkdir()
    parameters = kw.Parameters.from_bits(10, [50, 40], [50], 40, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    generator = kw.KeyGenerator(secret)
    keys = generator.evaluation_keys(rotations=[1])
    fresh = kw.Decryptor(secret).encrypt(VALUES, slots=4, magnitude=4)
    evaluator = kw.Evaluator(parameters, keys)
    parameters.save(folder / "parameters.kw")
    secret.save(folder / "secret.kw")
    generator.public_key().save(folder / "public.kw")
    keys.save(folder / "keys.kw")
    fresh.save(folder / "input.kw")
    evaluator.rotate(evaluator.square(fresh.expand()), 1).save(folder / "answer.kw")


def write_bfv(folder: Path) -> None:
    """Integers under BFV."""
    folder.mkdir()
    parameters = kw.bfv.Parameters.preset("N12_QP106_T17")
    secret = kw.SecretKey.generate(parameters)
    parameters.save(folder / "parameters.kw")
    secret.save(folder / "secret.kw")
    kw.bfv.Decryptor(secret).encrypt(INTEGERS).save(folder / "input.kw")


def write_thin(folder: Path) -> None:
    """A thin client: what a server hands out, the secret, and both forms of an upload."""
    folder.mkdir()
    server = kw.Parameters.from_bits(12, [50], [], 43)
    handed_out = kw.thin.Parameters(server, scale=1 << 43, fraction_bits=20, slots=2048)
    client = kw.thin.Client(handed_out)
    numbers = [round(value * (1 << 16)) for value in VALUES]
    server.save(folder / "server.kw")
    (folder / "client.kw").write_bytes(handed_out.to_bytes())
    (folder / "secret.kw").write_bytes(client.secret_bytes())
    (folder / "upload.kw").write_bytes(client.encrypt(numbers))
    (folder / "compact.kw").write_bytes(client.encrypt(numbers, dropped=6))


def write_sums(folder: Path) -> None:
    """Two encrypted updates and their sum."""
    folder.mkdir()
    parameters = SumParameters(4, 1 << 20)
    key = SumKey.generate(parameters)
    updates = [
        key.encrypt(np.array([number, -5, 1000]), session=SESSION, round=3, client=number, weight=number)
        for number in (8, 9)
    ]
    key.save(folder / "key.kw")
    (folder / "update.kw").write_bytes(updates[0].to_bytes())
    (folder / "sum.kw").write_bytes(EncryptedSum.of(updates, parameters).to_bytes())


def write_model(folder: Path) -> None:
    """A compiled model, a client of it, and a message and its answer."""
    samples = np.random.default_rng(22).uniform(-1, 1, (20, 6))
    model = kw.compile(network(), calibration=samples)
    model.save(folder / "model", "golden")
    client, server = model.client(), model.server()
    server.load_keys(client.keys())
    client.save(folder / "client")
    message = client.encrypt(samples[:2])
    (folder / "message.kw").write_bytes(message)
    (folder / "answer.kw").write_bytes(server.run(message))
    np.savez(folder / "samples.npz", inputs=samples[:2], outputs=model.predict(samples[:2]))


def write_settings(folder: Path) -> None:
    """Files that people write, and that commands write for them."""
    folder.mkdir()
    calibration = ROOT / "python" / "tests" / "plan" / "calibration.json"
    text = Calibration.from_json(calibration.read_text(encoding="utf-8")).to_json()
    (folder / "calibration.json").write_text(text, encoding="utf-8")
    digest = hashlib.sha256(API_KEY.encode()).hexdigest()
    accounts = {"format": "keywright-accounts-1", "tenants": {"clinic": [digest]}}
    quotas = {"format": "keywright-quotas-1", "tenants": {"clinic": {"bytes": 1000, "seconds": 60}}}
    (folder / "program.json").write_text(workload().to_json(), encoding="utf-8")
    (folder / "accounts.json").write_text(json.dumps(accounts), encoding="utf-8")
    (folder / "quotas.json").write_text(json.dumps(quotas), encoding="utf-8")


def write(folder: Path) -> None:
    """Write all files into a new folder, and their digests."""
    folder.mkdir(parents=True)
    write_ckks(folder / "ckks")
    write_bfv(folder / "bfv")
    write_thin(folder / "thin")
    write_sums(folder / "sums")
    write_model(folder)
    write_settings(folder / "settings")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
    )
    (folder / "SHA256SUMS").write_text(sums, encoding="ascii")


def main() -> int:
    """Write the folder of this version again."""
    folder = FOLDER / kw.__version__
    shutil.rmtree(folder, ignore_errors=True)
    write(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
