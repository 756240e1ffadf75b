"""The description in a model's folder: name, labels, and how thin clients' ciphertexts enter."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keywright._reading.documents import Limits, read_json_file
from keywright._reading.sealed import require_whole, with_digest
from keywright.errors.model import FolderError

from .files import DESCRIPTION

FORMAT = "keywright-model"
VERSION = 2
LIMITS = Limits(1 << 20, 1 << 17)


def require_texts(name: str, labels: Iterable[str] = ()) -> None:
    """Refuse a name of a model, or labels, that people cannot read.

    Raises:
        FolderError: one is empty, or has control characters.
    """
    for text in (name, *labels):
        if not text.strip() or not text.isprintable():
            raise FolderError(
                f"{text[:80]!r} is neither a name nor a label, which are printable and not empty; use "
                "another text (name=, labels=)",
                code="model_folder",
            )


@dataclass(frozen=True)
class Description:
    """The description of a model in its folder, besides its program.

    Attributes:
        name: name for people.
        labels: of the outputs.
        entry: numbers of the entry, see `keywright.plan.ring.entry`; empty if clients encrypt slots.
    """

    name: str = "model"
    labels: tuple[str, ...] = ()
    entry: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_texts(self.name, self.labels)

    def save(self, folder: Path) -> None:
        """Write the file into a folder."""
        entry = {"format": FORMAT, "version": VERSION, "name": self.name, "labels": self.labels}
        text = json.dumps(with_digest(entry | {"entry": dict(self.entry)}), indent=2) + "\n"
        (folder / DESCRIPTION).write_text(text, encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> "Description":
        """Read the file of a folder.

        Raises:
            FolderError: it is damaged.
        """
        path = folder / DESCRIPTION
        try:
            entry = read_json_file(path, LIMITS)
            if (entry["format"], entry["version"]) != (FORMAT, VERSION):
                raise ValueError(f"format {entry['format']!r:.60}, version {entry['version']!r:.20}")
            require_whole(entry)
            labels = tuple(map(str, entry["labels"]))
            return Description(str(entry["name"]), labels, dict(entry["entry"]))
        except (ValueError, LookupError, TypeError) as error:
            raise FolderError(
                f"{path} is not the description of a model: {error}", code="model_folder"
            ) from error
