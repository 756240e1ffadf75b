"""The folder of a model: names of its files, and reading and writing them."""

from .description import require_texts
from .files import (
    EVALUATION_KEYS,
    PARAMETERS,
    PLAN,
    PROGRAM,
    PUBLIC_KEY,
    SECRET_KEY,
    new_file,
    new_folder,
    require_files,
    require_new,
    require_place,
)

__all__ = [
    "EVALUATION_KEYS",
    "PARAMETERS",
    "PLAN",
    "PROGRAM",
    "PUBLIC_KEY",
    "SECRET_KEY",
    "new_file",
    "new_folder",
    "require_files",
    "require_new",
    "require_place",
    "require_texts",
]
