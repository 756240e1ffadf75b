"""A model as a service, and its clients: `Service` and `Server` on one side, `RemoteModel` on the other.

The server is honest and small: one model, HTTP, no accounts. It holds keys that evaluate and never one that
decrypts.
"""

from .errors import ServeError
from .http import Server, load_page
from .manifest import Manifest, Places
from .model import Model, ModelRunner
from .remote import RemoteModel, Session
from .service import Service

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
    "load_page",
]
