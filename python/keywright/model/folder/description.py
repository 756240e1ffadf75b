"""The description in a model's folder: name, labels, and how thin clients' ciphertexts enter."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keywright.errors.service import ModelFolderError

from .files import DESCRIPTION

FORMAT = "keywright-model"
VERSION = 1
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Description:
    """The description of a model in its folder, besides its program.

    Attributes:
        name: name for people.
        labels: of the outputs.
        entry: numbers of the entry, see `keywright.model.served.entry`; empty if clients encrypt slots.
    """

    name: str = "model"
    labels: tuple[str, ...] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the file into a folder."""
        entry = {"format": FORMAT, "version": VERSION, "name": self.name, "labels": self.labels}
        text = json.dumps(entry | {"entry": dict(self.entry)}, indent=2) + "\n"
        (folder / DESCRIPTION).write_text(text, encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> "Description":
        """Read the file of a folder.

        Raises:
            ModelFolderError: it is damaged.
        """
        path = folder / DESCRIPTION
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES} bytes")
            entry = json.loads(path.read_text(encoding="utf-8"))
            if (entry["format"], entry["version"]) != (FORMAT, VERSION):
                raise ValueError(f"format {entry['format']!r}, version {entry['version']!r}")
            labels = tuple(map(str, entry["labels"]))
            return Description(str(entry["name"]), labels, dict(entry["entry"]))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ModelFolderError(f"{path} is not the description of a model: {error}") from error
