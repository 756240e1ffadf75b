"""Admission of key sets and messages: places and bytes are reserved before the first byte arrives.

Key sets and evaluations count each other, so both are admitted under one lock (`Admission.lock`). This module
only decides. The store deletes the key sets that give way.
"""

import threading
import time
from collections.abc import Callable, Sequence

from keywright.errors.service import BusyError, LimitError
from keywright.serve.jobs.queue import Jobs
from keywright.serve.tenants.audit import Audit
from keywright.serve.tenants.holders import of_largest, sums
from keywright.serve.tenants.quotas import Usage

from .uploaded import UploadedKeys

MAX_EMPTY = 1024
"""Maximum number of a tenant's sets without bytes. The holder with the most loses its oldest for the next."""


class Admission:
    """Decides which key sets and messages a service takes.

    Args:
        capacity: maximum number of sets with bytes per tenant.
        expiry: seconds after which an unused set is deleted.
        usage: quotas of bytes; unlimited by default.
        jobs: the evaluations, whose bytes count, too; none by default.
        audit: records the begin and the end of sets; None for no record.

    Attributes:
        lock: held from a decision until what was admitted counts.
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
        stored, own = sum(map(_size, placed)), 0
        if self._jobs is not None:
            stored += self._jobs.stored(tenant)
            own = self._jobs.stored(tenant, holder) if holder else 0
        self._usage.require_bytes(tenant, stored, more, soon, own)

    def without_bytes(self, sets: Sequence[UploadedKeys]) -> list[UploadedKeys]:
        """Return the sets of a tenant without bytes that give way to another one."""
        empty, victims = [s for s in sets if not s.placed and not s.busy()], list[UploadedKeys]()
        while len(empty) >= MAX_EMPTY:
            victims.append(min(of_largest(empty), key=lambda s: s.used))
            empty.remove(victims[-1])
        return victims

    def with_bytes(self, uploaded: UploadedKeys, sets: Sequence[UploadedKeys]) -> list[UploadedKeys]:
        """Return the sets that give way to the bytes of another one. If it is refused, none of them does.

        Args:
            uploaded: the set whose first byte is about to arrive.
            sets: the key sets of its tenant.

        Raises:
            BusyError: the maximum number of sets have a place, all were used recently, and no other holder
                has more of them than this one would.
            LimitError: the tenant may not store so many bytes, and no other holder has more of them.
        """
        others, victims = [s for s in sets if s.placed and s is not uploaded], list[UploadedKeys]()
        if len(others) >= self.capacity:
            have = sums([uploaded, *others])
            # A client that pauses keeps its place against a holder that would have more places than it.
            stalled = [
                s for s in others if s.stalled() and not s.busy() and have[s.holder] >= have[uploaded.holder]
            ]
            victim = (
                min(stalled, key=lambda s: (-have[s.holder], s.moved))
                if stalled
                else _victim(uploaded, others, _one)
            )
            if victim is None:
                raise BusyError(f"{self.capacity} key sets are in use; ask again later")
            victims.append(victim)
            others.remove(victim)
        while True:
            try:
                self.require_bytes(others, uploaded.tenant, _size(uploaded))
                return victims
            except LimitError:
                victim = _victim(uploaded, others, _size)
                if victim is None:
                    raise
            victims.append(victim)
            others.remove(victim)

    def begin(self, uploaded: UploadedKeys) -> None:
        """Record a set before its first byte. Sets without bytes leave no record.

        Raises:
            OSError: the audit file cannot be written.
        """
        if self._audit is not None and not uploaded.begun:
            self._audit.note(
                "begin",
                uploaded.tenant,
                uploaded.identifier,
                model=uploaded.model,
                configuration=uploaded.configuration.identifier,
                bytes=uploaded.configuration.key_bytes,
            )
        uploaded.begun = True

    def end(self, uploaded: UploadedKeys, why: str) -> None:
        """Record the deletion of a set, and the reason: client, expired, room, refused or damaged.

        Raises:
            OSError: the audit file cannot be written.
        """
        if self._audit is not None and uploaded.begun:
            self._audit.note("delete", uploaded.tenant, uploaded.identifier, why=why)


def _one(uploaded: UploadedKeys) -> int:
    return 1


def _size(uploaded: UploadedKeys) -> int:
    return uploaded.configuration.key_bytes


def _victim(
    uploaded: UploadedKeys, others: Sequence[UploadedKeys], size: Callable[[UploadedKeys], int]
) -> UploadedKeys | None:
    """Return the set that gives way to another one: of a holder that has more than its holder would have."""
    largest = of_largest(others, size)
    if (
        not largest
        or sums(largest, size)[largest[0].holder] <= sums([uploaded, *others], size)[uploaded.holder]
    ):
        return None
    idle = [s for s in largest if not s.busy()] or largest
    # Sets that are incomplete first.
    return min(idle, key=lambda s: (s.ready, s.used))
