"""Everything that the clients of a service share is counted by holder.

Every bound of the service is in `SHARED`, with an attack by one holder with many key sets, or in `SINGLE`,
with what it bounds. A bound that is in neither fails a test.
"""

from __future__ import annotations

import ast
from pathlib import Path

import keywright.serve
import pytest
from keywright.model import Model
from tests.serve.holder_attacks import SHARED, Attack, Attacked

ROOT = Path(keywright.serve.__file__).parent


@pytest.mark.parametrize("attack", dict.fromkeys(SHARED.values()), ids=lambda each: each.__name__[1:])
def test_one_holder_with_many_key_sets_stops_no_other(
    thin: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    attack(Attacked(thin, tmp_path, monkeypatch))


SINGLE: dict[str, str] = {
    "uploads.eviction.UPLOAD_BYTES_A_SECOND": "the turn of one key set",
    "cluster.index_actor.RETRIES": "questions to a shard of the operator's own",
    "cluster.deployment.QUEUE": "messages on the way to one replica, whose jobs come from the queue",
    "evaluation.dispatch.ATTEMPTS": "starts of one evaluation",
    "evaluation.durations.KEPT": "times that are remembered for all",
    "evaluation.evaluations.HELD_BYTES": "one message",
    "uploads.uploaded.LISTED": "objects of one key set",
    "exchanged.SAMPLE_BYTES": "one object",
    "jobs.queue.EACH": "evaluations of one key set",
    "jobs.job.MAX_PRIORITY": "one evaluation",
    "http.admin.HASH_DIGITS": "a page of the operator",
    "http.app.MAX_PART": "one part",
    "http.app.QUICK_BYTES": "one message",
    "http.connection_slots.REFUSED_AT_ONCE": "connections above the pace of their address",
    "http.connections.HELD_BYTES": "one read",
    "http.connections.MAX_HEAD": "one request",
    "http.connections.MAX_LINES": "one request",
    "http.connections.MAX_LISTS": "one request",
    "http.connections.MAX_REQUEST_LINE": "one request",
    "http.connections.REFUSED_BYTES": "one connection",
    "http.connections.SLOWEST": "one connection",
    "http.connections.TLS_HEAD": "one record",
    "http.connections.READ_BYTES": "one connection",
    "http.connections.TLS_CONTENT": "one record",
    "http.pages.MAX_PAGE_BYTES": "files of the operator",
    "http.request_checks.LINGER_BYTES": "one connection",
    "http.request_checks.MAX_NAMES": "one request",
    "http.request_checks.PIECE_BYTES": "one answer",
    "http.request_checks.SENT_BYTES": "one answer",
    "http.server.UNSENT_BYTES": "one connection",
    "http.server.BACKLOG": "connections of the system, until the pace of their address is known",
    "served.index.EXPANDED_AT_ONCE": "one query, whose keys' memory is planned",
    "served.index.HEADER_BYTES": "one query",
    "storage.external.copies.FETCHES": "objects of one key set",
    "storage.external.postgresql.LOCK": "no bound: a name",
    "storage.external.s3.COPIES_BYTES": "copies of objects, which are fetched again",
    "storage.external.s3.PART_BYTES": "one object",
    "tenants.audit.MAX_BYTES": "lines of evaluations and key sets, whose rate is bounded",
    "tenants.audit.MAX_FILES": "lines of evaluations and key sets, whose rate is bounded",
    "tenants.holders.MANY": "holders that are remembered until their burst is whole again",
    "tenants.holders.NETWORK_BITS": "one holder",
    "tenants.oidc.MAX_KEYS": "keys of an issuer",
    "tenants.oidc.MAX_TOKEN": "one token",
    "tenants.oidc.MIN_RSA_BITS": "keys of an issuer",
    "uploads.buffers.CONNECTION_BYTES": "one connection",
    "uploads.buffers.CONNECTIONS_SHARE": "a part of the memory",
    "uploads.buffers.MIN_CONNECTIONS": "connections of a small server, which are shared as others",
    "uploads.direct.PART_BYTES": "one part",
    "uploads.secret_scanner.CHUNK_BYTES": "one key set",
    "uploads.upload_store.SMALL": "one object",
    "uploads.uploaded.DIGITS": "one name",
    "uploads.uploaded.LEAST_PART": "one key set",
    "uploads.uploaded.MAX_RUNS": "one key set",
    "uploads.uploaded.MOVED_BYTES": "one key set",
    "workers.worker.PRIORITY": "every evaluation alike",
    "workers.worker.GROUP_TRIES": "the start of one worker",
    "workers.resident_keys.DESCRIPTORS": "descriptors of all bounded connections and workers",
    "workers.resident_keys.WINDOWS_DESCRIPTORS": "descriptors of all bounded connections and workers",
}
"""Bounds of one request, one key set or one holder, and constants that clients cannot use up."""


def bounds() -> set[str]:
    """The whole numbers that modules of the service name, except times in seconds."""
    names = set[str]()
    for file in ROOT.rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for statement in ast.parse(file.read_text()).body:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                pairs = zip(_each(target), _each(statement.value), strict=False)
                names |= {
                    f"{module}.{name.id}"
                    for name, value in pairs
                    if isinstance(name, ast.Name) and _whole(value)
                }
    return {name for name in names if not name.endswith(("_S", "SECONDS"))}


def _each(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _whole(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _whole(node.left) and _whole(node.right)
    return isinstance(node, ast.Constant) and type(node.value) is int


def test_every_bound_is_counted_by_holder_or_of_one() -> None:
    unknown = bounds() - SHARED.keys() - SINGLE.keys()
    assert not unknown, "these need an attack in SHARED, or what they bound in SINGLE"
    assert SINGLE.keys() <= bounds()
