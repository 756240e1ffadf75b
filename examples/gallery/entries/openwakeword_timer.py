"""Which time is a timer set to?"""

from __future__ import annotations

from pathlib import Path

from gallery.entries.openwakeword_alexa import head
from gallery.entry import Case, Entry


def load(folder: Path) -> Case:
    """The network for six times, and none of them."""
    return head(folder, "timer_v0.1")


ENTRY = Entry(
    title="which timer is asked for in 3 s of sound, one of 7, by its embeddings; three layers with ReLU",
    licence="Apache-2.0",
    data="vowels of several voices with noise, none of them the words",
    load=load,
)
