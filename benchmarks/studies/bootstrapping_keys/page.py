"""Tables into a Markdown page, between marks that name them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

MARK = re.compile(r"(<!-- kds: (?P<name>\w+) -->\n).*?(<!-- /kds -->)", re.DOTALL)


class MissingTable(Exception):
    """The page needs a table for which the record is not sufficient."""


def fill(text: str, tables: Mapping[str, Sequence[str]], names: Collection[str]) -> str:
    """The page with the lines between every two marks replaced; those of other records stay.

    Args:
        text: the page.
        tables: of a record, by name.
        names: of all tables.

    Raises:
        MissingTable: there is no such table.
    """

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in names:
            raise MissingTable(f"the page wants the table {name!r}; there are {', '.join(names)}")
        if name not in tables:
            return match[0]
        return f"{match[1]}" + "".join(f"{line}\n" for line in tables[name]) + match[3]

    return MARK.sub(replaced, text)


def marks(text: str) -> list[str]:
    """Names of the tables that a page has marks for."""
    return [match["name"] for match in MARK.finditer(text)]
