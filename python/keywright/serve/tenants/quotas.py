"""Quotas of tenants: stored bytes, and processor seconds per day.

They come from a file: ``{"format": "keywright-quotas-1", "default": {"bytes": B, "seconds": S}, "tenants":
{NAME: {"bytes": B, "seconds": S}}}``. A member that a tenant's entry lacks is taken from the default;
``null`` means no limit. Without accounts all clients are one tenant, and an address may use no more than it
leaves to others. Days are in UTC.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from keywright._reading.documents import Limits, object_of
from keywright.errors.service import ConfigurationError, LimitError
from keywright.serve.storage import Records
from keywright.serve.tenants.accounts import NOBODY
from keywright.serve.tenants.holders import ADDRESS

FORMAT = "keywright-quotas-1"
LIMITS = Limits(1 << 20, 1 << 16)
DAY_S = 86_400


@dataclass(frozen=True)
class Quota:
    """The quota of one tenant.

    Attributes:
        bytes: of key sets, evaluations and their answers; None for no limit.
        seconds: processor seconds per day; None for no limit.
    """

    bytes: int | None = None
    seconds: float | None = None


class Quotas:
    """Quotas by tenant.

    Thread safety: any number of threads may use one at the same time.

    Args:
        default: quota of tenants that are not listed.
        tenants: quotas of the other tenants.
    """

    def __init__(self, default: Quota | None = None, tenants: Mapping[str, Quota] | None = None) -> None:
        self._default, self._tenants = default or Quota(), dict(tenants or {})

    @staticmethod
    def load(path: Path) -> "Quotas":
        """Read the quotas of a file.

        Raises:
            ConfigurationError: the file is malformed.
        """
        entry = object_of(path, LIMITS)
        if entry.get("format") != FORMAT:
            raise ConfigurationError(
                f"{path} is not a quotas file: it is not a JSON object of the format {FORMAT}",
                code="quotas_file",
            )
        if not set(entry) <= {"format", "default", "tenants"}:
            raise ConfigurationError(
                f"{path} has unknown members; only format, default and tenants are allowed",
                code="quotas_file",
            )
        default = _quota(entry.get("default", {}), Quota(), "default")
        tenants = entry.get("tenants", {})
        if not isinstance(tenants, dict):
            raise ConfigurationError(f"{path}: tenants is not a JSON object", code="quotas_file")
        return Quotas(default, {name: _quota(each, default, name) for name, each in tenants.items()})

    def of(self, tenant: str) -> Quota:
        """Return the quota of a tenant."""
        return self._tenants.get(tenant, self._default)


def _quota(entry: object, default: Quota, name: str) -> Quota:
    if not isinstance(entry, dict) or not set(entry) <= {"bytes", "seconds"}:
        raise ConfigurationError(
            f"the quota of {name[:64]} must be an object with the members bytes and seconds only",
            code="quotas_file",
        )
    size, seconds = entry.get("bytes", default.bytes), entry.get("seconds", default.seconds)
    if size is not None and (type(size) is not int or size < 0):
        raise ConfigurationError(
            f"the bytes of {name[:64]} must be a whole number of at least 0, or null", code="quotas_file"
        )
    if seconds is not None and (type(seconds) not in (int, float) or not 0 <= seconds < float("inf")):
        raise ConfigurationError(
            f"the seconds of {name[:64]} must be a number of at least 0, or null", code="quotas_file"
        )
    return replace(default, bytes=size, seconds=None if seconds is None else float(seconds))


class Usage:
    """Today's usage of tenants. `flush` writes it down: a killed process loses the usage since the last call.

    Args:
        quotas: the quotas.
        records: where usage is stored.
    """

    def __init__(self, quotas: Quotas, records: Records) -> None:
        self.quotas, self._records = quotas, records
        # The event loop asks for the first lock; the second one is held while the records are waited for.
        self._lock, self._flushing = threading.Lock(), threading.Lock()
        self._day = _today()
        self._seconds = {self._day: records.used(self._day)}
        self._pending = defaultdict[tuple[str, str], float](float)
        self._forgotten = ""

    def limits_bytes(self, tenant: str) -> bool:
        return self.quotas.of(tenant).bytes is not None

    def seconds(self, tenant: str, holder: str = "") -> float:
        """Return the processor seconds that a tenant has used today. Without accounts, those of an address,
        or of all."""
        with self._lock:
            used = self._used()
            if tenant == NOBODY and not holder:
                return sum(each for name, each in used.items() if name.startswith(ADDRESS))
            return used.get(tenant or holder, 0.0)

    def use(self, tenant: str, seconds: float, holder: str = ADDRESS) -> None:
        """Count processor seconds of a tenant, or without accounts of an address."""
        name = tenant or holder
        with self._lock:
            used = self._used()
            used[name] = used.get(name, 0.0) + seconds
            self._pending[self._day, name] += seconds

    def flush(self) -> None:
        """Store the usage since the last call.

        Raises:
            OSError: the database fails; the next call stores the rest.
        """
        with self._flushing:
            with self._lock:
                pending, self._pending = self._pending, defaultdict(float)
                today = self._day
            try:
                for day, name in list(pending):
                    self._records.use(name, day, pending[day, name])
                    del pending[day, name]
                if self._forgotten != today:
                    self._records.forget_used(ADDRESS, today)
                    self._forgotten = today
            finally:
                with self._lock:
                    for key, seconds in pending.items():
                        self._pending[key] += seconds

    def _used(self) -> dict[str, float]:
        """Return the seconds of today, by tenant. Those of the day before stay, for a clock that is set
        back."""
        if (today := _today()) != self._day:
            self._seconds = {self._day: self._seconds[self._day], today: self._seconds.get(today, {})}
            self._day = today
        return self._seconds[today]

    def require_seconds(self, tenant: str, holder: str = ADDRESS) -> None:
        """Check that a tenant has processor seconds left today, or without accounts an address.

        Raises:
            LimitError: it has used its day; the error says when the next one begins.
        """
        most, used = self.quotas.of(tenant).seconds, self.seconds(tenant)
        own = self.seconds(tenant, holder) if tenant == NOBODY else 0.0
        if most is not None and own >= most - used:
            left = DAY_S - int(time.time()) % DAY_S
            raise LimitError(
                f"{used:.1f} of {most:g} processor seconds are used today; retry in {left} s",
                used=round(used, 3),
                maximum=most,
                retry_after=left,
                code="quota_seconds",
            )

    def require_bytes(self, tenant: str, stored: int, more: int, frees: float | None, own: int = 0) -> None:
        """Check that a tenant may store more bytes.

        Args:
            tenant: the tenant.
            stored: bytes that it stores now.
            more: bytes to add.
            own: without accounts, those of them that the address may use up no more than it leaves to others.
            frees: seconds until its unused data expires; None if none will.

        Raises:
            LimitError: it may not; the error says when there may be room.
        """
        most = self.quotas.of(tenant).bytes
        if tenant != NOBODY:
            own = 0
        if most is None or stored + more + own <= most:
            return
        retry = 0 if frees is None or more > most else max(1, int(frees) + 1)
        then = f"retry in {retry} s" if retry else "ask for a larger quota"
        raise LimitError(
            f"{stored} of {most} bytes are stored, and {more} more exceed the quota; delete unneeded "
            f"data, or {then}",
            value=stored + more,
            maximum=most,
            retry_after=retry,
            code="quota_bytes",
        )


def _today() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%d")
