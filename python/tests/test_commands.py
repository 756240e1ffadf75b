"""The command line, end to end: in one process, and as client and server with files between them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from importlib.resources import as_file, files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright import nn
from keywright._core import bench_bootstrap
from keywright.cli import main
from keywright.commands.session import compile_model
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Chain,
    CostModel,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.cost.calibration import Calibration
from keywright.plan.cost.measuring import ROUNDS
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.workload.network import convert_bootstrap
from onnx import TensorProto, helper
from tests.test_bootstrapping import small_parameters, small_plan

DATA = files("keywright") / "data"
COUNT = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, three samples, their labels."""
    folder = tmp_path_factory.mktemp("commands")
    with as_file(DATA / "digits.onnx") as model, as_file(DATA / "digits_test.npz") as digits:
        shutil.copyfile(model, folder / "digits.onnx")
        with np.load(digits) as archive:
            np.save(folder / "images.npy", archive["images"][:COUNT])
            np.save(folder / "labels.npy", archive["labels"][:COUNT])
    return folder


@pytest.fixture(scope="module")
def keys(folder: Path) -> Path:
    """The folders of keygen."""
    assert main(["keygen", "--model", str(folder / "digits.onnx"), "--out", str(folder / "keys")]) == 0
    return folder / "keys"


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The JSON lines printed since the last call."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "keywright.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_client_and_server_are_separate_processes(folder: Path, keys: Path, tmp_path: Path) -> None:
    client, server = tmp_path / "client-machine", tmp_path / "server-machine"
    shutil.copytree(keys / "client", client)
    shutil.copytree(keys / "server", server)
    printed = ""
    sent, answer, result = tmp_path / "sent", tmp_path / "answer", tmp_path / "result.npy"
    for arguments in (
        ("encrypt", "--keys", client, "--input", folder / "images.npy", "--out", sent),
        ("run", "--keys", server, "--input", sent, "--out", answer),
        ("decrypt", "--keys", client, "--input", answer, "--out", result, "--json"),
    ):
        done = process(*arguments)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    labels = np.load(folder / "labels.npy")
    assert np.load(result).argmax(1).tolist() == labels.tolist()
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["prediction"] for row in rows] == labels.tolist()
    # The bound is that of the network's outputs, which are the ciphertexts' values times a power of two.
    program = nn.Program.load(client / "program.kwp")
    parameters = kw.Parameters.load(server / "parameters.kw")
    answers = {path: kw.Ciphertext.load(path, parameters) for path in answer.iterdir()}
    bounds = sorted(row["error_bound"] for row in rows)
    assert bounds == sorted(one.error_bound * program.output_scale for one in answers.values())
    # Nothing on the server is a secret or can be read with the parameters of one.
    for path in [*server.iterdir(), *sent.iterdir(), *answer.iterdir()]:
        if path.suffix == ".kw":
            assert not kw.inspect(path)["secret"]
            with pytest.raises(kw.KeywrightError):
                kw.SecretKey.load(path, parameters)


