"""The command line, end to end: in one process, and as client and server with files between them."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import keywright as kw
import numpy as np
import onnx
import pytest
from keywright._reading.sealed import seal
from keywright.cli import main
from keywright.commands.models.infer import predicted_speedup
from keywright.errors import FormatError, MismatchError, OutOfRangeError, SecretFileWarning
from keywright.model import Identity, Model, load_client
from keywright.model.exchange.identity import FORMAT
from onnx import TensorProto, helper, numpy_helper
from tests.commands.conftest import COUNT, DATA
from tests.commands.printed import fails, lines, process


def test_client_and_server_are_separate_processes(folder: Path, keys: Path, tmp_path: Path) -> None:
    client, server = tmp_path / "client-machine", tmp_path / "server-machine"
    shutil.copytree(keys / "client", client)
    shutil.copytree(keys / "server", server)
    printed = ""
    sent, answer, result = tmp_path / "sent", tmp_path / "answer", tmp_path / "result.npy"
    for arguments in (
        ("encrypt", client, "--input", folder / "images.npy", "--out", sent),
        ("run", server, "--input", sent, "--out", answer),
        ("decrypt", client, "--input", answer, "--out", result, "--json"),
    ):
        done = process(*arguments)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    labels = np.load(folder / "labels.npy")
    assert np.load(result).argmax(1).tolist() == labels.tolist()
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["prediction"] for row in rows] == labels.tolist()
    # Results declare what fits their modulus. Errors of the worst case over all inputs do not.
    parameters = kw.Parameters.load(server / "parameters.kw")
    for path in answer.glob("*.kw"):
        one = kw.Ciphertext.load(path, parameters)
        assert one.magnitude_bound * one.scale < parameters.q[0] / 2
        assert one.error_bound == np.inf
    assert [row["error_bound"] for row in rows] == [None] * len(rows)
    # Nothing on the server is a secret key or can be read as one with its parameters.
    for path in [*server.iterdir(), *sent.iterdir(), *answer.iterdir()]:
        if path.suffix == ".kw":
            assert not kw.keys.inspect(path)["secret"]
            with pytest.raises(kw.KeywrightError):
                kw.SecretKey.load(path, parameters)


def test_public_keys_encrypt_too(
    folder: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    friend = tmp_path / "friend"
    shutil.copytree(keys / "client", friend, ignore=shutil.ignore_patterns("secret.kw"))
    sent, answer = tmp_path / "sent", tmp_path / "answer"
    images = str(folder / "images.npy")
    assert main(["encrypt", str(friend), "--input", images, "--out", str(sent)]) == 0
    assert kw.keys.inspect(next(sent.glob("*.kw")))["kind"] == "a CKKS ciphertext"
    assert main(["run", str(keys / "server"), "--input", str(sent), "--out", str(answer)]) == 0
    capsys.readouterr()
    decrypt = ["decrypt", str(keys / "client"), "--input", str(answer)]
    assert main([*decrypt, "--json"]) == 0
    labels = np.load(folder / "labels.npy").tolist()
    assert [row["prediction"] for row in lines(capsys)] == labels
    # The worst-case bound of this network is so large that noise of its size hides everything.
    assert main([*decrypt, "--flooding", "1", str(len(labels))]) == 2
    assert "leaves an error of up to" in capsys.readouterr().err


def test_results_to_be_handed_out_have_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = np.random.default_rng(1).uniform(-1, 1, (4, 2)).astype(np.float32)
    samples = np.random.default_rng(2).uniform(-1, 1, (3, 4))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["count", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["count", 2])],
        [numpy_helper.from_array(weights, "w")],
    )
    model, images, keys = tmp_path / "dense.onnx", tmp_path / "samples.npy", tmp_path / "keys"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    np.save(images, samples)
    sent, answer, client = tmp_path / "sent", tmp_path / "answer", str(keys / "client")
    assert main(["keygen", str(model), "--out", str(keys)]) == 0
    assert main(["encrypt", client, "--input", str(images), "--out", str(sent)]) == 0
    assert main(["run", str(keys / "server"), "--input", str(sent), "--out", str(answer)]) == 0
    capsys.readouterr()
    decrypt, outputs = ["decrypt", client, "--input", str(answer)], tmp_path / "outputs.npy"
    assert main([*decrypt, "--flooding", "10", "100", "--out", str(outputs), "--json"]) == 0
    bounds = [row["error_bound"] for row in lines(capsys)]
    errors = np.abs(np.load(outputs) - samples @ weights).max(1)
    assert (errors < bounds).all()
    # Nine deviations of the noise are the bound, far above that of the ciphertext.
    assert errors.max() > max(bounds) / 100
    assert main([*decrypt, "--json"]) == 0
    assert all(row["error_bound"] < min(bounds) / 1000 for row in lines(capsys))
    assert main([*decrypt, "--flooding", "4", "2"]) == 2
    assert "all 2 decryptions" in capsys.readouterr().err
    assert main([*decrypt, "--flooding", "0", "2"]) == 2
    assert "outside 1 to 64" in capsys.readouterr().err


def test_keys_of_two_clients_are_told_apart(
    folder: Path, keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, images = folder / "digits.onnx", folder / "images.npy"
    other, sent, answer, out = (tmp_path / name for name in ("other", "sent", "answer", "out"))
    assert main(["keygen", str(model), "--out", str(other)]) == 0
    assert main(["encrypt", str(keys / "client"), "--input", str(images), "--out", str(sent)]) == 0
    assert main(["run", str(keys / "server"), "--input", str(sent), "--out", str(answer)]) == 0
    capsys.readouterr()
    result = out / "result.npy"
    for arguments in (
        ("run", other / "server", "--input", sent, "--out", out),
        ("run", other / "server", "--input", sent, "--out", out, "--key-memory", "1GiB"),
        ("decrypt", other / "client", "--input", answer, "--out", result),
    ):
        assert "made with different secrets" in fails(capsys, *arguments)
        assert not out.exists()
    assert main(["info", str(sent / "000000-0.kw"), "--json"]) == 0
    secret = kw.keys.inspect(keys / "client" / "secret.kw")
    assert lines(capsys)[0]["key_identity"] == secret["key_identity"]


def test_keygen_keeps_the_secret_private(keys: Path) -> None:
    assert {path.name for path in (keys / "client").iterdir()} == {
        "model.json",
        "parameters.kw",
        "plan.json",
        "program.kwp",
        "public.kw",
        "secret.kw",
    }
    assert {path.name for path in (keys / "server").iterdir()} == {
        "keys.kw",
        "model.json",
        "parameters.kw",
        "plan.json",
        "program.kwp",
    }
    if sys.platform != "win32":
        assert stat.S_IMODE((keys / "client").stat().st_mode) == 0o700
        assert stat.S_IMODE((keys / "client" / "secret.kw").stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o644, True), (0o620, True)])
def test_a_secret_that_others_may_read_is_used_with_a_warning(
    keys: Path, tmp_path: Path, mode: int, warned: bool
) -> None:
    client = tmp_path / "client"
    shutil.copytree(keys / "client", client)
    (client / "secret.kw").chmod(mode)
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        load_client(client)
    messages = [str(warning.message) for warning in caught_warnings if warning.category is SecretFileWarning]
    assert len(messages) == warned
    assert all(f"mode {mode:03o}" in message for message in messages)


def test_infer(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "outputs.npy"
    arguments = [str(folder / "digits.onnx"), "--input", str(folder / "images.npy")]
    assert main(["infer", *arguments, "--out", str(out), "--batch", "1", "--json"]) == 0
    labels = np.load(folder / "labels.npy").tolist()
    *rows, summary = lines(capsys)
    assert [row["prediction"] for row in rows] == labels
    assert np.load(out).shape == (COUNT, 10)
    assert (summary["samples"], summary["batch"]) == (COUNT, 1)
    program = kw.compile((DATA / "digits.onnx").read_bytes(), batch=1).program
    switches = sum(switch.count for switch in program.key_switches)
    assert summary["key_switches"] == sum(kind["key_switches"] for kind in summary["kinds"]) == switches
    measured = sum(kind["seconds"] for kind in summary["kinds"]) * COUNT
    assert 0 < measured <= summary["evaluate_seconds"]
    predicted = program.seconds / predicted_speedup()[0]
    assert sum(kind["predicted"] for kind in summary["kinds"]) == pytest.approx(predicted)
    assert summary["peak_bytes"] > summary["key_bytes"] + summary["model_bytes"] > 0
    np.save(tmp_path / "one.npy", np.load(folder / "images.npy")[0])
    assert main(["infer", arguments[0], "--input", str(tmp_path / "one.npy"), "--json"]) == 0
    *rows, summary = lines(capsys)
    assert [row["prediction"] for row in rows] == labels[:1]
    assert summary["batch"] == 1


def test_ciphertexts_of_another_program_are_refused(tmp_path: Path) -> None:
    """A folder names the program of its ciphertexts; one that does not is refused, too."""
    sent = tmp_path / "sent"
    sent.mkdir()
    with pytest.raises(FormatError, match="lacks program", check=lambda error: error.code == "message"):
        Identity.load(sent, "request", 3)
    mine = Identity(bytes(32), 5)
    mine.save(sent, "request", 3)
    assert Identity.load(sent, "request", 3)[0] == mine
    with pytest.raises(FormatError, match="holds no answer; name the folder that keywright run has written"):
        Identity.load(sent, "answer", 3)
    with pytest.raises(FormatError, match="ciphertexts of 2 samples, and 3 were written"):
        Identity.load(sent, "request", 2)
    mine.require(Identity(bytes(32), 7), "server", "client")
    for created, older in ((4, "server"), (6, "client"), (5, None), (0, None)):
        with pytest.raises(MismatchError, check=lambda error: error.code == "program") as caught:
            mine.require(Identity(bytes(31) + b"1", created), "server", "client")
        assert caught.value.older == older
    for text in ("", "[]", "{}", '{"program": "00", "created": 1}', '{"program": 3, "created": 1}'):
        (sent / "program.json").write_text(text)
        with pytest.raises(FormatError, check=lambda error: error.code == "message"):
            Identity.load(sent, "request", 3)
    # Whose text would be shown.
    stated = {"program": "00" * 32, "created": 1, "holds": "request", "samples": "\33[2J"}
    (sent / "program.json").unlink()
    seal(sent, "program.json", stated | {"format": FORMAT})
    with pytest.raises(FormatError, match=r"is not the identity of a program$"):
        Identity.load(sent, "request", 3)


def test_samples_share_ciphertexts(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`infer` uses the compiler's choice, and separate client and server use --batch."""
    model, images = str(folder / "digits.onnx"), str(folder / "images.npy")
    labels = np.load(folder / "labels.npy").tolist()
    assert main(["infer", model, "--input", images, "--json"]) == 0
    *rows, summary = lines(capsys)
    assert [row["prediction"] for row in rows] == labels
    assert summary["batch"] == 4
    assert main(["infer", model, "--input", images, "--count", "3", "--batch", "4"]) == 0
    assert "Time of a batch of up to 4 samples" in "".join(capsys.readouterr())
    keys, sent, answer = tmp_path / "keys", tmp_path / "sent", tmp_path / "answer"
    assert main(["keygen", model, "--out", str(keys), "--batch", "2"]) == 0
    assert main(["encrypt", str(keys / "client"), "--input", images, "--out", str(sent)]) == 0
    assert sorted(path.name for path in sent.glob("*.kw")) == ["000000+2-0.kw", "000002-0.kw"]
    assert main(["run", str(keys / "server"), "--input", str(sent), "--out", str(answer)]) == 0
    capsys.readouterr()
    decrypt = ["decrypt", str(keys / "client"), "--input", str(answer)]
    assert main([*decrypt, "--out", str(tmp_path / "scores.npy"), "--json"]) == 0
    assert [(row["sample"], row["prediction"]) for row in lines(capsys)] == list(enumerate(labels))
    assert np.load(tmp_path / "scores.npy").shape == (COUNT, 10)
    (answer / "000000+2-0.kw").rename(answer / "000000+3-0.kw")
    assert main(decrypt) == 2
    assert "holds 3 samples, but the program takes 1 to 2" in capsys.readouterr().err
    assert main(["keygen", model, "--out", str(tmp_path / "more"), "--batch", "3"]) == 2
    assert "power of two" in capsys.readouterr().err
    assert main(["keygen", model, "--out", str(tmp_path / "more"), "--batch", "65536"]) == 2
    assert "--batch 65536" in capsys.readouterr().err


