"""The deployment of replicas on Ray Serve: how many there are, and whose router chooses."""

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
"""Orders that a replica has at a time: one runs. The rest wait in the service, where their turns are fair."""

AUTOSCALE_AT = 2.0
"""Orders a replica, running and waiting, above which there are more replicas, as far as there may be."""

REPORT_S = 1.0
"""How often a replica says which keys it has."""

UPSCALE_S, DOWNSCALE_S = 5.0, 300.0
"""How long there are too many orders before a replica begins, and too few before one ends with its keys."""


@dataclass(frozen=True)
class Replicas:
    """How many replicas there are, and how large they are.

    Attributes:
        least: replicas that are always there.
        most: replicas that are there at most.
        cpus: processors of each, which are as many threads of the engine.
        key_memory: bytes of key sets that each holds; see `ResidentKeys`.
    """

    least: int = 1
    most: int = 1
    cpus: int = 1
    key_memory: int | None = None


def fingerprint(models: Sequence[Mapping[str, Any]], replicas: Replicas) -> str:
    """What is the same for replicas that can take each other's place."""
    described = [__version__, astuple(replicas), [dict(model) for model in models]]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def deployment(models: Sequence[Mapping[str, Any]], replicas: Replicas) -> serve.Application:
    """The application that `ray.serve.run` takes.

    Args:
        models: what a worker needs to know of each model: ``model`` (its hash), ``folder``, ``budget``. The
            folder is one that all machines have.
        replicas: how many.
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
    made = serve.deployment(
        Replica,
        name="replicas",
        max_ongoing_requests=QUEUE,
        autoscaling_config=scaling,
        request_router_config=router,
        ray_actor_options={"num_cpus": replicas.cpus},
    )
    return made.bind([dict(model) for model in models], replicas.cpus, replicas.key_memory)
