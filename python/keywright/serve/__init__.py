"""A model as a service, and its clients: `Service` and `Server` on one side, `RemoteModel` on the other.

The service holds evaluation keys and never a secret key. It is an ASGI application (`application`), and
`Server` runs it. Both need ``pip install keywright[serve]``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import ServeError, ServerMissingError
from .manifest import Manifest, Places
from .model import Model, ModelRunner
from .pages import load_page
from .remote import RemoteModel, Session
from .service import Service
from .spot_checks import SpotChecks
from .workers import Workers

if TYPE_CHECKING:
    from .app import application
    from .server import Server

__all__ = [
    "Manifest",
    "Model",
    "ModelRunner",
    "Places",
    "RemoteModel",
    "ServeError",
    "Server",
    "Service",
    "Session",
    "SpotChecks",
    "Workers",
    "application",
    "load_page",
]

_NEEDS_STARLETTE = {"Server": "server", "application": "app"}


def __getattr__(name: str) -> Any:
    """Import what needs Starlette and uvicorn on first use."""
    if name in _NEEDS_STARLETTE:
        try:
            return getattr(import_module(f"keywright.serve.{_NEEDS_STARLETTE[name]}"), name)
        except ModuleNotFoundError as error:
            raise ServerMissingError(str(error.name)) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
