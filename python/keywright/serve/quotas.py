"""What a tenant may have: bytes that are kept for it, and processor seconds of a day.

A file has it: ``{"format": "keywright-quotas-1", "default": {"bytes": B, "seconds": S}, "tenants": {NAME:
{"bytes": B, "seconds": S}}}``. What a tenant's entry does not say is the default's, and ``null`` is no limit.
Without accounts all clients are one tenant. A day is one of UTC.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from .errors import QuotaBytesError, QuotaSecondsError, QuotasFileError
from .storage import Records

FORMAT = "keywright-quotas-1"
MAX_BYTES = 1 << 20
DAY_S = 86_400


@dataclass(frozen=True)
class Quota:
    """What one tenant may have.

    Attributes:
        bytes: of key sets, evaluations and their answers; None for as much as there is.
        seconds: of processors on a day; None for as many as there are.
    """

    bytes: int | None = None
    seconds: float | None = None


class Quotas:
    """Quotas by tenant.

    Args:
        default: of whoever has none of its own.
        tenants: of the others.
    """

    def __init__(self, default: Quota | None = None, tenants: Mapping[str, Quota] | None = None) -> None:
        self._default, self._tenants = default or Quota(), dict(tenants or {})

    @staticmethod
    def load(path: Path) -> "Quotas":
        """Those of a file.

        Raises:
            QuotasFileError: it is none.
        """
        entry: object = None
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            try:
                entry = json.loads(path.read_bytes())
            except (ValueError, RecursionError):
                entry = None
        if not isinstance(entry, dict) or entry.get("format") != FORMAT:
            raise QuotasFileError(f"{path} has no quotas: it is no JSON object of the format {FORMAT}")
        if not set(entry) <= {"format", "default", "tenants"}:
            raise QuotasFileError(f"{path} has members besides format, default and tenants")
        default = _quota(entry.get("default", {}), Quota(), "default")
        tenants = entry.get("tenants", {})
        if not isinstance(tenants, dict):
            raise QuotasFileError(f"{path}: tenants is no JSON object")
        return Quotas(default, {name: _quota(each, default, name) for name, each in tenants.items()})

    def of(self, tenant: str) -> Quota:
        """What a tenant may have."""
        return self._tenants.get(tenant, self._default)


def _quota(entry: object, default: Quota, name: str) -> Quota:
    if not isinstance(entry, dict) or not set(entry) <= {"bytes", "seconds"}:
        raise QuotasFileError(f"the quota of {name[:64]} is no object with the members bytes and seconds")
    size, seconds = entry.get("bytes", default.bytes), entry.get("seconds", default.seconds)
    if size is not None and (type(size) is not int or size < 0):
        raise QuotasFileError(f"the bytes of {name[:64]} are no whole number from 0 on, and not null")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 <= seconds < float("inf")):
        raise QuotasFileError(f"the seconds of {name[:64]} are no number from 0 on, and not null")
    return replace(default, bytes=size, seconds=None if seconds is None else float(seconds))


class Usage:
    """What tenants have used today.

    Args:
        quotas: what they may.
        records: where it is noted.
    """

    def __init__(self, quotas: Quotas, records: Records) -> None:
        self.quotas, self._records = quotas, records
        self._lock = threading.Lock()
        self._day = ""
        self._seconds: dict[str, float] = {}

    def seconds(self, tenant: str) -> float:
        """Processor seconds that a tenant has used today."""
        with self._lock:
            self._turn()
            return self._seconds.get(tenant, 0.0)

    def use(self, tenant: str, seconds: float) -> None:
        """Note processor seconds."""
        with self._lock:
            self._turn()
            self._seconds[tenant] = self._seconds.get(tenant, 0.0) + seconds
            self._records.use(tenant, self._day, seconds)

    def _turn(self) -> None:
        """Begin a new day."""
        today = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%d")
        if today != self._day:
            self._seconds, self._day = self._records.used(today), today

    def require_seconds(self, tenant: str) -> None:
        """Refuse an evaluation of a tenant that has used its day.

        Raises:
            QuotaSecondsError: with when the next day begins.
        """
        most, used = self.quotas.of(tenant).seconds, self.seconds(tenant)
        if most is not None and used >= most:
            left = DAY_S - int(time.time()) % DAY_S
            raise QuotaSecondsError(
                f"{used:.1f} processor seconds of {most:g} are used today; come again in {left} s",
                used=round(used, 3),
                maximum=most,
                retry_after=left,
            )

    def require_bytes(self, tenant: str, stored: int, more: int, frees: float | None) -> None:
        """Refuse bytes that a tenant has no room for.

        Args:
            tenant: whose they are.
            stored: bytes that are kept for it.
            more: bytes that are to be.
            frees: in how many seconds what it does not use makes room; None if nothing will.

        Raises:
            QuotaBytesError: with when there may be room.
        """
        most = self.quotas.of(tenant).bytes
        if most is None or stored + more <= most:
            return
        retry = 0 if frees is None or more > most else max(1, int(frees) + 1)
        then = f"come again in {retry} s" if retry else "ask for a larger quota"
        raise QuotaBytesError(
            f"{stored} bytes are kept of {most}, and {more} more are too many; delete what is not needed, or "
            f"{then}",
            value=stored + more,
            maximum=most,
            retry_after=retry,
        )