def test_public_keys_encrypt_too(
    folder: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    friend = tmp_path / "friend"
    shutil.copytree(keys / "client", friend, ignore=shutil.ignore_patterns("secret.kw"))
    sent, answer = tmp_path / "sent", tmp_path / "answer"
    images = str(folder / "images.npy")
    assert main(["encrypt", "--keys", str(friend), "--input", images, "--out", str(sent)]) == 0
    assert kw.inspect(next(sent.iterdir()))["kind"] == "a CKKS ciphertext"
    assert main(["run", "--keys", str(keys / "server"), "--input", str(sent), "--out", str(answer)]) == 0
    capsys.readouterr()
    assert main(["decrypt", "--keys", str(keys / "client"), "--input", str(answer), "--json"]) == 0
    labels = np.load(folder / "labels.npy").tolist()
    assert [row["prediction"] for row in lines(capsys)] == labels


def test_keygen_keeps_the_secret_private(keys: Path) -> None:
    assert {path.name for path in (keys / "client").iterdir()} == {
        "parameters.kw",
        "program.kwp",
        "public.kw",
        "secret.kw",
    }
    assert {path.name for path in (keys / "server").iterdir()} == {
        "keys.kw",
        "parameters.kw",
        "program.kwp",
    }
    if sys.platform != "win32":
        assert stat.S_IMODE((keys / "client").stat().st_mode) == 0o700
        assert stat.S_IMODE((keys / "client" / "secret.kw").stat().st_mode) == 0o600


def test_infer(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "outputs.npy"
    arguments = ["--model", str(folder / "digits.onnx"), "--input", str(folder / "images.npy")]
    assert main(["infer", *arguments, "--out", str(out), "--json"]) == 0
    labels = np.load(folder / "labels.npy").tolist()
    assert [row["prediction"] for row in lines(capsys)] == labels
    assert np.load(out).shape == (COUNT, 10)
    np.save(tmp_path / "one.npy", np.load(folder / "images.npy")[0])
    assert main(["infer", *arguments[:2], "--input", str(tmp_path / "one.npy"), "--json"]) == 0
    assert [row["prediction"] for row in lines(capsys)] == labels[:1]


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "rotations.svg"
    start = time.perf_counter()
    assert main(["demo", "--samples", "2", "--picture", str(picture), "--json"]) == 0
    assert time.perf_counter() - start < 60
    rows = lines(capsys)
    predictions = [row for row in rows if "digit" in row]
    assert len(predictions) == 2
    assert all(row["encrypted"] == row["clear"] for row in predictions)
    sets = {row["set"]: row for row in rows if "set" in row}
    planned, required, powers = sets.values()
    assert planned["keys"] == required["keys"]
    assert planned["bytes"] < required["bytes"] / 2
    assert powers["keys"] < planned["keys"]
    pytest.importorskip("matplotlib")
    assert picture.read_text().startswith("<?xml")
    capsys.readouterr()
    assert main(["demo", "--samples", "1", "--picture", str(tmp_path / "rotations.png")]) == 0
    assert "Predictions" in capsys.readouterr().out


def test_info(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "client/parameters.kw": "CKKS parameters",
        "client/secret.kw": "a secret key",
        "client/public.kw": "a public key",
        "client/program.kwp": "a program",
        "server/keys.kw": "a set of switching keys",
    }
    for name, kind in expected.items():
        assert main(["info", str(keys / name), "--json"]) == 0
        (row,) = lines(capsys)
        assert row["kind"] == kind
        assert row["bytes"] == (keys / name).stat().st_size
        assert row["secret"] == (name == "client/secret.kw")
        assert main(["info", str(keys / name)]) == 0
        assert kind in capsys.readouterr().out
    program_keys = compile_model((DATA / "digits.onnx").read_bytes(), None, None).specs
    assert main(["info", str(keys / "server/keys.kw"), "--json"]) == 0
    assert len(lines(capsys)[0]["keys"]) == len(program_keys)


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    threads = kw.threads()
    arguments = ["--set", "quick", "--runs", "1", "--threads", "1"]
    try:
        assert main(["bench", "ntt", "rotate", *arguments, "--json"]) == 0
        rows = lines(capsys)
        assert main(["bench", "ntt", *arguments]) == 0
        assert "of the limit" in capsys.readouterr().out
    finally:
        kw.set_threads(threads)
    assert {row["work"] for row in rows} == {"ntt", "rotate"}
    for row in rows:
        assert row["checked"]
        assert row["threads"] == 1
        assert 0 < row["min_s"] <= row["median_s"]
    assert "there are ntt" in fails(capsys, "bench", "walk")
    assert "runs" in fails(capsys, "bench", "--runs", "0")


def test_bench_of_bootstrapping(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "bootstrap", "--preset", "quick", "--runs", "2"]
    assert main([*command, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    [row] = [json.loads(line) for line in printed.out.splitlines()]
    assert (row["work"], row["preset"], row["log_n"], row["runs"]) == ("bootstrap", "quick", 11, 2)
    assert row["checked"]
    assert row["levels_left"] == 3
    assert row["vectors"] == 3
    assert abs(row["mean_bits"] - row["predicted_mean_bits"]) < 1
    assert abs(row["worst_bits"] - row["predicted_worst_bits"]) < 1
    assert row["bound_bits"] < row["result_worst_bits"]
    assert row["key_bytes"] == row["bytes"] > 1e6
    assert row["limit_s"] is None
    stages = [row[f"{stage}_s"] for stage in ("slots_to_coeffs", "mod_raise", "coeffs_to_slots", "eval_mod")]
    assert all(seconds > 0 for seconds in [row["keygen_s"], row["precompute_s"], *stages])
    assert row["peak_rss_bytes"] > row["key_bytes"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "worst bits" in printed.out
    assert "coeffs_to_slots" in printed.out
    assert printed.err.split() == ["parameters", "keys", "matrices", "bootstraps"]
    assert "--preset" in fails(capsys, "bench", "bootstrap")
    assert "--preset" in fails(capsys, "bench", "ntt", "--preset", "quick")
    assert "runs" in fails(capsys, *command[:-1], "0")
    assert "at least 2" in fails(capsys, *command, "--vectors", "1")
    assert "--vectors" in fails(capsys, "bench", "ntt", "--vectors", "3")


def test_bench_of_bootstrapping_stops_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Stop(Exception):
        pass

    phases: list[str] = []

    def stop(phase: str, done: int, total: int) -> None:
        phases.append(phase)
        if phase == "keys":
            raise Stop

    with pytest.raises(Stop):
        bench_bootstrap(print, preset="quick", progress=stop)
    assert phases == ["parameters", "keys"]
    assert capsys.readouterr().out == ""
    with pytest.raises(kw.ParameterError, match="quick"):
        bench_bootstrap(print, preset="slow")


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a command prints when it fails."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    return printed.err.strip()


def test_errors_are_one_line(
    folder: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, images, client = folder / "digits.onnx", folder / "images.npy", keys / "client"
    wrong, text, objects = tmp_path / "wrong.npy", tmp_path / "text.npy", tmp_path / "objects.npy"
    np.save(wrong, np.zeros((2, 3)))
    text.write_text("1 2 3")
    np.save(objects, np.array([None]), allow_pickle=True)
    archive = tmp_path / "archive.npz"
    np.savez(archive, a=np.zeros(1))
    nan = tmp_path / "nan.npy"
    np.save(nan, np.full((1, 8, 8), np.nan))
    damaged = tmp_path / "damaged"
    shutil.copytree(client, damaged)
    data = bytearray((damaged / "public.kw").read_bytes())
    data[len(data) // 2] ^= 1
    (damaged / "public.kw").write_bytes(data)
    (damaged / "secret.kw").unlink()
    empty = tmp_path / "empty"
    empty.mkdir()
    out = tmp_path / "out"
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("takes (1, 8, 8), or many", ("infer", "--model", model, "--input", wrong)),
        ("not a numpy file", ("infer", "--model", model, "--input", text)),
        ("not a numpy file", ("infer", "--model", model, "--input", objects)),
        ("archive of a", ("infer", "--model", model, "--input", archive)),
        ("not finite", ("infer", "--model", model, "--input", nan)),
        ("absent.npy", ("infer", "--model", model, "--input", tmp_path / "absent.npy")),
        ("absent.onnx", ("infer", "--model", tmp_path / "absent.onnx", "--input", images)),
        ("cannot be compiled", ("infer", "--model", text, "--input", images)),
        ("levels", ("infer", "--model", model, "--input", images, "--preset", "N13_QP214_S38")),
        ("exists; remove it", ("keygen", "--model", model, "--out", keys)),
        ("keys.kw; name the server folder", ("run", "--keys", client, "--input", empty, "--out", out)),
        ("holds no ciphertexts", ("run", "--keys", keys / "server", "--input", empty, "--out", out)),
        ("client folder", ("decrypt", "--keys", keys / "server", "--input", empty)),
        ("public.kw", ("encrypt", "--keys", damaged, "--input", images, "--out", out)),
        ("wrong.npy", ("info", wrong)),
        ("is a folder", ("info", tmp_path)),
        ("1 to 64", ("demo", "--samples", 0)),
        ("make it first", ("demo", "--picture", tmp_path / "no" / "picture.png")),
        (".png or .svg", ("demo", "--samples", 1, "--picture", tmp_path / "picture.txt")),
    ]
    for part, arguments in cases:
        line = fails(capsys, *arguments)
        assert part in line, line
        assert "\n" not in line, line
        assert not out.exists()
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]


def test_a_model_that_is_not_supported_is_refused_before_any_key(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["y"], name="last")],
        "unsupported",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
    )
    path = tmp_path / "softmax.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    line = fails(capsys, "keygen", "--model", path, "--out", tmp_path / "keys")
    assert "Softmax" in line
    assert not (tmp_path / "keys").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_keygen_without_partial_files(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "keys"
    arguments = ["keygen", "--model", folder / "digits.onnx", "--out", out, "--preset", "N16_QP1660_S50"]
    command = [sys.executable, "-m", "keywright.cli", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 60
        # The key set is the last file to be written, under a name of its own.
        while not list(tmp_path.glob(".keys.*/server/.keys.kw*")) and time.monotonic() < deadline:
            assert running.poll() is None, running.communicate()[1]
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for command in ("keygen", "encrypt", "run", "decrypt", "infer", "demo", "info", "bench"):
        assert command in shown
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert kw.__version__ in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["unknown"])
    assert caught.value.code == 2


@pytest.fixture(scope="module")
def planned(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for the digits, with one hop: what is decided at once."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    arguments = ["--time", "1.2x", "--hops", "1", "--out", str(path), "--json"]
    assert main(["plan", str(folder / "digits.onnx"), *arguments]) == 0
    return path


def test_a_plan_is_made_into_keys_and_followed(
    folder: Path, planned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, model = tmp_path / "keys", str(folder / "digits.onnx")
    assert main(["keygen", "--model", model, "--plan", str(planned), "--out", str(keys)]) == 0
    plan = plan_file.load(planned)
    parameters = kw.Parameters.load(keys / "server" / "parameters.kw")
    made = kw.EvaluationKeys.load(keys / "server" / "keys.kw", parameters)
    assert (len(made), sum(spec.bytes for spec in made)) == (len(plan.keys), plan.stored_bytes)
    sent, images = tmp_path / "sent", str(folder / "images.npy")
    assert main(["encrypt", "--keys", str(keys / "client"), "--input", images, "--out", str(sent)]) == 0
    labels = np.load(folder / "labels.npy").tolist()
    run = ["run", "--keys", str(keys / "server"), "--input", str(sent)]
    for name, memory in (("all", []), ("some", ["--key-memory", str(plan.stored_bytes * 3 // 4)])):
        answer = tmp_path / name
        capsys.readouterr()
        assert main([*run, *memory, "--out", str(answer), "--json"]) == 0
        streamed = lines(capsys)[1:]
        assert [row["peak_bytes"] <= plan.stored_bytes * 3 // 4 for row in streamed] == [True] * bool(memory)
        assert main(["decrypt", "--keys", str(keys / "client"), "--input", str(answer), "--json"]) == 0
        assert [row["prediction"] for row in lines(capsys)] == labels
    # A key does not fit.
    assert main([*run, "--key-memory", "1KiB", "--out", str(tmp_path / "none")]) == 2
    assert "allow at least" in capsys.readouterr().err
    # Keys of another plan.
    other = tmp_path / "other"
    assert main(["keygen", "--model", model, "--out", str(other)]) == 0
    shutil.copyfile(other / "server" / "keys.kw", keys / "server" / "keys.kw")
    assert main([*run, "--out", str(tmp_path / "wrong")]) == 2
    assert "digest" in capsys.readouterr().err
    assert (
        main(["run", "--keys", str(other / "server"), *run[3:], "--key-memory", "1GiB", "--out", "no"]) == 2
    )
    assert "keygen --plan" in capsys.readouterr().err


def test_a_plan_of_master_keys_is_made_and_followed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, planned, made = str(folder / "digits.onnx"), tmp_path / "plan.json", tmp_path / "keys"
    shown = ["plan", model, "--time", "1.2x", "--hops", "1", "--strategy", "kds", "--derived"]
    assert main([*shown, "--out", str(planned), "--json"]) == 0
    (record,) = [row for row in lines(capsys) if "plan" in row]
    price = record["plan"]["derived"]
    assert main(["keygen", "--model", model, "--plan", str(planned), "--out", str(made)]) == 0
    server = made / "server"
    parameters = kw.Parameters.load(server / "parameters.kw")
    sent_keys = kw.EvaluationKeys.load(server / "keys.kw", parameters)
    masters = kw.MasterKeys.load(server / "masters.kw", parameters)
    assert len(masters) == len(price["masters"])
    assert len(sent_keys) == price["direct_keys"]
    sent_bytes = sum(spec.bytes for spec in sent_keys) + masters.bytes
    assert sent_bytes == price["sent_bytes"]
    sent, image = tmp_path / "sent", tmp_path / "image.npy"
    np.save(image, np.load(folder / "images.npy")[:1])
    label = np.load(folder / "labels.npy")[0]
    encrypt = ["encrypt", "--keys", str(made / "client"), "--input", str(image), "--out", str(sent)]
    assert main(encrypt) == 0
    run = ["run", "--keys", str(server), "--input", str(sent)]
    memory = masters.bytes + price["stored_bytes"] // 2
    for name, bound in (("all", []), ("some", ["--key-memory", str(memory)])):
        answer = tmp_path / name
        capsys.readouterr()
        assert main([*run, *bound, "--out", str(answer), "--json"]) == 0
        assert all(row["peak_bytes"] <= memory for row in lines(capsys)[1:])
        assert main(["decrypt", "--keys", str(made / "client"), "--input", str(answer), "--json"]) == 0
        assert [row["prediction"] for row in lines(capsys)] == [label]
    # Master keys of others, and none.
    secret = kw.SecretKey.load(made / "client" / "secret.kw", parameters)
    kw.MasterKeys.generate(secret, [3], [60], level=0).save(server / "masters.kw")
    assert main([*run, "--out", str(tmp_path / "wrong")]) == 2
    assert "master keys have digest" in capsys.readouterr().err
    (server / "masters.kw").unlink()
    assert main([*run, "--out", str(tmp_path / "none")]) == 2
    assert "masters.kw" in capsys.readouterr().err


def test_keys_of_a_plan_for_a_bootstrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A small bootstrapping in the place of a preset."""
    bootstrap, other = small_plan(small_parameters()), small_plan(small_parameters(), arcsine_degree=5)
    named = {"small": bootstrap, "other": other}
    monkeypatch.setattr(kw, "BootstrapperPlan", SimpleNamespace(preset=named.__getitem__))
    monkeypatch.setattr(kw, "bootstrap_presets", lambda: list(named))
    path, keys = tmp_path / "plan.json", tmp_path / "keys"
    planned = STRATEGIES["power-of-two"].plan(convert_bootstrap(bootstrap, "small"), CostModel())
    path.write_text(plan_file.to_json(planned))
    assert main(["keygen", "--plan", str(path), "--out", str(keys)]) == 0
    client, server = keys / "client", keys / "server"
    assert {file.name for file in client.iterdir()} == {"parameters.kw", "public.kw", "secret.kw"}
    assert {file.name for file in server.iterdir()} == {"keys.kw", "parameters.kw", "plan.json"}
    parameters = kw.Parameters.load(server / "parameters.kw")
    execution = PlanExecution(plan_file.load(server / "plan.json"), parameters, bootstraps=[bootstrap])
    evaluator = kw.Evaluator(parameters, execution.load_keys(server / "keys.kw"))
    assert sum(spec.bytes for spec in execution.key_specs()) == planned.stored_bytes
    values = np.random.default_rng(3).uniform(-1, 1, bootstrap.slots)
    encryptor = kw.Encryptor(kw.PublicKey.load(client / "public.kw", parameters))
    fresh = encryptor.encrypt(values, slots=bootstrap.slots, level=bootstrap.input_level)
    result = kw.Bootstrapper(execution.bootstrapper_plans[0]).bootstrap(evaluator, fresh)
    decryptor = kw.Decryptor(kw.SecretKey.load(client / "secret.kw", parameters))
    assert np.abs(decryptor.decrypt(result) - values).max() <= result.error_bound < 0.1
    # Commands for models say what such keys are; a plan of something else is refused.
    assert "used from Python" in fails(capsys, "run", "--keys", server, "--input", client, "--out", "no")
    out = ("--out", tmp_path / "refused")
    assert "this one is" in fails(capsys, "keygen", "--plan", path, "--preset", "other", *out)
    for wrong in (("--preset", "N13_QP214_S38"), ("--parameters", server / "parameters.kw")):
        assert "which bootstrapping it is" in fails(capsys, "keygen", "--plan", path, *wrong, *out)
    assert not (tmp_path / "refused").exists()


def test_keys_of_a_plan_for_key_switches_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = kw.Parameters.from_bits(11, [50, 40, 40, 40], [50, 50], 40, insecure=True)
    stored, path, planned = (tmp_path / name for name in ("mine.kw", "program.json", "plan.json"))
    parameters.save(stored)
    group = make_group(AutomorphismGroup(11), "window", 2, [1, 2, 3, 5])
    path.write_text(Workload("sums", Chain(11, (50, 40, 40, 40), (50, 50), 400), (group,)).to_json())
    plan = ["plan", str(path), "--hops", "1", "--out", str(planned)]
    keys, out = tmp_path / "keys", ("--out", tmp_path / "refused")
    assert main([*plan]) == 0
    assert "--parameters" in fails(capsys, "keygen", "--plan", planned, "--parameters", stored, *out)
    assert main([*plan, "--parameters", str(stored)]) == 0
    made = ["keygen", "--plan", str(planned), "--parameters", str(stored), "--out", str(keys)]
    assert main(made) == 0
    execution = PlanExecution(plan_file.load(keys / "server" / "plan.json"), parameters)
    followed = execution.load_keys(keys / "server" / "keys.kw")
    assert sum(spec.bytes for spec in execution.key_specs()) == execution.plan.stored_bytes
    assert len(followed) == len(execution.plan.keys)
    for part, arguments in (
        ("called 'sums'", ("keygen", "--plan", planned, *out)),
        ("no plan", ("keygen", *out)),
        ("is for a model", ("keygen", "--plan", planned, "--calibration", path, *out)),
        ("either", ("keygen", "--plan", planned, "--preset", "N13_QP214_S38", "--parameters", stored, *out)),
        ("parameters have", ("keygen", "--plan", planned, "--preset", "N13_QP214_S38", *out)),
        ("without a model", ("keygen", "--model", path, "--parameters", stored, *out)),
        ("parameters have", ("plan", path, "--preset", "N13_QP214_S38")),
        ("another kind of file", ("plan", path, "--parameters", path)),
        ("says nothing about", ("plan", path, "--calibration", path)),
        ("says nothing about", ("plan", stored, "--parameters", stored)),
        ("no such file", ("plan", tmp_path / "absent")),
        ("says nothing about", ("plan", kw.bootstrap_presets()[0], "--preset", kw.presets()[0])),
    ):
        assert part in fails(capsys, *arguments)
    assert not (tmp_path / "refused").exists()


def test_json_of_a_plan_says_everything(
    folder: Path, planned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.json"
    program.write_text(plan_file.load(planned).workload.to_json())
    pictures = [tmp_path / f"{name}.svg" for name in ("frontier", "rotations", "residency")]
    drawn = ["--picture", str(pictures[0]), "--rotations", str(pictures[1]), "--residency", str(pictures[2])]
    assert main(["plan", str(program), "--memory", "100MiB", "--hops", "1", "--json", *drawn]) == 0
    (record,) = [row for row in lines(capsys) if "plan" in row]
    strategy = {
        "name",
        "keys",
        "stored_bytes",
        "sent_bytes",
        "client_keygen_s",
        "predicted_s",
        "max_hops",
        "noise_bits",
        "gap",
    }
    assert all(strategy <= row.keys() for row in record["strategies"])
    assert {row["name"] for row in record["strategies"]} == {*STRATEGIES, "optimal"}
    assert all(record["plan"][name] for name in ("keys", "uses", "relinearization"))
    assert all(path.stat().st_size > 0 for path in pictures)
    assert main(["plan", str(program), "--memory", "1KiB", "--hops", "1"]) == 2
    assert "The smallest has" in capsys.readouterr().err
    assert main(["plan", str(program), "--noise", "0.25", "--hops", "1", "--json"]) == 0
    (record,) = [row for row in lines(capsys) if "plan" in row]
    optimal = next(row for row in record["strategies"] if row["name"] == "optimal")
    assert optimal["noise_bits"] <= 0.25
    assert {row["name"] for row in record["strategies"] if row["offered"] == "no"} >= {"lowmem"}
    refused = tmp_path / "refused.json"
    loud = ["plan", str(program), "--noise", "0.25", "--strategy", "lowmem", "--hops", "1"]
    assert main([*loud, "--out", str(refused)]) == 2
    assert "the error budget is 0.25" in capsys.readouterr().err
    assert not refused.exists()
    assert main(["plan", str(program), "--noise", "0", "--hops", "1"]) == 2
    assert "bits of noise" in capsys.readouterr().err
    assert main(["plan", str(program), "--memory", "lots"]) == 2
    assert "no amount of memory" in capsys.readouterr().err


def test_bad_input_of_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = Chain(12, (40, 30, 30), (40,), 240)
    group = make_group(AutomorphismGroup(12), "one", 2, [1, 2, 3, 5, 8, 40])
    path, deep, planned = tmp_path / "program.json", tmp_path / "deep.json", tmp_path / "plan.json"
    path.write_text(Workload("six", chain, (group,), (Relinearizations(2, 1),)).to_json())
    full = Chain(13, (60, 60, 60), (60,))
    deep.write_text(Workload("deep", full, (make_group(AutomorphismGroup(13), "g", 2, [1]),)).to_json())
    assert main(["plan", str(path), "--hops", "1", "--out", str(planned)]) == 0
    broken = tmp_path / "broken.json"
    broken.write_text(planned.read_text()[:-9])
    machine = tmp_path / "machine.json"
    machine.write_text("{}")
    picture = tmp_path / "no" / "picture.svg"
    amount = "is no amount of memory; write"
    for arguments, parts in (
        (("--memory", "0"), ("at most 0 B", "The smallest has", "largest key, for level 2", "more hops")),
        (("--memory", "100KB"), ("at most 97.7 KiB", "by count none")),
        *(
            ((f"--memory={text}",), (repr(text), amount))
            for text in ("-1GiB", "nan", "inf", "", "8XB", "1e9")
        ),
        (("--time", "0.01x"), ("The fastest, with", "Allow more time")),
        *(((f"--time={text}",), (repr(text), "is no time")) for text in ("0x", "0s", "-1x", "", "2", "nanx")),
        (("--noise", "nan"), ("an error budget of nan bits",)),
        (("--noise=-1",), ("an error budget of -1 bits", "0 or more")),
        (("--noise", "0"), ("no plan found is within 0.00 bits of noise",)),
        (("--derived", "0"), ("at most 0 B to send", "The least is", "master key")),
        (("--derived", "x"), (amount,)),
        (("--out", tmp_path), ("is a folder",)),
        (("--out", picture), ("make it first",)),
        (("--picture", picture), ("make it first",)),
        (("--rotations", tmp_path / "a.pdf"), (".png or .svg",)),
        (("--machine", tmp_path / "absent"), ("absent: No such file",)),
        (("--machine", machine), ("machine.json: not a calibration", "run keywright calibrate")),
    ):
        line = fails(capsys, "plan", path, "--hops", "1", *arguments)
        assert all(part in line for part in parts), line
        assert "\n" not in line
    out = ("--out", tmp_path / "refused")
    for parts, command in (
        (("there is no such file", "N15_QP861_L3_S37"), ("plan", tmp_path / "absent")),
        (("absent.json: No such file",), ("plan", tmp_path / "absent.json")),
        (("deep: no key of level 2", "214 bits"), ("plan", deep)),
        (("plan.json: not a program", "keywright-program-1"), ("plan", planned)),
        (("not a plan", "keywright plan --out"), ("keygen", "--plan", path, *out)),
        (("broken.json: not a plan: not JSON",), ("keygen", "--plan", broken, *out)),
    ):
        line = fails(capsys, *command)
        assert all(part in line for part in parts), line
    for wrong in (
        ("--strategy", "x"),
        ("--hops", "0"),
        ("--memory", "1GB", "--time", "1x"),
        ("--noise", "x"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["plan", str(path), *wrong])
        assert caught.value.code == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        file.name for file in (path, deep, planned, broken, machine)
    )


def test_calibrate(
    planned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cache" / "machine.json"
    monkeypatch.setenv("KEYWRIGHT_CALIBRATION", str(path))
    monkeypatch.setitem(ROUNDS, 13, 1)
    assert main(["calibrate", "--rings", "13", "--json"]) == 0
    assert {row["what"] for row in lines(capsys) if "what" in row} >= {"a key switch alone", "making a key"}
    assert main(["calibrate", "--network", "digits.onnx"]) == 2
    assert "--check" in capsys.readouterr().err
    assert main(["calibrate", "--rings", "13", "--check", "--json"]) == 0
    (network,) = [row for row in lines(capsys) if "measured_s" in row]
    assert network["what"].startswith("network digits")
    assert network["predicted_s"] == pytest.approx(network["switches_s"] + network["rest_s"])
    ratio = network["predicted_s"] / network["measured_s"]
    assert network["error"] == pytest.approx(abs(ratio - 1))
    assert network["steady_error"] == pytest.approx(abs(ratio * network["slowdown"] - 1))
    assert main(["calibrate", "--rings", "14", "--check"]) == 2
    assert "no ring of degree 2^14" in capsys.readouterr().err
    program = tmp_path / "program.json"
    program.write_text(plan_file.load(planned).workload.to_json())
    plan = ["plan", str(program), "--hops", "1", "--memory", "100MiB", "--json"]
    capsys.readouterr()
    assert main(plan) == 0
    calibrated = Calibration.from_json(path.read_text())
    (record,) = [row for row in lines(capsys) if "plan" in row]
    assert record["calibration"] == calibrated.machine
    elsewhere = json.loads(path.read_text())
    elsewhere["machine"] = "an abacus"
    path.write_text(json.dumps(elsewhere))
    assert main(plan) == 2
    assert "an abacus" in capsys.readouterr().err
    path.write_text("{}")
    assert main(plan) == 2
    assert "not a calibration" in capsys.readouterr().err


def test_a_plan_whose_keys_are_derived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = Chain(12, (40, 30, 30), (40,), 240)
    group = make_group(AutomorphismGroup(12), "one", 2, [1, 2, 3, 5, 8, 40])
    path = tmp_path / "program.json"
    path.write_text(Workload("six", chain, (group,), (Relinearizations(2, 1),)).to_json())
    # The special prime is no wider than the largest digit: derivations show.
    shown = ["plan", str(path), "--strategy", "all-required", "--hops", "1"]
    assert main([*shown, "--derived", "--noise", "4"]) == 2
    assert "the error budget is 4.00" in capsys.readouterr().err
    assert main([*shown, "--derived", "--json"]) == 0
    (record,) = [row for row in lines(capsys) if "plan" in row]
    direct, derived = (
        next(row for row in record["strategies"] if row["name"] == name)
        for name in ("all-required", "all-required, derived")
    )
    assert derived["sent_bytes"] < direct["sent_bytes"]
    assert derived["noise_bits"] > direct["noise_bits"]
    masters = record["plan"]["derived"]
    assert masters["sent_bytes"] == derived["sent_bytes"]
    assert masters["server_s"] > 0
    assert len(masters["masters"]) < 6
    assert main([*shown, "--derived", "100KB"]) == 2
    assert "The least is" in capsys.readouterr().err
    assert main([*shown, "--derived", "many"]) == 2
    assert main([*shown, "--derived", "1GB"]) == 0
    assert "master keys" in capsys.readouterr().err
    full = Chain(12, chain.q, chain.p, 150)
    path.write_text(Workload("full", full, (group,)).to_json())
    assert main([*shown, "--derived"]) == 2
    assert "no room" in capsys.readouterr().err
