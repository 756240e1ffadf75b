"""The metrics of a service, for Prometheus. They do not identify clients."""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from keywright.errors import PackageMissingError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

PREFIX = "keywright_"

STAGES_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Bucket bounds for stages, in seconds."""


class Family(NamedTuple):
    """A metric's kind, meaning and labels."""

    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()


FAMILIES = {
    "requests_total": Family("counter", "Requests, by method and status.", ("method", "status")),
    "request_seconds_total": Family("counter", "Seconds of requests, by method.", ("method",)),
    "received_bytes_total": Family("counter", "Bytes of requests' bodies."),
    "sent_bytes_total": Family("counter", "Bytes of answers' bodies."),
    "refusals_total": Family("counter", "Refusals, by code.", ("code",)),
    "evaluations_total": Family("counter", "Evaluations that ended: done, or an error code.", ("outcome",)),
    "joined_total": Family("counter", "Requests that were evaluated together with an earlier one."),
    "evaluation_seconds_total": Family("counter", "Seconds of evaluations that succeeded."),
    "stage_seconds": Family(
        "histogram", "Seconds of evaluations by stage: wait, keys (loading them), evaluate.", ("stage",)
    ),
    "worker_deaths_total": Family("counter", "Workers that ended during an evaluation."),
    "key_loads_total": Family(
        "counter", "Key sets of evaluations, by where they were: memory or disk.", ("place",)
    ),
    "key_evictions_total": Family("counter", "Key sets evicted from memory."),
    "resident_key_sets": Family("gauge", "Key sets in memory, once for all workers of this machine."),
    "resident_key_bytes": Family("gauge", "Bytes of key sets in memory."),
    "waiting": Family("gauge", "Evaluations that wait."),
    "running": Family("gauge", "Evaluations that run."),
    "key_sets": Family("gauge", "Key sets, by whether they are complete.", ("ready",)),
    "key_bytes": Family("gauge", "Bytes of key sets on the disk, by whether they are complete.", ("ready",)),
}
"""All names, without `PREFIX`. Those that end in ``_total`` are counters."""


class Metrics:
    """Numbers by name and labels.

    Raises:
        PackageMissingError: the Prometheus client library is not installed.
    """

    def __init__(self) -> None:
        try:
            import prometheus_client
        except ModuleNotFoundError as error:
            raise PackageMissingError(str(error.name), "serve") from error
        kinds = {
            "counter": prometheus_client.Counter,
            "gauge": prometheus_client.Gauge,
            "histogram": prometheus_client.Histogram,
        }
        self._registry: CollectorRegistry = prometheus_client.CollectorRegistry()
        self._values: dict[str, Any] = {}
        for name, family in FAMILIES.items():
            buckets = {"buckets": STAGES_S} if family.kind == "histogram" else {}
            self._values[name] = kinds[family.kind](
                PREFIX + name, family.text, family.labels, registry=self._registry, **buckets
            )

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._of(name, labels).inc(by)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._of(name, labels).set(value)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add to a histogram."""
        self._of(name, labels).observe(value)

    def _of(self, name: str, labels: dict[str, str]) -> Any:
        return self._values[name].labels(**labels) if labels else self._values[name]

    def render(self) -> str:
        """Return all metrics in the text format 0.0.4."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode()
