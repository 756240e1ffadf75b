"""Key configurations, and the current and former models that use them.

A configuration is the parameters and the key-set head that a key plan asks for. Versions of a model with the
same plan share a configuration, so clients keep their keys.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from keywright._core import BfvParameters, Parameters
from keywright.errors.model import FolderError
from keywright.errors.service import OtherModelError, RetiredError
from keywright.model.model import Model

from .served.interface import Served
from .served.loading import as_served
from .storage import Records

FORMAT = "keywright-configuration-1"


@dataclass(frozen=True)
class Configuration:
    """The keys that clients send.

    Attributes:
        parameters: of the keys.
        key_set: the head of the set, see `keywright.keys.set_head`.
        key_bytes: bytes of the whole set.
        identifier: SHA-256, in hexadecimal, of the canonical form: JSON with sorted names and without blanks.
    """

    parameters: Parameters | BfvParameters = field(repr=False)
    key_set: bytes = field(repr=False)
    key_bytes: int
    identifier: str

    @staticmethod
    def of(model: Served) -> "Configuration":
        form = {
            "format": FORMAT,
            "key_set": base64.b64encode(model.keys.head).decode(),
            "parameters": base64.b64encode(model.encoded_parameters).decode(),
        }
        canonical = json.dumps(form, sort_keys=True, separators=(",", ":")).encode()
        identifier = hashlib.sha256(canonical).hexdigest()
        return Configuration(model.parameters, model.keys.head, model.keys.size, identifier)


class Catalog:
    """The models that are served, and those that were served earlier from the same state.

    Args:
        models: the models and indices. Requests that name no model get the first. Several of one name are
            versions, the newest first.
        records: the table of models that have been served.

    Raises:
        FolderError: the list is empty, or names a model twice.
    """

    def __init__(self, models: Sequence[Model | Served], records: Records) -> None:
        self.models = {model.hash: model for model in map(as_served, models)}
        if not models or len(self.models) < len(models):
            raise FolderError("name at least one model to serve, and each of them once", code="model_folder")
        self._of = {name: Configuration.of(model) for name, model in self.models.items()}
        self.configurations = {each.identifier: each for each in self._of.values()}
        self._earlier = {str(entry["model"]): entry for entry in records.models()}
        for name, model in self.models.items():
            records.note_model(name, model.name, self._of[name].identifier)

    @property
    def first(self) -> Served:
        """The default model."""
        return next(iter(self.models.values()))

    def model(self, name: str) -> Served:
        """Return the model of a hash.

        Raises:
            RetiredError: it was served earlier.
            OtherModelError: it is unknown.
        """
        if name in self.models:
            return self.models[name]
        if name in self._earlier:
            raise self._retired(name, str(self._earlier[name]["name"]))
        expected = self.first.hash
        raise OtherModelError(
            f"there is no model {name[:64]} here, {expected} is served; fetch the manifest again",
            found=name[:64],
            expected=expected,
        )

    def of(self, model: str) -> Configuration:
        """Return the configuration of a model; raises the errors of `model`."""
        return self._of[self.model(model).hash]

    def configuration(self, identifier: str) -> Configuration:
        """Return the configuration of an identifier; raises the errors of `model`."""
        if identifier in self.configurations:
            return self.configurations[identifier]
        for entry in self._earlier.values():
            if entry["configuration"] == identifier:
                raise self._retired(identifier, str(entry["name"]))
        raise OtherModelError(
            f"there is no configuration {identifier[:64]} here; fetch the manifest again",
            found=identifier[:64],
            expected=self._of[self.first.hash].identifier,
        )

    def serving(self, configuration: str) -> list[str]:
        """Hashes of the models that use a configuration."""
        return [name for name, each in self._of.items() if each.identifier == configuration]

    def _retired(self, requested: str, name: str) -> RetiredError:
        successor = next((key for key, model in self.models.items() if model.name == name), "")
        then = f"model {successor} is its successor" if successor else "it has no successor here"
        return RetiredError(
            f"{requested[:64]} is no longer served, and {then}; fetch the manifest again",
            found=requested[:64],
            successor=successor,
            configuration=self._of[successor].identifier if successor else "",
        )
