"""The client in C, over sockets: it makes lost keys again by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.model import Model
from keywright.plan import KeyFrontier
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from tests.serve import network
from tests.serve.network import WORKERS, listening, make_thin

ROOT = Path(__file__).parents[4]
CAPI = ROOT / "crates" / "capi"
LIBRARY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "deps" / "libkeywright_capi.a"
LIBRARIES = ("libcurl", "libcjson")

Sample = np.ndarray[Any, np.dtype[np.float64]]


def flags() -> list[str] | None:
    """How libcurl and cJSON are linked; None where one is missing."""
    if (tool := shutil.which("pkg-config")) is None:
        return None
    process = subprocess.run(
        [tool, "--cflags", "--libs", *LIBRARIES], capture_output=True, text=True, check=False
    )
    return process.stdout.split() if process.returncode == 0 else None


def build_ask(path: Path) -> Path:
    """Compile crates/capi/examples/ask.c."""
    if not LIBRARY.is_file():
        pytest.skip("cargo test makes the library of the C client")
    linked = flags()
    if linked is None:
        pytest.skip("the client in C needs Debian's libcurl4-openssl-dev, libcjson-dev and pkg-config")
    command = [os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]
    command += ["-I", str(CAPI / "include"), str(CAPI / "examples" / "ask.c"), str(LIBRARY)]
    subprocess.run([*command, *linked, "-lpthread", "-ldl", "-lm", "-o", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_ask(tmp_path_factory.mktemp("c") / "ask")


class Owner:
    """A person with a folder of their own."""

    def __init__(self, program: Path, folder: Path, sample: Sample) -> None:
        self._program, self.folder = program, folder
        self.sample = folder.with_suffix(".txt")
        self.sample.write_text(" ".join(map(repr, sample.tolist())))

    def ask(self, server: Server) -> subprocess.CompletedProcess[str]:
        """Return the program's output."""
        command = [str(self._program), "--insecure", server.url, str(self.folder), str(self.sample)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def scores(self, server: Server) -> Sample:
        """Return the scores of the sample."""
        done = self.ask(server)
        assert done.returncode == 0, done.stderr
        lines = [line.split(" ") for line in done.stdout.splitlines()]
        assert [line[1] for line in lines] == ["a", "b", "c", "d"]
        return np.array([float(line[0]) for line in lines])

    def file(self, name: str) -> bytes:
        """Return the contents of a stored file."""
        return (self.folder / name).read_bytes()

    @property
    def keys(self) -> str:
        """The identifier of the keys."""
        return self.file("session").decode().splitlines()[2].rstrip(".")


@pytest.fixture
def owner(program: Path, tmp_path: Path, sample: Sample) -> Owner:
    return Owner(program, tmp_path / "owner", sample)


def close(scores: Sample, model: Model, sample: Sample) -> bool:
    return bool(np.abs(scores - run_clear(model.program, sample)).max() < 1e-3)


def test_keys_that_were_deleted_or_expired_are_sent_again(
    owner: Owner, service: Service, server: Server, thin: Model, sample: Sample
) -> None:
    assert close(owner.scores(server), thin, sample)
    first, secret = owner.keys, owner.file("secret")
    assert (owner.folder / "secret").stat().st_mode & 0o077 == 0
    assert close(owner.scores(server), thin, sample)
    assert owner.keys == first
    service.delete_keys(first)
    assert close(owner.scores(server), thin, sample)
    second = owner.keys
    assert second != first
    service.store.get(second).used -= 2 * service.store.admission.expiry
    service.expire()
    done = owner.ask(server)
    assert done.returncode == 0
    assert "upload them again" in done.stderr
    assert owner.keys not in (first, second)
    assert owner.file("secret") == secret


def test_clients_switch_to_the_next_version_of_a_model(
    owner: Owner, tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the keys if they match, or makes other keys of the secret, or a new secret."""
    old, same = make_thin(), make_thin(seed=4)
    assert same.entry is not None
    entered, plans = same.program.entered(0), [same.entry.plan]
    execution = KeyFrontier(entered, same.parameters, plans, name="small", max_hops=1).execution
    other = replace(same, key_plan=execution.plan, labels=("a", "b", "c", "d"))
    assert other.manifest.keys.head != same.manifest.keys.head
    monkeypatch.setattr(network, "Q_BITS", [*network.Q_BITS[:-1], 49])
    foreign = make_thin(seed=5)
    labels, state, port = [], tmp_path / "state", 0
    state.mkdir()
    for model in (old, same, other, foreign):
        service = Service(model, state, workers=WORKERS)
        with listening(service, port) as server:
            port = server.server_address[1]
            assert close(owner.scores(server), model, sample)
            labels.append((owner.keys, owner.file("secret")))
        service.close()
    assert labels[0] == labels[1]
    assert labels[1][0] != labels[2][0]
    assert labels[1][1] == labels[2][1]
    assert labels[2][1] != labels[3][1]


def test_unsuitable_samples_are_refused_before_keys_exist(
    owner: Owner, service: Service, server: Server
) -> None:
    for text, why in (
        ("1 2 3", "fewer numbers"),
        ("0 " * 17, "more numbers"),
        ("0 " * 15 + "1e9", "takes -1 to 1"),
    ):
        owner.sample.write_text(text)
        done = owner.ask(server)
        assert done.returncode == 1
        assert why in done.stderr
        assert not owner.folder.joinpath("secret").exists()
