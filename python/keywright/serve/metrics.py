"""What a service counts, in the text form that Prometheus reads. Nothing of it says who a client is."""

import threading
from collections import defaultdict

PREFIX = "keywright_"

HELP = {
    "requests_total": "Requests, by method and status.",
    "request_seconds_total": "Seconds of requests, by method.",
    "received_bytes_total": "Bytes of requests' bodies.",
    "sent_bytes_total": "Bytes of answers' bodies.",
    "refusals_total": "Refusals, by code.",
    "evaluations_total": "Evaluations that ended, by outcome: done, or a code.",
    "evaluation_seconds_total": "Seconds of evaluations that ended well.",
    "worker_deaths_total": "Workers that ended in the middle of an evaluation.",
    "key_loads_total": "Keys of evaluations, by where they were: memory or disk.",
    "key_evictions_total": "Key sets that made room in memory.",
    "waiting": "Evaluations that wait.",
    "running": "Evaluations that run.",
    "key_sets": "Key sets, by whether they are complete.",
    "key_bytes": "Bytes of key sets on the disk.",
}
"""Names, without `PREFIX`; those that end in ``_total`` only grow, the others are gauges."""

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Numbers by name and labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: defaultdict[str, dict[Labels, float]] = defaultdict(dict)

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a number."""
        with self._lock:
            values, key = self._values[name], tuple(sorted(labels.items()))
            values[key] = values.get(key, 0) + by

    def set(self, name: str, value: float, **labels: str) -> None:
        """State a number."""
        with self._lock:
            self._values[name][tuple(sorted(labels.items()))] = value

    def render(self) -> str:
        """All of them, in the text format 0.0.4. Labels are codes and methods: nothing needs an escape."""
        lines = []
        with self._lock:
            for name, text in HELP.items():
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} {kind}"]
                for labels, value in self._values.get(name, {}).items():
                    shown = ",".join(f'{label}="{what}"' for label, what in labels)
                    lines.append(
                        f"{PREFIX}{name}{{{shown}}} {value:.17g}" if shown else f"{PREFIX}{name} {value:.17g}"
                    )
        return "\n".join(lines) + "\n"
