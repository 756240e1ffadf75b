"""Folders of a model, of parameters, plans and ciphertexts by others are trusted no more than a server."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import keywright as kw
import numpy as np
import pytest
from keywright.cli import main
from keywright.errors import SecurityError
from keywright.errors.service import LimitError
from keywright.model.exchange.identity import IDENTITY
from keywright.plan import KeyFrontier
from keywright.plan.keys import plan_file
from tests.serve.network import INPUTS, make_full


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder whose author has switched the check of keys off."""
    folder = tmp_path_factory.mktemp("folder")
    make_full().write(folder)
    return folder


def test_the_author_of_a_folder_is_no_more_trusted_than_a_server(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SecurityError, match="insecure=True"):
        kw.load_client(folder)
    client = kw.load_client(folder, insecure=True)
    specs = client.execution.key_specs
    size = sum(spec.bytes for spec in specs)
    client.save(tmp_path / "client")
    for place in (folder, tmp_path / "client"):
        for limits in ({"key_bytes": size - 1}, {"key_count": len(specs) - 1}):
            (most,) = limits.values()
            limited = kw.load_client(place, insecure=True, **limits)
            again = kw.load(place).client(insecure=True, **limits)
            for make in (limited.keys, partial(limited.save_keys, tmp_path), again.keys):
                with pytest.raises(
                    LimitError, match=str(most + 1), check=lambda error: error.code == "demand"
                ) as refused:
                    make()
                assert (refused.value.value, refused.value.maximum) == (most + 1, most)
    kw.load_client(folder, insecure=True, key_bytes=size, key_count=len(specs)).keys()
    for load in (kw.load_client, lambda place: kw.load(place).client()):
        with pytest.raises(SecurityError, match="less than 128 bits"):
            load(tmp_path / "client")


def test_commands_refuse_such_a_folder_without_their_option(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner, sample, sent = tmp_path / "owner", tmp_path / "x.npy", tmp_path / "sent"
    kw.load_client(folder, insecure=True).save(owner)
    np.save(sample, np.zeros(INPUTS))
    encrypt = ["encrypt", str(owner), "--input", str(sample), "--out", str(sent)]
    for command in (encrypt, ["decrypt", str(owner), "--input", str(sent)]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "128 bits" in said
        assert "--insecure" in said
        assert not sent.exists()
    assert main([*encrypt, "--insecure"]) == 0
    assert sent.is_dir()


def test_keygen_refuses_the_parameters_and_the_keys_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_full()
    plan, parameters, out = tmp_path / "plan.json", tmp_path / "parameters.kw", tmp_path / "out"
    plan.write_text(plan_file.to_json(KeyFrontier(model.program, model.parameters, name="x").execution.plan))
    model.parameters.save(parameters)
    command = ["keygen", "--plan", str(plan), "--parameters", str(parameters), "--out", str(out)]
    for options, what in (
        ([], "--insecure"),
        (["--insecure", "--key-count", "1"], "--key-count"),
        (["--insecure", "--key-bytes", "1KiB"], "--key-bytes"),
    ):
        assert main([*command, *options]) == 2
        assert what in capsys.readouterr().err
        assert not out.exists()
    assert main([*command, "--insecure"]) == 0


def renamed(file: Path, other: Path) -> None:
    aside = file.with_suffix(".x")
    file.rename(aside)
    other.rename(file)
    aside.rename(other)


FAULTS: dict[str, Callable[[Path, Path], object]] = {
    "exchanged": lambda file, other: file.write_bytes(other.read_bytes()),
    "of another request": lambda file, _: shutil.copy(f"{file.parent}-2/{file.name}", file),
    "cut off": lambda file, _: file.write_bytes(file.read_bytes()[:-2]),
    "named as the other": renamed,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_file_of_a_folder_of_ciphertexts_is_exchanged(
    fault: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever file it is, of a request or of an answer: any ciphertext of the keys decrypts."""
    keys, weak = tmp_path / "keys", "--insecure"
    assert main(["keygen", str(folder), "--out", str(keys), weak]) == 0

    def encrypt(out: str) -> int:
        return main(["encrypt", str(keys / "client"), "--input", str(tmp_path / "x.npy"), "--out", out, weak])

    def run(sent: str, out: str) -> int:
        return main(["run", str(keys / "server"), "--input", sent, "--out", out])

    def decrypt(answered: str, _: str) -> int:
        return main(["decrypt", str(keys / "client"), "--input", answered, weak])

    for number in ("", "-2"):
        np.save(tmp_path / "x.npy", np.random.default_rng(len(number)).uniform(-1, 1, (2, INPUTS)))
        assert encrypt(str(tmp_path / f"sent{number}")) == 0
        assert run(str(tmp_path / f"sent{number}"), str(tmp_path / f"answered{number}")) == 0
    assert decrypt(str(tmp_path / "answered"), "") == 0
    for name, reads in (("sent", run), ("answered", decrypt)):
        files = sorted(each.name for each in (tmp_path / name).iterdir())
        assert files == ["000000-0.kw", "000001-0.kw", IDENTITY]
        for file in files:
            place = tmp_path / fault / name
            for each in (name, f"{name}-2"):
                shutil.copytree(tmp_path / each, place.with_name(each))
            FAULTS[fault](place / file, place / files[file == files[0]])
            capsys.readouterr()
            assert reads(str(place), str(tmp_path / fault / "out")) == 2
            assert "damaged" in capsys.readouterr().err or file == IDENTITY
            shutil.rmtree(tmp_path / fault)
