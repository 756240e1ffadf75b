"""Admission of key sets and messages: places and bytes are reserved before the first byte arrives.

Key sets and evaluations count each other, so both are admitted under one lock (`Admission.lock`). This module
only decides; `eviction` chooses the key sets that give way, and the store deletes them.
"""

import threading
import time
from collections.abc import Sequence

from keywright.errors.service import BusyError, LimitError
from keywright.serve.jobs.queue import Jobs
from keywright.serve.tenants.audit import Audit
from keywright.serve.tenants.quotas import Usage

from .eviction import Rotation, size_of, unit_size, victim_for
from .uploaded import UploadedKeys

TURN = 0.25
"""Share of the expiry that a set keeps its place for if many addresses ask for places."""


class Admission:
    """Decides which key sets and messages a service takes.

    Args:
        capacity: maximum number of sets with bytes per tenant.
        expiry: seconds after which an unused set is deleted.
        usage: quotas of bytes; unlimited by default.
        jobs: the evaluations, whose bytes count, too; none by default.
        audit: records the begin and the end of sets; None for no record.

    Attributes:
        lock: held from a decision until what was admitted counts, and never while a disk is waited for: the
            event loop takes it, too.
    """

    def __init__(
        self,
        *,
        capacity: int = 16,
        expiry: float = 3600.0,
        usage: Usage | None = None,
        jobs: Jobs | None = None,
        audit: Audit | None = None,
    ) -> None:
        self.capacity, self.expiry, self.lock = capacity, expiry, threading.RLock()
        self._usage, self._jobs, self._audit = usage, jobs, audit
        self._rotation = Rotation(capacity, TURN * expiry)

    def require_bytes(self, sets: Sequence[UploadedKeys], tenant: str, more: int, holder: str = "") -> None:
        """Check that a tenant may store more bytes.

        Args:
            sets: the tenant's key sets.
            tenant: the tenant.
            more: bytes to add.
            holder: without accounts, the holder of a message: its evaluations take no more than they leave.

        Raises:
            LimitError: it may not.
        """
        if self._usage is None or not self._usage.limits_bytes(tenant):
            return
        placed = [s for s in sets if s.placed]
        soon = min((s.used + self.expiry - time.monotonic() for s in placed), default=None)
        # A set counts in full from its first byte on.
        stored, own = sum(map(size_of, placed)), 0
        if self._jobs is not None:
            stored += self._jobs.stored(tenant)
            own = self._jobs.stored(tenant, holder) if holder else 0
        self._usage.require_bytes(tenant, stored, more, soon, own)

    def with_bytes(self, uploaded: UploadedKeys, sets: Sequence[UploadedKeys]) -> list[UploadedKeys]:
        """Return the sets that give way to the bytes of another one. If it is refused, none of them does.

        Args:
            uploaded: the set whose first byte is about to arrive.
            sets: the key sets of its tenant.

        Raises:
            BusyError: the maximum number of sets have a place, and no other holder has more of them than this
                one would, see `Rotation`.
            LimitError: the tenant may not store so many bytes, and no other holder has more of them.
        """
        others, victims = [s for s in sets if s.placed and s is not uploaded], list[UploadedKeys]()
        full = len(others) >= self.capacity
        victim = victim_for(uploaded, others, unit_size, self._rotation) if full else None
        if victim is not None:
            victims.append(victim)
            others.remove(victim)
        elif full or self._rotation.is_reserved(uploaded, others, self.capacity - len(others)):
            raise BusyError(
                f"{self.capacity} key sets are in use, or wait for a place; ask again later",
                retry_after=self._rotation.delay(uploaded),
            )
        while True:
            try:
                self.require_bytes(others, uploaded.tenant, size_of(uploaded))
                break
            except LimitError:
                victim = victim_for(uploaded, others, size_of, self._rotation)
                if victim is None:
                    raise
            victims.append(victim)
            others.remove(victim)
        self._rotation.end(uploaded, victims)
        return victims

    def begin(self, uploaded: UploadedKeys) -> None:
        """Record a set before its first byte. Sets without bytes leave no record.

        Raises:
            OSError: the audit file cannot be written.
        """
        if self._audit is not None:
            self._audit.note(
                "begin",
                uploaded.tenant,
                uploaded.identifier,
                model=uploaded.model,
                configuration=uploaded.configuration.identifier,
                bytes=uploaded.configuration.key_bytes,
            )

    def leave(self, uploaded: UploadedKeys) -> None:
        """Count a set no longer. The lock is held."""
        self._rotation.leave(uploaded)

    def end(self, uploaded: UploadedKeys, why: str) -> None:
        """Record the deletion of a set, and the reason: client, expired, room, refused or damaged.

        Raises:
            OSError: the audit file cannot be written.
        """
        if self._audit is not None and uploaded.begun:
            self._audit.note("delete", uploaded.tenant, uploaded.identifier, why=why)
