"""Check the prose of pages and of comments with few rules, those that a reader notices.

    python scripts/prose.py [FILE ...]

Without files, it checks all of `docs/`, the pages in the root, those of `BESIDE`, and the comments of the
sources in `COVERED`. In Python it also checks docstrings, and the strings of errors and help texts. Code,
tables, headings and links are not prose. The rules:

* a line has at most `WIDTH` characters;
* a sentence has at most `WORDS` words. The limit is loose: with 45 words, sentences were split that belong
  together, and pages became rows of short statements. A longer sentence is a list: show it as one;
* at most `ROW` sentences of `SHORT` words or fewer follow each other: join them;
* none of `PHRASES` occurs;
* none of `CLAUSES` occurs in the places that users read: `docs/`, README, and in `python/keywright` the
  docstrings of public names, the strings of errors and help texts;
* a list follows an empty line, or the site shows it as part of the paragraph above it;
* no line inside a span of code begins like an item of a list, or a forge shows it as one.

A finding is printed as ``file:line: what``. The exit status is 1 if there is any.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import python_prose

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 120
WORDS = 60
SHORT = 7
ROW = 3

PHRASES = {
    r"\bfor want of\b": "say what is missing",
    r"\bsays nothing (about|of)\b": "name what is left out",
    r"\b(gives?|gave) (\w+ )?away\b": "use `reveal`",
    r"\b(goes|go|went) past\b": "use `exceed`",
    r"(?:^|[.;:] )who (keeps|has|wants|reads|makes|takes|needs|knows|may)\b": "name who: a client that ...",
    r"\bwhoever\b": "use `anyone who`, or name who",
    r"\bas (large|many|much|wide|long) as (it|they) (may|can) be\b": "state the bound",
    r"\b(is|are) to be \w+ed\b": "use `must be`",
    r"\ball the same\b": "use `still` or `nevertheless`",
    r"\bin (its|the) midst\b": "use `during`",
    r"\bcomes? to be\b": "use `becomes` or `why`",
    r"\bdearer\b": "use `more expensive` or `slower`",
    r"\btold apart\b": "use `distinguished`",
    r"\bbeside (each|these|those|them)\b": "use `in addition` or `compared with`",
    r"\bin the place of\b": "use `instead of`",
    r"\bto be had\b": "use `available`",
    r"\bof so many\b": "give the number, or say what is too many",
    r"\b(gives?|gave|given) back\b(?! ends?\b)": "use `return`, or `free` for memory",
    r"\bin (its|their) stead\b": "use `instead`",
    r"(?<!there )\b(is|are) (?-i:none)\b(?! of)": "write what it is not: `is not a ...`",
    r"\bwhere (it is |they are )?not given\b": "use `by default`",
    r"\bwhat (comes|came|has come)\b": "name what arrives",
}
"""Phrases that are not written, as regular expressions, with what to do."""

CLAUSES = {
    r"^So (?!far\b)": "begin with the subject; give the reason by `therefore`, `so that` or `because`",
    r"\bwhat (is|was|are|were) (asked|found|held|kept|left|made|meant|read|refused)\b": "name it with a noun",
    r"\bwhat (is|was|are|were) (sent|tried|wanted|written)\b": "name it with a noun",
    r"\b(is|are|was|were) (that|those) of\b": "write `equals` or `comes from`, or repeat the noun",
    r"\bas of (?![0-9A-Z])": "write `as in`, `as with` or `like`",
    r"\d(?:% | percent\b)": "write `2 %`",
}
"""Clauses of a sentence that read as translated, as regular expressions, with what to do."""

BESIDE = ("benchmarks/*.md", "examples/*.md", "hardware/*.md", "vectors/*.md", "web/client/*.md")
"""Pages that are in neither place."""

USERS = ("docs/", "README.md", "python/keywright/")
"""Where the paths of files begin that users read, from the root."""

COVERED = (
    "benchmarks", "crates", "embedded", "examples", "fuzz", "hardware", "python", "scripts", "vectors", "web",
)  # fmt: skip
"""Folders whose sources in Python and in `COMMENT` are checked; of the root, the Makefile and TOML files."""

COMMENT = {
    suffix: re.compile(pattern)
    for pattern, suffixes in {
        r"^ *//[/!]? ?(.*)$": (".rs", ".sv"),
        r"^ *# ?(.*)$": (".toml", "Makefile"),
        r"^ *(?://|/\*\*?|\*/?) ?(.*?)(?: ?\*/)?$": (".mjs", ".ts"),
    }.items()
    for suffix in suffixes
}
"""The lines of a comment, by the suffix or name of the source, with the text of a line."""

FENCE = re.compile(r"^ *(`{3,})")
ITEM = re.compile(r"^ *(?:[*-]|\d+\.) ")
FIRST = re.compile(r"^ *(?:[*-]|1\.) ")
MARKED = re.compile(r"^ *(?:[*+-]|\d+[.)]) ")
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"\]\([^)]*\)")
MARK = re.compile(r"<!--.*?-->")
"""A comment of HTML, as around a figure that a study writes."""

END = re.compile(r"(?<=[.!?:;])[)\"*]*\s+(?=[\[\"`(*]*[A-Z0-9`_\[])|(?<=[.!?;])[)\"*]*\s+")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|cf|vs|al|Fig|No)\.")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph and each item of a list, as one line, with the number of its first line."""
    held: list[str] = []
    start = 0
    fence = ""
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        mark = FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and line.strip() == mark[1] else fence
            continue
        if mark:
            fence = mark[1]
        beside = not line.strip() or bool(mark) or line.startswith(("|", "#", "!", "<", ":::", "    "))
        if (beside or ITEM.match(line)) and held:
            yield start, " ".join(held)
            held = []
        if not beside:
            start = start if held else number
            held.append(line.strip())


