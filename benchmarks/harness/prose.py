"""Pages of Markdown whose prose has lines of one width."""

from __future__ import annotations

import re
import textwrap

WIDTH = 116
CODE = re.compile(r"`[^`]*`")
KEPT = "\0"
"""Stands for a space of a code span, where no line ends."""

ITEM = re.compile(r"(?:[*-]|\d+\.) ")


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
            kept = CODE.sub(lambda code: code[0].replace(" ", KEPT), words)
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
        if ITEM.match(line):
            end()
        held.append(line)
    end()
    return "\n".join(out).rstrip() + "\n"