@pytest.mark.parametrize("client", ["slots", "thin"])
def test_a_served_model_takes_a_batch(folder: Path, tmp_path: Path, client: str) -> None:
    arguments = ["compile", str(folder / "digits.onnx"), "--out", str(tmp_path / "served")]
    assert main([*arguments, "--batch", "4", "--client", client]) == 0
    manifest = Model.load(tmp_path / "served").manifest
    assert manifest.input.places.batch == manifest.output.places.batch == 4
    assert manifest.input.places.shape == (1, 8, 8)


@pytest.mark.parametrize(("client", "who"), [("slots", "clients without the program"), ("thin", "clients")])
def test_the_printed_range_is_what_clients_refuse(
    folder: Path, tmp_path: Path, client: str, who: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compile", str(folder / "digits.onnx"), "--out", str(tmp_path / "served")]
    assert main([*arguments, "--range", "-1", "1", "--client", client]) == 0
    assert f"inputs from -1 to 1; {who} refuse others" in "".join(capsys.readouterr())
    model, sample = Model.load(tmp_path / "served"), np.zeros((1, 1, 8, 8))
    sample[0, 0, 0, 0] = 1.01
    with pytest.raises(OutOfRangeError, match="from -1 to 1"):
        model.manifest.require_range(sample)
    if client == "slots":
        model.client().guard(sample)
    else:
        with pytest.raises(OutOfRangeError, match="from -1 to 1"):
            model.client().guard(sample)


def test_labels_are_different(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = [*"abcdefghi", "c"]
    arguments = ["compile", str(folder / "digits.onnx"), "--out", str(tmp_path / "served"), "--labels"]
    assert main([*arguments, ",".join(labels)]) != 0
    assert "the label 'c' is given to several outputs" in capsys.readouterr().err
    assert not (tmp_path / "served").exists()


def test_a_served_model_has_the_batch_for_its_samples(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`keywright compile` chooses as `keywright.compile` does."""
    arguments = ["compile", str(folder / "digits.onnx"), "--out", str(tmp_path / "served"), "--samples"]
    assert main([*arguments, "8"]) == 0
    served = Model.load(tmp_path / "served")
    assert served.entry is None
    assert served.program.batch == kw.compile(folder / "digits.onnx", samples=8).program.batch == 8
    capsys.readouterr()
    assert main([*arguments, "0"]) == 2
    assert "--samples 0 is too small" in capsys.readouterr().err


def test_what_batches_take(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", str(folder / "digits.onnx"), "--explain", "--json"]) == 0
    rows = [row for row in lines(capsys) if "batch" in row]
    assert [row["batch"] for row in rows][:3] == [1, 2, 4]
    # One sample's operations serve two, until each has less room than it would like.
    assert rows[1]["seconds"] * 2 == pytest.approx(rows[0]["seconds"])
    assert rows[1]["sent_bytes"] * 2 == pytest.approx(rows[0]["sent_bytes"])
    assert all(b["seconds"] < a["seconds"] for a, b in itertools.pairwise(rows[:-1]))


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "rotations.svg"
    assert main(["demo", "--samples", "2", "--picture", str(picture), "--json"]) == 0
    rows = lines(capsys)
    predictions = [row for row in rows if "digit" in row]
    assert len(predictions) == 2
    assert all(row["encrypted"] == row["clear"] for row in predictions)
    sets = {row["set"]: row for row in rows if "set" in row}
    planned, smallest, required, powers = sets.values()
    assert planned["held_bytes"] < required["held_bytes"] / 2
    # Bytes are paid for in time. A plan for bytes is smaller than powers of two and takes less time.
    assert powers["relative"] > smallest["relative"] > required["relative"] > 1 == planned["relative"]
    assert powers["sent_bytes"] > smallest["sent_bytes"]
    assert powers["held_bytes"] > smallest["held_bytes"]
    # The same keys are made, sent and tabled.
    (key_bytes,) = [row["bytes"] for row in rows if str(row.get("work", "")).startswith("client: make keys")]
    assert key_bytes == planned["sent_bytes"]
    pytest.importorskip("matplotlib")
    assert picture.read_text().startswith("<?xml")
    assert f"{planned['keys']} keys" in picture.read_text()
    capsys.readouterr()
    assert main(["demo", "--picture", str(tmp_path / "rotations.png")]) == 0
    text = capsys.readouterr().out
    assert "8 of 8 answers equal the" in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) <= 24
    # The words that readers of one screen need, and that `figures.toml` reads.
    table = "sent once  predicted answer time"
    for words in ("the last digit", "--threads", "keys, sent once", table):
        assert words in text
    assert re.search("Keywright's plan, fewest bytes +[0-9]+ +[0-9.]+ MB +[0-9.]+x", text)
    # The stored screen has today's words: anyone who changes them runs the command of the record again.
    records = Path(__file__).parents[3] / "benchmarks" / "record"
    stored = max(records.glob("*/demo.txt"))
    assert worded(stored.read_text("utf-8")) == worded(text)


def worded(screen: str) -> list[list[str]]:
    """The lines of the demo's tables without their figures."""
    lines = screen.splitlines()
    tables = lines[next(number for number, line in enumerate(lines) if line.startswith("work, with")) :]
    return [re.sub(r"[\d.]+ (?:[mu]?s|[kM]B)|[\d.]+x?|\s+", " ", line).split() for line in tables]


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
    program_keys = kw.compile((DATA / "digits.onnx").read_bytes(), batch=1).specs
    assert main(["info", str(keys / "server/keys.kw"), "--json"]) == 0
    assert len(lines(capsys)[0]["keys"]) == len(program_keys)


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
        ("takes (1, 8, 8), or several", ("infer", model, "--input", wrong)),
        ("not a numpy file", ("infer", model, "--input", text)),
        ("not a numpy file", ("infer", model, "--input", objects)),
        ("is an archive", ("infer", model, "--input", archive)),
        ("not finite", ("infer", model, "--input", nan)),
        ("absent.npy", ("infer", model, "--input", tmp_path / "absent.npy")),
        ("absent.onnx", ("infer", tmp_path / "absent.onnx", "--input", images)),
        ("cannot be compiled", ("infer", text, "--input", images)),
        ("levels", ("infer", model, "--input", images, "--preset", "N13_QP214_S38")),
        ("exists; remove it", ("keygen", model, "--out", keys)),
        ("keys.kw; name the server folder", ("run", client, "--input", empty, "--out", out)),
        ("holds no ciphertexts", ("run", keys / "server", "--input", empty, "--out", out)),
        ("client folder", ("decrypt", keys / "server", "--input", empty)),
        ("public.kw", ("encrypt", damaged, "--input", images, "--out", out)),
        ("text.npy is not a Keywright file", ("info", text)),
        ("is a folder without files", ("info", empty)),
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
    line = fails(capsys, "keygen", path, "--out", tmp_path / "keys")
    assert "Softmax" in line
    assert not (tmp_path / "keys").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_keygen_that_is_ended_leaves_no_secret(folder: Path, tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)
    out = tmp_path / "keys"
    arguments = ["keygen", folder / "digits.onnx", "--out", out, "--preset", "N16_QP1660_S50"]
    command = [sys.executable, "-m", "keywright.cli", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        # The key set is written last, under a temporary name.
        while not list(tmp_path.glob(".keys.*/server/.keys.kw*")):
            assert running.poll() is None, running.communicate()[1]
            time.sleep(0.01)
        running.send_signal(number)
        _, errors = running.communicate()
    assert not list(tmp_path.rglob("*secret*"))
    if number != signal.SIGINT:
        assert running.returncode == -number
        return
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
    assert main(["unknown"]) == 2


def test_options_that_every_command_has(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads, model = kw.threads(), folder / "digits.onnx"
    assert main(["info", str(model), "--threads", "1", "--log-level", "error"]) == 0
    assert capsys.readouterr().err == ""
    assert kw.threads() == threads
    assert "threads" in fails(capsys, "info", model, "--threads", 0)
    # A traceback is printed on request only.
    assert main(["info", "absent.kw", "--log-level", "debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_it_is_a_module_too(folder: Path) -> None:
    command = [sys.executable, "-m", "keywright", "info", str(folder / "absent.kw"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (error,) = json.loads(done.stderr).values()
    assert error["type"] == "FileNotFoundError"
    assert "absent.kw" in error["message"]


def test_json_says_why_a_model_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "digits.onnx")
    assert main(["info", model, "--preset", "N13_QP214_S38", "--json"]) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert error["type"] == "RefusalError"
    assert error["code"] == "depth"
    assert error["details"] == {"needed": 5, "available": 3}
    assert "--preset" in error["advice"]
    assert "preset=" not in error["advice"]


def test_info_of_a_model_is_what_compiling_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, typical = str(folder / "digits.onnx"), str(folder / "images.npy")
    assert main(["info", model, "--calibration", typical, "--batch", "2", "--json"]) == 0
    report, fit = (next(iter(line.values())) for line in lines(capsys))
    compiled = kw.compile(model, np.load(typical), batch=2)
    assert (report["batch"], report["depth"]) == (2, 5)
    assert report["keys"] == len(compiled.specs)
    assert report["key_bytes"] == compiled.report.sizes.key_bytes
    assert fit["samples"] == COUNT
    assert main(["info", model]) == 0
    shown = capsys.readouterr().out
    assert "sent once" in shown
    assert "2^14" in shown


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    rows = lines(capsys)
    assert [row["preset"] for row in rows] == [*kw.Parameters.presets(), *kw.BootstrapperPlan.presets()]
    # One plan of each degree: a plan takes as long as its row.
    bootstrapped = {row["log_n"]: row for row in rows if row["bootstraps"]}
    for row in (*bootstrapped.values(), *(row for row in rows if not row["bootstraps"])):
        if row["bootstraps"]:
            plan = kw.BootstrapperPlan.preset(row["preset"])
            assert (row["levels"], row["log_n"]) == (plan.levels_left, plan.parameters.log_n)
        else:
            assert row["levels"] == kw.Parameters.preset(row["preset"]).max_level
    # Usage does not list them.
    with pytest.raises(SystemExit):
        main(["keygen", "--help"])
    assert kw.Parameters.presets()[0] not in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_shells_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    words = "COMP_WORDS=(keywright infer --pre); COMP_CWORD=2; _shtab_keywright; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        ["bash", "-c", f"source {script}; {words}"], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["--preset"], done.stderr
    assert main(["completion", "zsh"]) == 0
    assert "#compdef keywright" in capsys.readouterr().out