def findings(text: str, *, clauses: bool = False) -> list[tuple[int, str]]:
    """Every place of a page that breaks a rule: the line, and the rule. `clauses` as for `breaches`."""
    places: list[tuple[int, str]] = []
    above = ""
    fence = ""
    code = False  # whether a span of code began in a line above
    for number, line in enumerate(text.splitlines(), start=1):
        mark = FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and line.strip() == mark[1] else fence
            above, code = "", False
            continue
        if mark:
            fence = mark[1]
            continue
        if code and MARKED.match(line):
            places.append((number, "a line inside code begins like a list: break the line elsewhere"))
        code = bool(line.strip()) and code != bool(line.count("`") % 2)
        plain = MARK.sub("", LINK.sub("]()", line))
        if len(plain) > WIDTH and not line.startswith(("|", "#", "!", "<", "    ")):
            places.append((number, f"the line has {len(line)} characters, at most {WIDTH}"))
        if FIRST.match(line) and above.strip() and not ITEM.match(above) and not above.startswith(" "):
            places.append((number, "a list needs an empty line above it"))
        above = line
    for number, paragraph in paragraphs(text):
        places += breaches(number, paragraph, clauses=clauses)
    return sorted(places)


def breaches(number: int, paragraph: str, *, clauses: bool = False) -> Iterator[tuple[int, str]]:
    """Yield what breaks a rule in the sentences of a paragraph that begins in a line.

    Args:
        number: the line.
        paragraph: its text.
        clauses: whether `CLAUSES` are looked for, too.
    """
    plain = ABBREVIATION.sub(r"\1", MARK.sub("", LINK.sub("]", CODE.sub("code", ITEM.sub("", paragraph)))))
    row = 0
    for sentence in END.split(plain):
        words = len(sentence.split())
        if words > WORDS:
            yield number, f"{words} words, at most {WORDS}: {' '.join(sentence.split()[:8])} ..."
        row = row + 1 if re.search(r"\w\W?[.?!]$", sentence) and words <= SHORT else 0
        if row == ROW + 1:
            yield number, f'{row} short sentences in a row, at most {ROW}: join them, to "{sentence}"'
        for phrase, advice in CLAUSES.items() if clauses else ():
            if match := re.search(phrase, sentence):
                yield number, f'"{match[0].strip()}": {advice}'
    for phrase, advice in PHRASES.items():
        if match := re.search(phrase, plain, re.IGNORECASE):
            yield number, f'"{match[0]}": {advice}'


def comments(source: str, comment: re.Pattern[str]) -> str:
    """The comments of a source as a page that has their text in the same lines, and empty lines for code."""
    return "\n".join(line[1] if line else "" for line in map(comment.match, source.splitlines()))


def check(file: Path) -> list[tuple[int, str]]:
    """The findings of a page, or of the comments of a source."""
    text = file.read_text(encoding="utf-8")
    for_users = file.resolve().is_relative_to(ROOT) and file.resolve().relative_to(
        ROOT
    ).as_posix().startswith(USERS)
    if file.suffix == ".py":
        public = set(python_prose.public(text)) if for_users else set()
        paragraphs = python_prose.paragraphs(text)
        return sorted(b for one in paragraphs for b in breaches(*one, clauses=one in public))
    comment = COMMENT.get(file.suffix or file.name)
    if comment is None:
        return findings(text, clauses=for_users)
    page = comments(text, comment)
    lines = zip(text.splitlines(), page.splitlines(), strict=False)
    wide = [
        (number, f"the line has {len(line)} characters, at most {WIDTH}")
        for number, (line, prose) in enumerate(lines, start=1)
        if len(line) > WIDTH >= len(prose) and prose and not prose.startswith(("|", "    "))
    ]
    return sorted(wide + findings(page))


def files() -> list[Path]:
    """The files that are checked when none are named."""
    pages = [page for pattern in ("*.md", "docs/**/*.md", *BESIDE) for page in sorted(ROOT.glob(pattern))]
    suffixes = (".py", *COMMENT)
    sources = [f"{folder}/*{suffix}" for folder in COVERED for suffix in suffixes]
    command = ["git", "ls-files", "Makefile", ":(glob)*.toml", *sources]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return pages + [ROOT / source for source in listed.splitlines() if (ROOT / source).is_file()]


def main() -> int:
    """Check the pages of the command line. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="prose.py", description="Check the prose of pages and comments.")
    parser.add_argument("files", nargs="*", type=Path, help="default: those of the project")
    count = 0
    for file in parser.parse_args().files or files():
        for number, what in check(file):
            count += 1
            shown = file.resolve()
            print(f"{shown.relative_to(ROOT) if shown.is_relative_to(ROOT) else file}:{number}: {what}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
