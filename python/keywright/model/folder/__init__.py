"""The folder of a model: names of its files, and reading and writing them."""

from .description import require_texts
from .files import EVALUATION_KEYS, PARAMETERS, PLAN, PROGRAM, PUBLIC_KEY, SECRET_KEY, require_files

__all__ = [
    "EVALUATION_KEYS",
    "PARAMETERS",
    "PLAN",
    "PROGRAM",
    "PUBLIC_KEY",
    "SECRET_KEY",
    "require_files",
    "require_texts",
]
