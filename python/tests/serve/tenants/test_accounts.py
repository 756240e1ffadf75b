"""Tenants with API keys: authentication, and isolation of tenants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.errors.service import ConfigurationError, UnauthorizedError
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from keywright.serve import Server, Service
from keywright.serve.tenants.accounts import Accounts, add
from tests.serve.http.test_http import ask
from tests.serve.http.test_openapi import operations
from tests.serve.network import WORKERS, listening

Sample = np.ndarray[Any, np.dtype[np.float64]]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_key_belongs_to_a_tenant_and_the_file_has_only_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    command = [sys.executable, "-m", "keywright.serve.tenants.new_key", str(path)]
    run = subprocess.run([*command, "a"], capture_output=True, text=True, check=True)
    first = run.stdout.strip()
    assert run.stderr == ""
    refused = subprocess.run([*command, "a b"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "not a tenant name" in refused.stderr
    keys = {first: "a", add(path, "b"): "b", add(path, "a"): "a"}
    accounts = Accounts.load(path)
    for key, name in keys.items():
        assert accounts.tenant(f"Bearer {key}") == accounts.tenant(f"bearer  {key} ") == name
        assert len(key) > 40
        assert key not in path.read_text()
    digest = json.loads(path.read_text())["tenants"]["b"][0]
    for wrong in (
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {first}",
        f"Bearer {first}x",
        first,
        f"Bearer {digest}",
    ):
        with pytest.raises(UnauthorizedError):
            accounts.tenant(wrong)


def test_malformed_accounts_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    head = '{"format": "keywright-accounts-1", "tenants": '
    digest = "0" * 64
    for text in (
        "",
        "[]",
        "[" * 100_000,
        '{"format": "other", "tenants": {}}',
        head + "[]}",
        head + '{"a": 3}}',
        head + '{"a": [3]}}',
        head + '{"a": ["x"]}}',
        head + '{"a b": []}}',
        head + f'{{"a": ["{digest}"], "b": ["{digest}"]}}}}',
    ):
        path.write_text(text)
        with pytest.raises(ConfigurationError, check=lambda error: error.code == "accounts_file"):
            Accounts.load(path)
    path.unlink()
    with pytest.raises(ConfigurationError, check=lambda error: error.code == "accounts_file"):
        Accounts.load(path)
    with pytest.raises(ConfigurationError, check=lambda error: error.code == "accounts_file"):
        add(path, "../a")


def test_tenants_are_separate(thin: Model, tmp_path: Path, sample: Sample) -> None:
    """Data of another tenant is reported exactly like unknown data."""
    path = tmp_path / "accounts.json"
    own, others = add(path, "own"), add(path, "other")

    def attack(server: Server, keys: str, job: str) -> None:
        for method, name in operations():
            if "{keys}" not in name and "{job}" not in name:
                continue
            body = None if method == "GET" or name.endswith(("/delete", "/direct")) else b"x"
            body = None if method == "DELETE" else body
            real = name.replace("{keys}", keys).replace("{job}", job) + "?offset=0&length=1"
            never = name.replace("{keys}", "0" * 32).replace("{job}", "0" * 32) + "?offset=0&length=1"
            opening = ask(server, method, real, body, bearer(others))
            assert opening[:2] == ask(server, method, never, body, bearer(others))[:2]
            assert opening[0] == 404, (method, name, opening)
            for headers in ({}, bearer("x")):
                assert ask(server, method, real, body, headers)[0] == 401, (method, name)

    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=Accounts.load(path))
    with listening(service) as server:
        for public in ("/health", "/ready", "/v1/model", "/v1/models", "/"):
            assert ask(server, "GET", public)[0] == 200
        request = json.dumps({"model": thin.manifest.hash}).encode()
        assert ask(server, "POST", "/v1/keys", request)[1]["error"]["type"] == "unauthorized"
        assert ask(server, "GET", "/v1/keys")[0] == 401
        # A tenant could subtract its own bytes from the total.
        assert ask(server, "GET", "/metrics")[0] == 401
        assert ask(server, "GET", "/metrics", None, bearer(others))[0] == 403
        session = RemoteModel(server.url, key=own, insecure=True).session()
        expected = run_clear(thin.program, sample)
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
        keys = str(session._identifier)
        message = framing.join(session._encrypt(sample[None]))
        job = str(session.remote.send("POST", f"/v1/keys/{keys}/jobs", message)["job"])
        attack(server, keys, job)
        assert ask(server, "GET", "/v1/keys", headers=bearer(others))[1] == {"keys": []}
        listed = ask(server, "GET", "/v1/keys", headers=bearer(own))[1]["keys"]
        assert [(entry["keys"], entry["ready"]) for entry in listed] == [(keys, True)]
        with RemoteModel(server.url, insecure=True).session() as stranger, pytest.raises(UnauthorizedError):
            stranger.infer(sample)
    service.close()
    # Ownership outlives the process.
    after = Service(thin, tmp_path / "state", workers=WORKERS, accounts=Accounts.load(path))
    with listening(after) as server:
        attack(server, keys, job)
        session.remote = RemoteModel(server.url, key=own, insecure=True)
        answer = session._decrypt(session._evaluated(keys, message, lambda done, total: None), 1)
        assert np.abs(answer[0] - expected).max() < 1e-3
        session.close()
    after.close()
    assert os.listdir(tmp_path / "state" / "keys") == []  # noqa: PTH208


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal there")
def test_accounts_are_read_again_at_a_signal(thin: Model, tmp_path: Path) -> None:
    """A removed key is invalid then; a malformed file, or one that cannot be read, changes nothing."""
    path, folder = tmp_path / "own" / "accounts.json", tmp_path / "model"
    folder.mkdir()
    path.parent.mkdir()
    thin.write(folder)
    old = add(path, "a")
    arguments = [
        "serve",
        str(folder),
        "--port",
        "0",
        "--json",
        "--log-format",
        "json",
        "--accounts",
        str(path),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "keywright", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["url"]
        remote = RemoteModel(url, key=old, insecure=True)
        assert remote.ask("GET", "/v1/keys") == {"keys": []}

        def signalled(what: str) -> None:
            assert process.stderr is not None
            process.send_signal(signal.SIGHUP)
            while what not in process.stderr.readline():
                assert process.poll() is None

        path.rename(tmp_path / "before")
        path.write_text("{}")
        signalled("stay as they were")
        assert remote.ask("GET", "/v1/keys") == {"keys": []}
        path.parent.rename(tmp_path / "away")
        path.parent.touch()
        signalled("stay as they were")
        assert remote.ask("GET", "/v1/keys") == {"keys": []}
        path.parent.unlink()
        path.parent.mkdir()
        new = add(path, "a")
        signalled("reloaded")
        with pytest.raises(UnauthorizedError):
            remote.ask("GET", "/v1/keys")
        assert RemoteModel(url, key=new, insecure=True).ask("GET", "/v1/keys") == {"keys": []}
        process.terminate()
        process.stderr.read()
        assert process.wait() == 0


@pytest.mark.skipif(os.name != "posix", reason="files have no such modes")
def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "accounts.json"
    for name in ("a", "b"):
        add(path, name)
        assert path.stat().st_mode & 0o777 == 0o600
