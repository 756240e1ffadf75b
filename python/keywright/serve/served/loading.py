"""Loads what a service answers for."""

from pathlib import Path

from keywright._core import BfvParameters, Parameters, inspect
from keywright.errors.engine import ParameterError
from keywright.model.folder.files import require_no_secret
from keywright.model.model import Model

from .index import ServedIndex, is_index
from .interface import Served
from .model import ServedModel


def as_served(model: Model | Served) -> Served:
    """Return a model or an index as a service answers for it.

    Raises:
        ParameterError: it is something else, such as a folder.
    """
    served = ServedModel(model) if isinstance(model, Model) else model
    if not hasattr(served, "hash"):
        raise ParameterError(
            "a service takes models and indices; for a folder pass keywright.load(folder), or "
            "ServedIndex(folder)",
            what="models",
        )
    return served


def load_served(folder: Path) -> Served:
    """Load what a folder has: an index, or a model.

    Raises:
        FormatError, SearchError: as for `ServedIndex`.
        FolderError: as for `Model.load`, or the folder holds a secret key.
    """
    require_no_secret(folder)
    return ServedIndex(folder) if is_index(folder) else ServedModel(Model.load(folder))


def key_parameters(encoded: bytes) -> Parameters | BfvParameters:
    """Read the parameters of keys: of a model or of an index."""
    of_index = inspect(encoded)["kind"] == "BFV parameters"
    kind = BfvParameters if of_index else Parameters
    return kind.from_bytes(encoded, insecure=True)
