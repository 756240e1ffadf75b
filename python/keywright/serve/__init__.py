"""Models and search indices as a service: `serve`, or `Service` and `Server`.

`keywright.client` holds its clients.

The service holds evaluation keys and never a secret key. It is an ASGI application (`application`), and
`Server` runs it. Both need ``pip install keywright[serve]``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keywright.errors import PackageMissingError

if TYPE_CHECKING:
    from . import logs
    from .hosting import serve
    from .http.app import application
    from .http.pages import load_page
    from .http.server import Server
    from .served.index import ServedIndex
    from .served.interface import Served
    from .served.loading import load_served
    from .service import Service, ServiceLimits, StorageAddresses
    from .workers.workers import Workers

__all__ = [
    "Served",
    "ServedIndex",
    "Server",
    "Service",
    "ServiceLimits",
    "StorageAddresses",
    "Workers",
    "application",
    "load_page",
    "load_served",
    "logs",
    "serve",
]

_MODULES = {
    "Served": "served.interface",
    "ServedIndex": "served.index",
    "Server": "http.server",
    "Service": "service",
    "ServiceLimits": "service",
    "StorageAddresses": "service",
    "Workers": "workers.workers",
    "application": "http.app",
    "load_page": "http.pages",
    "load_served": "served.loading",
    "serve": "hosting",
}


def __getattr__(name: str) -> Any:
    """Import modules on first use: a worker needs neither the service nor Starlette and uvicorn."""
    try:
        if name in _MODULES:
            return getattr(import_module(f"keywright.serve.{_MODULES[name]}"), name)
        if name == "logs":
            return import_module("keywright.serve.logs")
    except ModuleNotFoundError as error:
        raise PackageMissingError(str(error.name), "serve") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
