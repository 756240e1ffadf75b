"""Figures on hand-written pages that come from records: one name, one figure, wherever it stands.

`figures.toml` names figures as texts with expressions. A page has one as `<!--=name-->3.5 s<!--/-->`, and a
whole block as a line `<!-- block: NAME -->`, the text of `blocks/NAME.md` filled in, and a line
`<!-- end -->`. `python -m studies.ledger` writes what is between the marks. Blocks use figures by name,
`{=name}`, and have links from the root of the repository. No line begins with a mark of a figure: Markdown
would take it for HTML.

A figure with a unit that is typed elsewhere on these pages is a fault unless `typed.toml` lists it, with a
reason. The pages of its `generated` are written by a study. For those of its `counted` it states how many
typed figures they have, beside links to their records; that number may only fall. No figure of three digits
is typed on two pages, or has a name too, in any unit; and cells of tables with the same label and head agree.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

from harness.pages.prose import wrapped

from studies.ledger import presets
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

UNIT = r"(?:ns|us|ms|s|minutes?|seconds?|hours?|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)"

CELL = re.compile(r"(?<=\|)[^|\n]+(?=\|)")
BREAK = re.compile(rf"(?<=\d) (?={UNIT}\b|times\b|of \d)|(?<=\d of) (?=\d)")
"""Spaces in cells of tables at which a line must not break: between a number and its unit."""

FIRST = re.compile(r"^\s*(?:[*-] |\d+\. )?<!--=", re.MULTILINE)
"""A mark that begins a line."""

DIGITS = 3
"""Fewer digits are equal by chance."""

TYPED = re.compile(rf"(?<![\w.^/-])\d[\d,.]*(?:\s?{UNIT}\b(?![-^(])|\stimes\b|x\b)")
"""A number with a unit of time or of bytes, or a ratio."""

OTHERS = re.compile(r"<!-- kds: .*?<!-- /kds -->", re.DOTALL)
"""What `studies.bootstrapping_keys` writes into pages."""

COMPUTED = {"presets": presets.table}
"""Blocks that are no text with expressions."""

SIZES = {
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    **{
        name + plural: ("s", size)
        for name, size in (("second", 1.0), ("minute", 60.0))
        for plural in ("", "s")
    },
    **dict.fromkeys(("hour", "hours"), ("s", 3600.0)),
    **{name: ("B", 1e3**power) for power, name in enumerate(("kB", "MB", "GB", "TB"), 1)},
    **{name: ("B", 1024.0**power) for power, name in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)},
    "KB": ("B", 1e3),
}
"""Seconds or bytes of the units."""

MARK = re.compile(r"<!--.*?-->", re.DOTALL)
LABEL = re.compile(r"\[([^\]]*)\]\([^)]*\)")

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
        if (compute := COMPUTED.get(match["name"])) is not None:
            return f"{match['name']}{match['rest']}{compute()}"
        source = HERE / "blocks" / f"{match['name']}.md"
        if not source.is_file():
            raise BadPage(f"{path.name}: there is no block {match['name']!r} in blocks")
        block_text = expressions.fill(NAMED.sub(figure, source.read_text(encoding="utf-8")))
        block_text = CELL.sub(lambda cell: BREAK.sub("\N{NO-BREAK SPACE}", cell[0]), block_text)
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


@dataclass(frozen=True)
class Quantity:
    """A time in seconds or a number of bytes, between the ends that its digits leave open.

    Attributes:
        unit: "s" or "B"; "x" or "times" of a ratio, which is compared as it is written.
    """

    unit: str
    low: float
    high: float

    def same(self, other: Quantity) -> bool:
        """Whether both can be one figure, in two units or with other digits."""
        return self.unit == other.unit and self.low < other.high and other.low < self.high


def quantity(figure: str) -> Quantity | None:
    """What a figure says; None for fewer than `DIGITS` digits, which are equal by chance."""
    match = re.fullmatch(r"([\d,]+(?:\.\d+)?)\s?(\w+)", figure)
    if match is None or len(re.sub(r"\D", "", match[1]).lstrip("0")) < DIGITS:
        return None
    unit, size = SIZES.get(match[2], (match[2], 1.0))
    number, half = float(match[1].replace(",", "")), 0.5 * 10.0 ** -len(match[1].partition(".")[2])
    return Quantity(unit, (number - half) * size, (number + half) * size)


def twice(texts: Mapping[Path, str], rules: Mapping[str, Any], known: Mapping[str, str]) -> list[str]:
    """Typed figures of three digits or more that another page has, or a name of `figures.toml`, in any unit:
    one name keeps them equal."""
    places: list[tuple[str, str, Quantity]] = []
    for path, text in texts.items():
        page = path.relative_to(ROOT).as_posix()
        figures_of = () if page in rules["generated"] else sorted(typed(text))
        places += [(one, page, size) for one in figures_of if (size := quantity(one))]
    names = [
        (match[0], name, size)
        for name, text in known.items()
        for match in TYPED.finditer(text)
        if (size := quantity(match[0]))
    ]
    chance = {figure for one in rules["twice"] for figure in one["figures"]}
    out = [
        f"{one}: {page}, {other if one == others_text else f'{others_text} of {other}'}"
        for place, (one, page, size) in enumerate(places)
        for others_text, other, other_size in [*places[place + 1 :], *names]
        if page != other and size.same(other_size) and one not in chance
    ]
    return sorted(set(out))


def rows(texts: Mapping[Path, str]) -> Mapping[tuple[str, str], Mapping[str, list[str]]]:
    """The first numbers of cells of tables, by the row's label and the column's head, for each page."""
    out: dict[tuple[str, str], dict[str, list[str]]] = {}
    for path, text in texts.items():
        head: list[str] = []
        for line in LABEL.sub(r"\1", MARK.sub("", text)).splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                head = []
            elif not head:
                head = cells
            elif re.search(r"[A-Za-z]{2}", cells[0]):
                for column, cell in zip(head[1:], cells[1:], strict=False):
                    if number := re.search(r"\d[\d,]*(?:\.\d+)?", cell):
                        of = out.setdefault((cells[0], column), {})
                        of.setdefault(path.relative_to(ROOT).as_posix(), []).append(number[0])
    return out


def unequal(texts: Mapping[Path, str], rules: Mapping[str, Any]) -> list[str]:
    """Cells of tables on two pages with the same label, head and different figures."""
    others = {cell for one in rules["tables"] for cell in one["cells"]}
    return [
        f"{label}, {column}: {dict(of)}"
        for (label, column), of in rows(texts).items()
        if f"{label}, {column}" not in others
        and len(of) > 1
        and len({tuple(sorted(set(numbers))) for numbers in of.values()}) > 1
    ]
