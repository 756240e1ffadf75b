"""Clients of a service: `RemoteModel` and its sessions."""

from .remote import RemoteModel, Session
from .spot_checks import SpotChecks

__all__ = ["RemoteModel", "Session", "SpotChecks"]
