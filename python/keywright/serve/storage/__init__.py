"""Where a service keeps what outlives it: bytes (`Objects`) and tables (`Records`), each in two ways.

A folder and SQLite need nothing; S3-compatible object storage and PostgreSQL are named by their addresses
(`open_storage`) and need ``pip install keywright[storage]``. Their passwords come from the environment alone.
"""

from .objects import Objects
from .opening import Storage, open_storage
from .records import Records, Row

__all__ = ["Objects", "Records", "Row", "Storage", "open_storage"]
