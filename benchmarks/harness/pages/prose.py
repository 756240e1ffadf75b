"""Pages of Markdown whose prose has lines of one width."""

from __future__ import annotations

import re
import textwrap

WIDTH = 116
CODE = re.compile(r"`[^`]*`")
KEPT = "\0"
"""Stands for a space of a code span, where no line ends."""

ITEM = re.compile(r"(?:[*-]|\d+\.) ")
FIRST = re.compile(r"(?:[*-]|1\.) ")
"""Begins a list after a paragraph. A line of a paragraph may begin with another number and a full stop."""

MARK = re.compile(r" (?=(?:[*-]|\d+\.)(?: |$))")
"""The space before what would begin an item, were it the first word of a line."""


def wrapped(text: str) -> str:
    """A page with its paragraphs and the items of lists wrapped; tables, code and headings as they are."""
    out: list[str] = []
    held: list[str] = []
    code = False

    def end() -> None:
        if held:
            mark = ITEM.match(held[0])
            indent = " " * len(mark[0]) if mark else ""
            words = " ".join(line.strip() for line in held)
            kept = MARK.sub(KEPT, CODE.sub(lambda code: code[0].replace(" ", KEPT), words))
            lines = textwrap.wrap(
                kept, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
            out.extend(line.replace(KEPT, " ") for line in lines)
            held.clear()

    for line in text.splitlines():
        fence = line.startswith("```")
        code = code != fence
        if code or fence or not line.strip() or line.startswith(("|", "#", "!", "<!--")):
            end()
            out.append(line.rstrip())
            continue
        if (ITEM if not held or ITEM.match(held[0]) else FIRST).match(line):
            end()
        held.append(line)
    end()
    return "\n".join(out).rstrip() + "\n"
