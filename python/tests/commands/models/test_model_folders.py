"""The steps of the command line from a folder of keywright compile, for clients of slots and thin ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from keywright.cli import main
from keywright.model import Model
from keywright.runtime import run_clear
from tests.commands.printed import fails
from tests.serve.network import INPUTS, make_full, make_thin

KINDS: dict[str, Callable[[], Model]] = {"slots": make_full, "thin": make_thin}


def command(*arguments: object) -> None:
    """Run a command that succeeds."""
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    """A model, saved in a folder called as its clients are."""
    model = KINDS[request.param]()
    model.save(tmp_path / "model")
    return model


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A file of two samples."""
    path = tmp_path / "samples.npy"
    np.save(path, np.random.default_rng(5).uniform(-1, 1, (2, INPUTS)))
    return path


def test_a_folder_has_a_client_and_a_server_by_keygen(model: Model, samples: Path, tmp_path: Path) -> None:
    keys, sent, answered = tmp_path / "keys", tmp_path / "sent", tmp_path / "answered"
    command("keygen", tmp_path / "model", "--out", keys, "--insecure")
    command("encrypt", keys / "client", "--input", samples, "--out", sent, "--insecure")
    command("run", keys / "server", "--input", sent, "--out", answered)
    result = tmp_path / "result.npy"
    command("decrypt", keys / "client", "--input", answered, "--out", result, "--insecure")
    assert np.abs(np.load(result) - run_clear(model.program, np.load(samples))).max() < 1e-3


@pytest.mark.usefixtures("model")
def test_a_folder_without_keys_is_refused_with_the_command_that_makes_them(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, out = tmp_path / "model", tmp_path / "out"
    for arguments in (
        ("encrypt", place, "--input", samples, "--out", out, "--insecure"),
        ("run", place, "--input", samples, "--out", out),
        ("decrypt", place, "--input", samples, "--insecure"),
    ):
        text = fails(capsys, *arguments)
        assert "is a compiled model without keys" in text
        assert f"keywright keygen {place} --out KEYS" in text
        assert not out.exists()


def test_keys_of_another_model_are_refused_with_a_way_out(
    model: Model, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The advice is to do what `test_a_folder_has_a_client_and_a_server_by_keygen` does."""
    keys, sent, other = tmp_path / "keys", tmp_path / "sent", tmp_path / "other"
    command("keygen", tmp_path / "model", "--out", keys, "--insecure")
    command("encrypt", keys / "client", "--input", samples, "--out", sent, "--insecure")
    (make_full if model.entry is None else make_thin)(batch=4).save(other)
    command("keygen", other, "--out", tmp_path / "others", "--insecure")
    (tmp_path / "others" / "server" / "keys.kw").replace(keys / "server" / "keys.kw")
    text = fails(capsys, "run", keys / "server", "--input", sent, "--out", tmp_path / "out")
    assert "make them for this model, with keywright keygen and its folder" in text
    assert "--plan" not in text


def test_options_that_compile_are_refused_for_a_folder(
    model: Model, tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert model.name
    keygen = ("keygen", tmp_path / "model", "--out", tmp_path / "keys")
    for option in (
        ("--calibration", samples), ("--calibration-count", 1), ("--activation", "relu=minimax:9"),
        ("--accuracy", "0.9"), ("--range", -1, 1), ("--error", 0.1), ("--batch", 2),
        ("--preset", "N14_QP426_S33"),
    ):  # fmt: skip
        text = fails(capsys, *keygen, *option)
        assert option[0] in text
        assert "name the ONNX model" in text


def test_inputs_out_of_range_are_refused_in_words_of_the_command_line(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model has no polynomials, so none could be finer; options are those of keywright compile."""
    keys, large = tmp_path / "keys", tmp_path / "large.npy"
    np.save(large, np.full((1, INPUTS), 1e9))
    command("keygen", tmp_path / "model", "--out", keys, "--insecure")
    text = fails(
        capsys, "encrypt", keys / "client", "--input", large, "--out", tmp_path / "sent", "--insecure"
    )
    assert "--calibration" in text
    assert "finer" not in text
    assert "=" not in text.replace("keywright.compile", "")
    assert not model.program.operands.polynomials
