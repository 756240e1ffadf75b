"""A service on several machines (``keywright[cluster]``): job routing, replicas on Ray Serve, and shards
of a search index in actors."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from keywright.errors import PackageMissingError

if TYPE_CHECKING:
    from .deployment import Replicas
    from .index_actor import IndexActor
    from .ray_workers import RayWorkers

__all__ = ["IndexActor", "RayWorkers", "Replicas"]

_MODULES = {
    "IndexActor": "index_actor",
    "RayWorkers": "ray_workers",
    "Replicas": "deployment",
}


def __getattr__(name: str) -> Any:
    """Import what needs Ray on first use."""
    if name in _MODULES:
        # Ray reads it during its import. A thread of Ray Serve that still works after `ray.shutdown` would
        # otherwise start a cluster of its own.
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
        try:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        except ModuleNotFoundError as error:
            raise PackageMissingError(str(error.name), "cluster") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
