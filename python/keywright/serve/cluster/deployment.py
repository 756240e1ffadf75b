"""The deployment of replicas on Ray Serve: their number and their router."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig

from keywright._core import __version__

from .replica import Replica

QUEUE = 4
"""Orders that a replica accepts at a time: it runs one. The rest wait in the service, which schedules them
fairly."""

AUTOSCALE_AT = 2.0
"""Orders per replica, running and waiting, above which replicas are added, up to the maximum."""

REPORT_S = 1.0
"""How often a replica reports which keys it holds."""

UPSCALE_S, DOWNSCALE_S = 5.0, 300.0
"""How long the load must stay high before a replica starts, and low before one stops and drops its keys."""


@dataclass(frozen=True)
class Replicas:
    """Number and size of replicas.

    Attributes:
        least: minimum number of replicas.
        most: maximum number of replicas.
        cpus: processors of each, equal to its threads of the engine.
        key_memory: bytes of key sets that each holds; see `ResidentKeys`.
    """

    least: int = 1
    most: int = 1
    cpus: int = 1
    key_memory: int | None = None


def fingerprint(models: Sequence[Mapping[str, Any]], replicas: Replicas) -> str:
    """Return the settings that interchangeable replicas have in common."""
    described = [__version__, astuple(replicas), [dict(model) for model in models]]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def deployment(models: Sequence[Mapping[str, Any]], replicas: Replicas) -> serve.Application:
    """Return the application that `ray.serve.run` takes.

    Args:
        models: description of each model for a worker: ``model`` (its hash), ``folder``, ``budget``. All
            machines must see the folder.
        replicas: number and size.
    """
    router = RequestRouterConfig(
        request_router_class="keywright.serve.cluster.ray_router.KeyAwareRouter",
        request_routing_stats_period_s=REPORT_S,
    )
    scaling = AutoscalingConfig(
        min_replicas=replicas.least,
        max_replicas=replicas.most,
        target_ongoing_requests=AUTOSCALE_AT,
        upscale_delay_s=UPSCALE_S,
        downscale_delay_s=DOWNSCALE_S,
    )
    replicated = serve.deployment(
        Replica,
        name="replicas",
        max_ongoing_requests=QUEUE,
        autoscaling_config=scaling,
        request_router_config=router,
        ray_actor_options={"num_cpus": replicas.cpus},
    )
    return replicated.bind([dict(model) for model in models], replicas.cpus, replicas.key_memory)
