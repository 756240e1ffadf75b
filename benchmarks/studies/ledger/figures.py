"""Figures on hand-written pages that come from records: one name, one figure, wherever it stands.

`figures.toml` names figures as texts with expressions. A page has one as `<!--=name-->3.5 s<!--/-->`, and a
whole block as a line `<!-- block: NAME -->`, the text of `blocks/NAME.md` filled in, and a line
`<!-- end -->`. `python -m studies.ledger` writes what is between the marks. Blocks use figures by name,
`{=name}`, and have links from the root of the repository. No line begins with a mark of a figure: Markdown
would take it for HTML.

A figure with a unit that is typed elsewhere on these pages is a fault unless `typed.toml` lists it, with a
reason. The pages of its `generated` are written by a study. For those of its `counted` it states how many
typed figures they have, beside links to their records; that number may only fall.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from os.path import relpath
from pathlib import Path
from typing import Any

from harness.pages.prose import wrapped

from studies.ledger.expressions import Expressions
from studies.ledger.records import ROOT

HERE = Path(__file__).parent
SPAN = re.compile(r"<!--=(?P<name>[\w.]+)-->(?P<text>.*?)<!--/-->", re.DOTALL)
BLOCK = re.compile(
    r"(?<=<!-- block: )(?P<name>[\w-]+)(?P<rest> -->\n)(?P<text>.*?)(?=<!-- end -->)", re.DOTALL
)
NAMED = re.compile(r"\{=(?P<name>[\w.]+)\}")
LINK = re.compile(r"\]\((?!https?:|#)([^)]*)\)")
"""A link to a file; texts of blocks have its path from the root."""

FIRST = re.compile(r"^\s*(?:[*-] |\d+\. )?<!--=", re.MULTILINE)
"""A mark that begins a line."""

DIGITS = 3
"""Fewer digits are equal by chance."""

UNIT = r"(?:ns|us|ms|s|minutes?|seconds?|hours?|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)"
TYPED = re.compile(rf"(?<![\w.^/-])\d[\d,.]*(?:\s?{UNIT}\b(?![-^(])|\stimes\b|x\b)")
"""A number with a unit of time or of bytes, or a ratio."""

OTHERS = re.compile(r"<!-- (?:kds|presets): .*?<!-- (?:/kds|end[\w ]*) -->", re.DOTALL)
"""What `studies.bootstrapping_keys` and `scripts/bootstrap_table.py` write into pages."""

CODE = re.compile(r"^( *)(`{3,}).*?^ *\2|`[^`\n]*`|<[^<>]*>", re.DOTALL | re.MULTILINE)


class BadPage(Exception):
    """A page names a figure that there is not, or has marks where Markdown takes them for something else."""


def pages() -> Iterator[Path]:
    """Every page that can have figures."""
    yield from (ROOT / name for name in ("README.md", "SECURITY.md", "benchmarks/README.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def others() -> Iterator[Path]:
    """Pages of crates, examples, hardware and the history, whose figures need no record."""
    command = ["git", "ls-files", "*.md", ":!docs", ":!benchmarks", ":!vectors"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    yield from (ROOT / name for name in listed if ROOT / name not in set(pages()))


def figures(expressions: Expressions) -> dict[str, str]:
    """Every named figure, filled in."""
    listed = tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))
    return {
        f"{group}.{name}": expressions.fill(text) for group, of in listed.items() for name, text in of.items()
    }


def filled(path: Path, text: str, known: Mapping[str, str], expressions: Expressions) -> str:
    """A page with its figures and blocks as the records make them.

    Raises:
        BadPage: a figure or a block is not there, or a mark begins a line.
    """

    def figure(match: re.Match[str]) -> str:
        if match["name"] not in known:
            raise BadPage(f"{path.name}: there is no figure {match['name']!r} in figures.toml")
        return known[match["name"]]

    def block(match: re.Match[str]) -> str:
        source = HERE / "blocks" / f"{match['name']}.md"
        if not source.is_file():
            raise BadPage(f"{path.name}: there is no block {match['name']!r} in blocks")
        block_text = expressions.fill(NAMED.sub(figure, source.read_text(encoding="utf-8")))
        block_text = LINK.sub(lambda link: f"]({relpath(ROOT / link[1], path.parent)})", block_text)
        return f"{match['name']}{match['rest']}{wrapped(block_text)}"

    if FIRST.search(text):
        raise BadPage(f"{path.name}: a mark begins a line; put a word before it")
    text = SPAN.sub(lambda match: f"<!--={match['name']}-->{figure(match)}<!--/-->", text)
    return BLOCK.sub(block, text)


def made_pages(expressions: Expressions) -> dict[Path, str]:
    """Every page with marks, as the records make it."""
    known = figures(expressions)
    texts = {path: path.read_text(encoding="utf-8") for path in pages()}
    marked = {path: text for path, text in texts.items() if SPAN.search(text) or BLOCK.search(text)}
    return {path: filled(path, text, known, expressions) for path, text in marked.items()}


def typed(text: str) -> Counter[str]:
    """Figures with units that are not from a record: outside marks, blocks of figures and code."""
    plain = CODE.sub(" ", OTHERS.sub("", BLOCK.sub("", SPAN.sub(" ", text))))
    return Counter(" ".join(match[0].split()) for match in TYPED.finditer(plain))


def allowed() -> Mapping[str, Any]:
    """What `typed.toml` allows."""
    return tomllib.loads((HERE / "typed.toml").read_text(encoding="utf-8"))


def problems(path: Path, text: str, rules: Mapping[str, Any]) -> list[str]:
    """Typed figures of a page that `typed.toml` does not allow, and what it allows in vain."""
    name = path.relative_to(ROOT).as_posix()
    counts = typed(text)
    if name in rules["generated"]:
        return []
    if name in rules["counted"]:
        most = rules["counted"][name]
        return [f"{name}: {counts.total()} typed figures, at most {most}"] if counts.total() > most else []
    reasons = {figure for one in rules["page"] if one["path"] == name for figure in one["figures"]}
    return [
        *(
            f"{name}: {figure} is typed; take it from figures.toml"
            for figure in counts
            if figure not in reasons
        ),
        *(f"{name}: {figure} is allowed and not there" for figure in sorted(reasons - set(counts))),
    ]


def twice(texts: Mapping[Path, str], rules: Mapping[str, Any]) -> list[str]:
    """Typed figures of three digits or more that stand on two pages: one name keeps them equal."""
    places: dict[str, list[str]] = {}
    for path, text in texts.items():
        name = path.relative_to(ROOT).as_posix()
        for figure in () if name in rules["generated"] else typed(text):
            if len(re.sub(r"\D", "", figure).lstrip("0")) >= DIGITS:
                places.setdefault(figure, []).append(name)
    known = {figure for one in rules["twice"] for figure in one["figures"]}
    return [
        f"{figure}: {', '.join(on)}" for figure, on in places.items() if len(on) > 1 and figure not in known
    ]
