"""Plans on the command line: made, described, made into keys, followed, refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import keywright as kw
import numpy as np
import pytest
from keywright.cli import main
from keywright.plan import (
    STRATEGIES,
    AutomorphismGroup,
    Chain,
    CostModel,
    Relinearizations,
    Workload,
    make_group,
)
from keywright.plan.keys import plan_file
from keywright.plan.keys.execution import PlanExecution
from keywright.plan.workload.network import convert_bootstrap
from tests.commands.printed import fails, lines
from tests.engine.bootstrapping.owner import small_parameters, small_plan


def test_a_plan_is_made_into_keys_and_followed(
    folder: Path, planned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, model = tmp_path / "keys", str(folder / "digits.onnx")
    assert main(["keygen", model, "--plan", str(planned), "--out", str(keys)]) == 0
    plan = plan_file.load(planned)
    parameters = kw.Parameters.load(keys / "server" / "parameters.kw")
    key_set = kw.EvaluationKeys.load(keys / "server" / "keys.kw", parameters)
    assert (len(key_set), sum(spec.bytes for spec in key_set)) == (len(plan.keys), plan.stored_bytes)
    sent, images = tmp_path / "sent", str(folder / "images.npy")
    assert main(["encrypt", str(keys / "client"), "--input", images, "--out", str(sent)]) == 0
    labels = np.load(folder / "labels.npy").tolist()
    run = ["run", str(keys / "server"), "--input", str(sent)]
    for name, memory in (("all", []), ("some", ["--key-memory", str(plan.stored_bytes * 3 // 4)])):
        answer = tmp_path / name
        capsys.readouterr()
        assert main([*run, *memory, "--out", str(answer), "--json"]) == 0
        streamed = lines(capsys)[1:]
        assert [row["peak_bytes"] <= plan.stored_bytes * 3 // 4 for row in streamed] == [True] * bool(memory)
        assert main(["decrypt", str(keys / "client"), "--input", str(answer), "--json"]) == 0
        assert [row["prediction"] for row in lines(capsys)] == labels
    # A key does not fit.
    assert main([*run, "--key-memory", "1KiB", "--out", str(tmp_path / "none")]) == 2
    assert "allow at least" in capsys.readouterr().err
    # Keys of another plan.
    other = tmp_path / "other"
    assert main(["keygen", model, "--out", str(other)]) == 0
    shutil.copyfile(other / "server" / "keys.kw", keys / "server" / "keys.kw")
    assert main([*run, "--out", str(tmp_path / "wrong")]) == 2
    assert "digest" in capsys.readouterr().err
    (other / "server" / "plan.json").unlink()
    assert main(["run", str(other / "server"), *run[2:], "--out", "no"]) == 2
    assert "plan.json" in capsys.readouterr().err


def test_a_plan_of_master_keys_is_made_and_followed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, planned, keys = str(folder / "digits.onnx"), tmp_path / "plan.json", tmp_path / "keys"
    shown = ["plan", model, "--time", "1.2x", "--hops", "1", "--strategy", "kds", "--derived"]
    assert main([*shown, "--out", str(planned), "--json"]) == 0
    (record,) = [row for row in lines(capsys) if "plan" in row]
    price = record["plan"]["derived"]
    assert main(["keygen", model, "--plan", str(planned), "--out", str(keys)]) == 0
    server = keys / "server"
    parameters = kw.Parameters.load(server / "parameters.kw")
    sent_keys = kw.EvaluationKeys.load(server / "keys.kw", parameters)
    masters = kw.keys.MasterKeys.load(server / "masters.kw", parameters)
    assert len(masters) == len(price["masters"])
    assert len(sent_keys) == price["direct_keys"]
    sent_bytes = sum(spec.bytes for spec in sent_keys) + masters.bytes
    assert sent_bytes == price["sent_bytes"]
    sent, image = tmp_path / "sent", tmp_path / "image.npy"
    np.save(image, np.load(folder / "images.npy")[:1])
    label = np.load(folder / "labels.npy")[0]
    encrypt = ["encrypt", str(keys / "client"), "--input", str(image), "--out", str(sent)]
    assert main(encrypt) == 0
    run = ["run", str(server), "--input", str(sent)]
    memory = masters.bytes + price["stored_bytes"] // 2
    for name, bound in (("all", []), ("some", ["--key-memory", str(memory)])):
        answer = tmp_path / name
        capsys.readouterr()
        assert main([*run, *bound, "--out", str(answer), "--json"]) == 0
        assert all(row["peak_bytes"] <= memory for row in lines(capsys)[1:])
        assert main(["decrypt", str(keys / "client"), "--input", str(answer), "--json"]) == 0
        assert [row["prediction"] for row in lines(capsys)] == [label]
    # Master keys of others, and none.
    secret = kw.SecretKey.load(keys / "client" / "secret.kw", parameters)
    kw.keys.MasterKeys.generate(secret, [3], [60], level=0).save(server / "masters.kw")
    assert main([*run, "--out", str(tmp_path / "wrong")]) == 2
    assert "master keys have digest" in capsys.readouterr().err
    (server / "masters.kw").unlink()
    assert main([*run, "--out", str(tmp_path / "none")]) == 2
    assert "masters.kw" in capsys.readouterr().err


def test_keys_of_a_plan_for_a_bootstrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Use a small bootstrapping instead of a preset."""
    bootstrap, other = small_plan(small_parameters()), small_plan(small_parameters(), arcsine_degree=5)
    named = {"small": bootstrap, "other": other}
    monkeypatch.setattr(
        kw, "BootstrapperPlan", SimpleNamespace(preset=named.__getitem__, presets=lambda: list(named))
    )
    path, keys = tmp_path / "plan.json", tmp_path / "keys"
    planned = STRATEGIES["power-of-two"].plan(convert_bootstrap(bootstrap, "small"), CostModel())
    path.write_text(plan_file.to_json(planned))
    assert main(["keygen", "--plan", str(path), "--out", str(keys), "--insecure"]) == 0
    client, server = keys / "client", keys / "server"
    assert {file.name for file in client.iterdir()} == {"parameters.kw", "public.kw", "secret.kw"}
    assert {file.name for file in server.iterdir()} == {"keys.kw", "parameters.kw", "plan.json"}
    parameters = kw.Parameters.load(server / "parameters.kw", insecure=True)
    execution = PlanExecution(plan_file.load(server / "plan.json"), parameters, bootstraps=[bootstrap])
    evaluator = kw.Evaluator(parameters, execution.load_keys(server / "keys.kw"))
    assert sum(spec.bytes for spec in execution.key_specs) == planned.stored_bytes
    values = np.random.default_rng(3).uniform(-1, 1, bootstrap.slots)
    encryptor = kw.Encryptor(kw.PublicKey.load(client / "public.kw", parameters))
    fresh = encryptor.encrypt(values, slots=bootstrap.slots, level=bootstrap.input_level)
    result = kw.Bootstrapper(execution.bootstrapper_plans[0]).bootstrap(evaluator, fresh)
    decryptor = kw.Decryptor(kw.SecretKey.load(client / "secret.kw", parameters))
    assert np.abs(decryptor.decrypt(result) - values).max() <= result.error_bound < 0.1
    # Commands for models explain what such keys are; a plan of something else is refused.
    assert "used from Python" in fails(capsys, "run", server, "--input", client, "--out", "no")
    out = ("--out", tmp_path / "refused")
    assert "this one is" in fails(capsys, "keygen", "--plan", path, "--preset", "other", *out)
    for wrong in (("--preset", "N13_QP214_S38"), ("--parameters", server / "parameters.kw")):
        assert "name its bootstrapping" in fails(capsys, "keygen", "--plan", path, *wrong, *out)
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
    keygen = ["keygen", "--plan", str(planned), "--parameters", str(stored), "--out", str(keys), "--insecure"]
    assert main(keygen) == 0
    execution = PlanExecution(plan_file.load(keys / "server" / "plan.json"), parameters)
    followed = execution.load_keys(keys / "server" / "keys.kw")
    assert sum(spec.bytes for spec in execution.key_specs) == execution.plan.stored_bytes
    assert len(followed) == len(execution.plan.keys)
    for part, arguments in (
        ("called 'sums'", ("keygen", "--plan", planned, *out)),
        ("neither a model nor a plan", ("keygen", *out)),
        ("need a model", ("keygen", "--plan", planned, "--calibration", path, *out)),
        (
            "exclude each other",
            ("keygen", "--plan", planned, "--preset", "N13_QP214_S38", "--parameters", stored, *out),
        ),
        ("parameters have", ("keygen", "--plan", planned, "--preset", "N13_QP214_S38", *out)),
        ("without a model", ("keygen", path, "--parameters", stored, *out)),
        ("parameters have", ("plan", path, "--preset", "N13_QP214_S38")),
        ("pass a Keywright object", ("plan", path, "--parameters", path)),
        ("does not apply to", ("plan", path, "--calibration", path)),
        ("does not apply to", ("plan", stored, "--parameters", stored)),
        ("neither a file nor", ("plan", tmp_path / "absent")),
        (
            "does not apply to",
            ("plan", kw.BootstrapperPlan.presets()[0], "--preset", kw.Parameters.presets()[0]),
        ),
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
    assert main(["plan", str(program), "--key-memory", "100MiB", "--hops", "1", "--json", *drawn]) == 0
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
    assert main(["plan", str(program), "--key-memory", "1KiB", "--hops", "1"]) == 2
    assert "The smallest has" in capsys.readouterr().err
    assert main(["plan", str(program), "--noise", "0.25", "--hops", "1", "--json"]) == 0
    (record,) = [row for row in lines(capsys) if "plan" in row]
    optimal = next(row for row in record["strategies"] if row["name"] == "optimal")
    assert optimal["noise_bits"] <= 0.25
    assert {row["name"] for row in record["strategies"] if row["offered"] == "no"} >= {"lowmem"}
    refused = tmp_path / "refused.json"
    loud = ["plan", str(program), "--noise", "0.25", "--strategy", "lowmem", "--hops", "1"]
    assert main([*loud, "--out", str(refused)]) == 2
    assert "the error budget of 0.25" in capsys.readouterr().err
    assert not refused.exists()
    assert main(["plan", str(program), "--noise", "0", "--hops", "1"]) == 2
    assert "bits of noise" in capsys.readouterr().err
    assert main(["plan", str(program), "--key-memory", "lots"]) == 2
    assert "not an amount of memory" in capsys.readouterr().err


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
    amount = "is not an amount of memory; write"
    for arguments, parts in (
        (("--key-memory", "0"), ("at most 0 B", "The smallest has", "largest key, for level 2", "more hops")),
        (("--key-memory", "100KB"), ("at most 100 kB", "By counting, no plan")),
        *(
            ((f"--key-memory={text}",), (repr(text), amount))
            for text in ("-1GiB", "nan", "inf", "", "8XB", "1e9")
        ),
        (("--time", "0.01x"), ("The fastest, with", "; allow more time")),
        *(
            ((f"--time={text}",), (repr(text), "is not a time"))
            for text in ("0x", "0s", "-1x", "", "2", "nanx")
        ),
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
        (("is neither a file nor", "N15_QP861_L3_S37"), ("plan", tmp_path / "absent")),
        (("absent.json: No such file",), ("plan", tmp_path / "absent.json")),
        (("deep: no key of level 2", "214 bits"), ("plan", deep)),
        (("plan.json: not a workload", "keywright-workload-1"), ("plan", planned)),
        (("not a plan", "keywright plan --out"), ("keygen", "--plan", path, *out)),
        (("broken.json: not a plan: not JSON",), ("keygen", "--plan", broken, *out)),
    ):
        line = fails(capsys, *command)
        assert all(part in line for part in parts), line
    for wrong in (
        ("--strategy", "x"),
        ("--hops", "0"),
        ("--key-memory", "1GB", "--time", "1x"),
        ("--noise", "x"),
    ):
        assert main(["plan", str(path), *wrong]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        file.name for file in (path, deep, planned, broken, machine)
    )


def test_a_plan_whose_keys_are_derived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = Chain(12, (40, 30, 30), (40,), 240)
    group = make_group(AutomorphismGroup(12), "one", 2, [1, 2, 3, 5, 8, 40])
    path = tmp_path / "program.json"
    path.write_text(Workload("six", chain, (group,), (Relinearizations(2, 1),)).to_json())
    # The special prime is no wider than the largest digit, so the noise of derivations is visible.
    shown = ["plan", str(path), "--strategy", "all-required", "--hops", "1"]
    assert main([*shown, "--derived", "--noise", "4"]) == 2
    assert "the error budget of 4.00" in capsys.readouterr().err
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
