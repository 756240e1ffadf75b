"""Storage of a service's state: bytes (`Objects`) and tables (`Records`), with two back ends each.

A folder and SQLite need no extra package. S3-compatible object storage and PostgreSQL are selected by address
(`open_storage`) and need ``pip install keywright[storage]``. Their passwords come from the environment only.
"""

from .objects import Objects
from .opening import Storage, open_storage
from .records import Records, Row

__all__ = ["Objects", "Records", "Row", "Storage", "open_storage"]
