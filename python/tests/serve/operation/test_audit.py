"""The audit log: every action is a line, and no line grants access or contains secrets."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import keywright as kw
import numpy as np
import pytest
from keywright.client import RemoteModel
from keywright.client import exchange as exchange_module
from keywright.errors.service import SecretRefusedError
from keywright.model import Model
from keywright.serve import Service
from keywright.serve.tenants.accounts import Accounts, add
from keywright.serve.tenants.audit import NAME, Audit, alias
from tests.serve.http.test_http import ask
from tests.serve.network import WORKERS, listening

Sample = np.ndarray[Any, np.dtype[np.float64]]
WINDOW = 12
"""Bytes that bytes of two files have in common by chance with a probability of 2^-96 for each pair."""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_action_is_a_line_and_no_line_holds_anything(
    thin: Model, tmp_path: Path, sample: Sample, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_module, "WAIT_S", 0)
    accounts = tmp_path / "accounts"
    key = add(accounts, "clinic-a")
    path = tmp_path / "state" / NAME
    service = Service(thin, tmp_path / "state", workers=WORKERS, accounts=Accounts.load(accounts))
    with listening(service) as server:
        bearer = {"Authorization": f"Bearer {key}", "X-Request-Id": "asked-by-a-test"}
        session = RemoteModel(server.url, key=key, insecure=True).session()
        session.infer(sample)
        identifier = str(session._identifier)
        (job,) = service.jobs.of(identifier)
        assert ask(server, "DELETE", f"/v1/jobs/{job.identifier}", None, bearer)[0] == 200
        digest = service.store.get(identifier, "clinic-a").digest
        session.close()
        # A set without a byte leaves no line, however often one is asked for.
        service.store.create(thin.manifest.hash, "clinic-a").used -= 3601
        expired = service.store.create(thin.manifest.hash, "clinic-a")
        service.begin_part(expired.identifier, 0, 1000, "clinic-a").close()
        expired.used -= 3601
        service.expire()
        piece = service.begin_part(
            service.create_keys({"model": thin.manifest.hash}, "clinic-a")["keys"],  # type: ignore[arg-type]
            0,
            1000,
            "clinic-a",
        )
        secret = kw.SecretKey.generate(thin.parameters).to_bytes()
        with pytest.raises(SecretRefusedError):
            piece.append(secret)
    service.close()

    written_lines = lines(path)
    assert [(line["action"], line.get("why")) for line in written_lines] == [
        ("begin", None),
        ("complete", None),
        ("use", None),
        ("cancel", None),
        ("delete", "client"),
        ("begin", None),
        ("delete", "expired"),
        ("begin", None),
        ("delete", "refused"),
    ]
    assert {line["tenant"] for line in written_lines} == {"clinic-a"}
    assert {line["key_set"] for line in written_lines[:5]} == {alias(identifier)}
    assert written_lines[1]["digest"] == digest
    assert (written_lines[2]["model"], written_lines[2]["job"]) == (thin.manifest.hash, alias(job.identifier))
    assert written_lines[3]["request"] == "asked-by-a-test"
    assert all(re.fullmatch(r"[0-9a-f]{16}", line["request"]) for line in written_lines[:3])
    assert all(line["time"].endswith("+00:00") for line in written_lines)

    text = path.read_bytes()
    # Nothing grants access.
    for entitling in (identifier, job.identifier, key, expired.identifier):
        assert entitling.encode() not in text
    # No part of keys, of a secret key, or of inputs, in binary or hexadecimal.
    for held in (key_file.read_bytes()[-4096:], secret, sample.tobytes()):
        for start in range(min(len(held), 4096) - WINDOW):
            window = held[start : start + WINDOW]
            if len(set(window)) > 4:
                assert window not in text
                assert window.hex().encode() not in text
    assert path.stat().st_mode & 0o077 == 0
    members = {"time", "action", "tenant", "key_set", "request", "model", "configuration", "bytes", "digest"}
    assert {name for line in written_lines for name in line} == members | {"job", "why"}


def test_lines_are_only_added_and_full_files_are_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = Audit(path, most=1000)
    for number in range(21):
        audit.note("use", "a", "k", bytes=number)
    files = sorted(tmp_path.iterdir())
    assert len(files) > 2
    assert all(file.stat().st_size <= 1000 for file in files)
    written_lines = [line for file in files if file != path for line in lines(file)] + lines(path)
    assert sorted(line["bytes"] for line in written_lines) == list(range(21))
    Audit(path, most=1000).note("use", "a", "k", bytes=21)
    assert lines(path)[-1]["bytes"] == 21
    assert len(lines(path)) > 1


def test_full_files_are_kept_within_a_number(tmp_path: Path) -> None:
    """The attack: 0.4 MB of lines a second, for ever."""
    path, mine = tmp_path / "audit.jsonl", tmp_path / "audit-of-another.jsonl"
    mine.write_text("kept")
    audit = Audit(path, most=1000, kept=3)
    for number in range(200):
        audit.note("use", "tenant", str(number))
    audit.close()
    full = [each for each in tmp_path.iterdir() if each not in (path, mine)]
    assert len(full) == 3
    assert mine.read_text() == "kept"
    # The newest are there.
    there = [line["key_set"] for each in (path, *full) for line in lines(each)]
    assert set(there) == {alias(str(number)) for number in range(200 - len(there), 200)}


def test_half_a_line_is_taken_back_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "audit.jsonl", os.write
    audit = Audit(path)
    audit.note("use", "a", "k")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
        with pytest.raises(OSError, match="full"):
            audit.note("use", "a", "lost")
    audit.note("use", "a", "k")
    assert [line["key_set"] for line in lines(path)] == [alias("k")] * 2


def test_names_of_tenants_cannot_break_lines(tmp_path: Path) -> None:
    Audit(tmp_path / "a").note("use", 'x\n{"action": "delete"}\x1b[2J\u2028', "k")
    (line,) = lines(tmp_path / "a")
    assert line["tenant"].startswith("x\n")
    assert (tmp_path / "a").read_bytes().count(b"\n") == 1
    assert b"\x1b" not in (tmp_path / "a").read_bytes()
