"""A rate of actions for each holder."""

import time

from keywright.serve.tenants.holders import MANY


class RateLimiter:
    """A rate of actions of each holder.

    Args:
        a_second: actions a second on average.
        burst: actions at once.
    """

    def __init__(self, a_second: float, burst: int) -> None:
        self._each, self._burst = 1 / a_second, burst
        self._next: dict[str, float] = {}

    def delay(self, holder: str) -> float:
        """Return the seconds until a holder may act again; if they are 0, the action is counted."""
        now = time.monotonic()
        idle = max(self._next.get(holder, now), now)
        delay = max(0.0, idle - now - (self._burst - 1) * self._each)
        if not delay:
            self._next[holder] = idle + self._each
            if len(self._next) > MANY:
                self._next = {name: end for name, end in self._next.items() if end > now}
        return delay
