"""What keys a model wants, as a thing of its own, and which models there are and were.

A configuration is the parameters and the head of the key set that a plan asks for. Versions of a model whose
plan stays the same have one configuration, and clients keep their keys.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from keywright._core import Parameters

from .errors import ModelFolderError, OtherModelError, RetiredError
from .model import Model
from .storage import Records

FORMAT = "keywright-configuration-1"


@dataclass(frozen=True)
class Configuration:
    """Keys that clients send.

    Attributes:
        parameters: of the keys.
        key_set: the head of the set, see `keywright.key_set_head`.
        key_bytes: bytes of the whole set.
        identifier: SHA-256, in hexadecimal, of the canonical form: JSON with sorted names and without blanks.
    """

    parameters: Parameters = field(repr=False)
    key_set: bytes = field(repr=False)
    key_bytes: int
    identifier: str

    @staticmethod
    def of(model: Model) -> "Configuration":
        """That of a model."""
        manifest = model.manifest
        form = {
            "format": FORMAT,
            "key_set": base64.b64encode(manifest.key_set).decode(),
            "parameters": base64.b64encode(manifest.parameters).decode(),
        }
        canonical = json.dumps(form, sort_keys=True, separators=(",", ":")).encode()
        identifier = hashlib.sha256(canonical).hexdigest()
        return Configuration(model.parameters, manifest.key_set, manifest.key_bytes, identifier)


class Catalog:
    """The models that are served, and those that were served before from the same state.

    Args:
        models: what is served; the first is answered where none is named. Several of one name are versions,
            the newest first.
        records: where those are noted that were served.

    Raises:
        ModelFolderError: there is none, or one is there twice.
    """

    def __init__(self, models: Sequence[Model], records: Records) -> None:
        self.models = {model.manifest.hash: model for model in models}
        if not models or len(self.models) < len(models):
            raise ModelFolderError("name at least one model to serve, and each of them once")
        self._of = {name: Configuration.of(model) for name, model in self.models.items()}
        self.configurations = {each.identifier: each for each in self._of.values()}
        self._earlier = {str(entry["model"]): entry for entry in records.models()}
        for name, model in self.models.items():
            records.note_model(name, model.name, self._of[name].identifier)

    @property
    def first(self) -> Model:
        """The model that is meant where none is named."""
        return next(iter(self.models.values()))

    def model(self, name: str) -> Model:
        """The model of a hash.

        Raises:
            RetiredError: it was served before.
            OtherModelError: there never was one.
        """
        if name in self.models:
            return self.models[name]
        if name in self._earlier:
            raise self._retired(name, str(self._earlier[name]["name"]))
        expected = self.first.manifest.hash
        raise OtherModelError(
            f"model {name[:64]} is not here, and {expected} is served; fetch the manifest again",
            found=name[:64],
            expected=expected,
        )

    def of(self, model: str) -> Configuration:
        """The configuration of a model; errors as of `model`."""
        return self._of[self.model(model).manifest.hash]

    def configuration(self, identifier: str) -> Configuration:
        """The configuration of an identifier; errors as of `model`."""
        if identifier in self.configurations:
            return self.configurations[identifier]
        for entry in self._earlier.values():
            if entry["configuration"] == identifier:
                raise self._retired(identifier, str(entry["name"]))
        raise OtherModelError(
            f"configuration {identifier[:64]} is not here; fetch the manifest again",
            found=identifier[:64],
            expected=self._of[self.first.manifest.hash].identifier,
        )

    def serving(self, configuration: str) -> list[str]:
        """Hashes of the models that take keys of a configuration."""
        return [name for name, each in self._of.items() if each.identifier == configuration]

    def _retired(self, found: str, name: str) -> RetiredError:
        successor = next((key for key, model in self.models.items() if model.name == name), "")
        then = f"model {successor} is its successor" if successor else "it has no successor here"
        return RetiredError(
            f"{found[:64]} is served no more, and {then}; fetch the manifest again",
            found=found[:64],
            successor=successor,
            configuration=self._of[successor].identifier if successor else "",
        )
