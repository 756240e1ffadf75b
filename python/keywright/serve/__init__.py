"""Models and search indices as a service: `serve`, or `Service` and `Server`.

`keywright.client` holds its clients.

The service holds evaluation keys and never a secret key. It is an ASGI application (`application`), and
`Server` runs it. Both need ``pip install keywright[serve]``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keywright.errors import PackageMissingError

from . import logs
from .http.pages import load_page
from .served.index import ServedIndex
from .served.interface import Served
from .served.loading import load_served
from .service import Service, ServiceLimits, StorageAddresses
from .workers.workers import Workers

if TYPE_CHECKING:
    from .hosting import serve
    from .http.app import application
    from .http.server import Server

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

_NEEDS_STARLETTE = {"Server": "http.server", "application": "http.app", "serve": "hosting"}


def __getattr__(name: str) -> Any:
    """Import what needs Starlette and uvicorn on first use."""
    if name in _NEEDS_STARLETTE:
        try:
            return getattr(import_module(f"keywright.serve.{_NEEDS_STARLETTE[name]}"), name)
        except ModuleNotFoundError as error:
            raise PackageMissingError(str(error.name), "serve") from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
