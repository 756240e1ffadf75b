"""Key sets that clients send: their parts, checks and storage."""

from .buffers import connections_within, listening_bytes

__all__ = ["connections_within", "listening_bytes"]
