"""Write what each page of the Python API shows into a table of the page, for readers of the Markdown.

    python scripts/api_names.py [--check]

A site fills the lines ``::: name`` from docstrings; a forge shows them as they are. So each page says
between two comments where the site has their text, and has a table: names, the first sentence of each
docstring, how many threads may use an object at the same time, and the members of classes. With ``--check``
nothing is written, and the exit status is 1 if a table is not what the docstrings make.
"""

import argparse
import inspect
import re
import sys
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference" / "python"
BEGIN, END = "<!-- written by scripts/api_names.py -->", "<!-- end -->"
TABLE = re.compile(rf"{BEGIN}\n.*?{END}\n\n", re.DOTALL)
THREADS = re.compile(r"Thread safety: (any|one)\b(?:[^.,;]*, except for (`\w+`(?: and `\w+`)*))?")
ENTRY = re.compile(r"^::: (keywright(?!\.serve\.cluster)[\w.]*)$", re.MULTILINE)
"""Without those that cannot be imported without Ray: only the site shows them."""


def resolved(name: str) -> object:
    """Return the object of a dotted name.

    Raises:
        ImportError, AttributeError: there is none.
    """
    parts = name.split(".")
    outcome: object = import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        try:
            outcome = getattr(outcome, part)
        except AttributeError:
            outcome = import_module(".".join(parts[:place]))
    return outcome


def first_sentence(documented: object) -> str:
    """Return the first sentence of the docstring of a class or function as a cell of a table."""
    if not callable(documented):
        return ""
    paragraph = (inspect.getdoc(documented) or "").split("\n\n")[0]
    text = " ".join(paragraph.split())
    sentence = re.split(r"(?<=[.:])(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z`])", text)[0]
    return re.sub(r":$", ".", sentence).replace("|", "\\|")


def threads(documented: object) -> str:
    """Return how many threads may use one object of a class at the same time: any, or one, and the methods
    of which the opposite is true."""
    if not isinstance(documented, type) or issubclass(documented, BaseException):
        return ""
    if said := THREADS.search(" ".join((inspect.getdoc(documented) or "").split())):
        return said[1] + (f", except {said[2]}" if said[2] else "")
    frozen = is_dataclass(documented) and documented.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return "any" if frozen or issubclass(documented, tuple) else ""


def members(documented: object) -> list[str]:
    """Return the public members of a class and of its bases in this package, in order; none of an error."""
    if not isinstance(documented, type) or issubclass(documented, BaseException):
        return []
    own = [base for base in documented.__mro__ if base.__module__.startswith("keywright")]
    names = {name for base in own for name in (*inspect.get_annotations(base), *vars(base))}
    return sorted(name for name in names if not name.startswith("_"))


def table(page: str, names: list[str]) -> str:
    """Return where a page's text is and the table of its names, with comments; without threads if no class
    has any."""
    columns = {"name": [f"`{name.rpartition('.')[2]}`" for name in names]}
    shown = [resolved(name) for name in names]
    columns["what it is"] = [first_sentence(one) for one in shown]
    if any(map(threads, shown)):
        columns["threads"] = [threads(one) for one in shown]
    columns["members"] = [", ".join(f"`{member}`" for member in members(one)) for one in shown]
    rows = [columns, ["---"] * len(columns), *zip(*columns.values(), strict=True)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines[1] = lines[1].replace(" ", "")
    place = (
        "On GitHub this page shows only the table. `make docs` writes the whole text, with all signatures,"
    )
    return "\n".join(
        [BEGIN, place, f"to `target/site/html/reference/python/{page}/index.html`.", "", *lines, END, "", ""]
    )


def filled(page: str, text: str) -> str:
    """Return a page with its table; a page without entries as it is."""
    names = ENTRY.findall(text)
    if not names:
        return text
    bare = TABLE.sub("", text)
    return bare.replace("::: ", f"{table(page, names)}::: ", 1)


def main(arguments: list[str] | None = None) -> int:
    """Write or compare all pages. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the tables of the Python API's pages.")
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    check: bool = parser.parse_args(arguments).check
    stale = False
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := filled(page.stem, text)) != text:
            stale = True
            print(f"{page}: {'not what the docstrings make' if check else 'written'}")
            if not check:
                page.write_text(new, encoding="utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
