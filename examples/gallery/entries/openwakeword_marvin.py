"""Is another word said that wakes a device?"""

from __future__ import annotations

from pathlib import Path

from gallery.entries.openwakeword_alexa import head
from gallery.entry import Case, Entry


def load(folder: Path) -> Case:
    """The network for the words Hey Marvin."""
    return head(folder, "hey_marvin_v0.1")


ENTRY = Entry(
    title="is Hey Marvin said in 2 s of sound, by its embeddings; three layers with LayerNorm and ReLU",
    licence="Apache-2.0",
    data="vowels of several voices with noise, none of them the words",
    load=load,
)
