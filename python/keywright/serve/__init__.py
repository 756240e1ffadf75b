"""A model as a service, and its clients: `Service` and `Server` on one side, `RemoteModel` on the other.

The server is honest and small: one model, HTTP, no accounts. It holds keys that evaluate and never one that
decrypts.
"""

from .errors import ServeError
from .http import Server, load_page
from .manifest import Manifest, Places
from .model import Evaluation, Model
from .remote import RemoteModel, Session
from .service import Service

__all__ = [
    "Evaluation",
    "Manifest",
    "Model",
    "Places",
    "RemoteModel",
    "ServeError",
    "Server",
    "Service",
    "Session",
    "load_page",
]
