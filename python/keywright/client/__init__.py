"""Clients of a service: `RemoteModel` and its sessions, and `RemoteSearch`."""

from .remote import RemoteModel, Session
from .remote_search import RemoteSearch
from .spot_checks import SpotChecks

__all__ = ["RemoteModel", "RemoteSearch", "Session", "SpotChecks"]
