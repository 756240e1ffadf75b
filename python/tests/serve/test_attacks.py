"""The study of attacks has one for everything that clients of a service share."""

from __future__ import annotations

from studies.service import attacks
from tests.serve.holder_attacks import SHARED

MEASURED: dict[str, tuple[str, ...]] = {
    "uploads.buffers.MAX_CONNECTIONS": ("bodies", "unknown", "slow", "handshakes"),
    "http.connection_slots.REQUESTS_A_SECOND": ("malformed", "heads", "sets"),
    "http.connection_slots.BURST": ("malformed", "heads", "sets"),
    "http.connection_slots.READS": ("pieces", "records"),
    "http.connection_slots.BODY_BYTES": ("deletions",),
    "http.connection_slots.OPENING": ("sets",),
    "http.connection_slots.MAX_WAITING": ("waiting",),
    "http.connection_slots.THREADS": ("parts", "openings"),
    "http.connection_slots.CHECKING": ("checks",),
    "http.connection_slots.ASKING": ("issuer",),
    "service.OPENINGS_A_SECOND": ("sets",),
    "service.OPENINGS": ("sets",),
    "service.ServiceLimits.capacity": ("openings", "checks"),
    "uploads.uploaded.STALLED_S": ("openings", "parts"),
    "uploads.eviction.MAX_EMPTY": ("sets",),
    "uploads.buffers.BUFFER_BYTES": ("messages", "results", "answers"),
    "uploads.buffers.LEAST_BODIES": ("messages",),
    "jobs.queue.WAITING": ("jobs", "waiting"),
    "jobs.queue.MAX_ENDED": ("jobs",),
    "workers.Workers.count": ("evaluations",),
    "workers.Workers.count at a time": ("heavy",),
    "workers.Workers.count of one": ("evaluations",),
}
"""The attacks of the study on each bound."""

UNMEASURED = {
    "tenants.quotas.Quota.bytes": "a refusal of what is above it, and no delay",
    "tenants.quotas.Quota.bytes of evaluations": "a refusal of what is above it, and no delay",
    "tenants.quotas.Quota.seconds": "a refusal of what is above it, and no delay",
    "workers.Workers.key_memory": "the study's keys fit; `studies.service.resident` and `load` measure it",
}
"""Bounds without an attack there, and why."""


def test_the_study_attacks_every_shared_bound() -> None:
    assert MEASURED.keys() | UNMEASURED.keys() == SHARED.keys()
    assert not MEASURED.keys() & UNMEASURED.keys()
    assert {name for names in MEASURED.values() for name in names} == attacks.ATTACKS.keys()
