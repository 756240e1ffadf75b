"""`keywright serve --ray`: what it refuses before anything starts, and replicas on this machine."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.commands.helpers.errors import CommandError
from keywright.commands.models import serve
from keywright.commands.terminal import Terminal
from keywright.model import Model
from keywright.model.served import framing
from keywright.runtime import run_clear
from tests.serve.cluster.conftest import LATE, STARTS


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--ray", "local", "--state", "s", "--replicas", "3:2"], "3:2 is malformed"),
        (["--ray", "local", "--state", "s", "--replicas", "0"], "0 is malformed"),
        (["--ray", "local", "--state", "s", "--replicas", "2:many"], "2:many is malformed"),
        (["--ray", "local", "--state", "s", "--replicas", ""], "LEAST"),
        (["--ray", "local", "--state", "s", "--replica-cpus", "0"], "--replica-cpus 0"),
        (["--ray", "local"], "needs --state"),
    ],
)
def test_impossible_replicas_are_refused(arguments: list[str], match: str) -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(CommandError, match=match):
        serve.run(parser.parse_args(["model", *arguments]), Terminal())


@contextmanager
def serving(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command, again if Ray took too long, at most `STARTS` times: its process and its address."""
    text = ""
    for _ in range(STARTS):
        with (
            TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            assert process.stdout is not None
            if line := process.stdout.readline():
                yield process, json.loads(line)["url"]
                return
            process.wait()
            errors.seek(0)
            text = errors.read()
            assert LATE in text, text
    pytest.fail(f"Ray took too long {STARTS} times: {text}")


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'keywright[cluster]'")
def test_replicas_of_the_command_answer_and_do_what_a_killed_service_had_accepted(
    full: Model, sample: np.ndarray[Any, np.dtype[np.float64]], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    full.write(folder)
    command = [sys.executable, "-m", "keywright", "serve", str(folder), "--state", str(tmp_path / "state")]
    command += ["--port", "0", "--json", "--ray", "local", "--replicas", "2"]
    expected = run_clear(full.program, sample)
    with serving(command) as (process, url):
        session = RemoteModel(url, insecure=True).session()
        assert np.abs(session.infer(sample) - expected).max() < 1e-3
        message = framing.join(session._encrypt(sample[None]))
        jobs = [
            session.remote.send("POST", f"/v1/keys/{session._identifier}/jobs", message)["job"]
            for _ in range(3)
        ]
        process.kill()
        process.wait()
    with serving(command) as (process, url):
        session.remote = RemoteModel(url, insecure=True)
        for job in jobs:
            while session.remote.ask("GET", f"/v1/jobs/{job}?wait=30")["state"] in ("waiting", "running"):
                pass
            answer = session.remote.request("GET", f"/v1/jobs/{job}/result")
            assert np.abs(session._decrypt(answer, 1)[0] - expected).max() < 1e-3
        session.close()
        process.terminate()
        assert process.wait() == 0
