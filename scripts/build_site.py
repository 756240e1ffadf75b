"""Build the site of the documentation into target/site/html and check every link of it.

Pages link files of the repository by relative paths, as the forge shows them. The site has the pages of
`docs/` and those of `PROJECT`; links to anything else become links to the forge.

    python scripts/build_site.py [--rustdoc target/doc]

With ``--rustdoc`` the Rust documentation becomes the folder ``rust`` of the site. The exit status is 1 if a
link leads nowhere or Zensical warns.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stub_docstrings import STUB, documented_stub

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "target" / "site"
PAGES = SOURCE / "pages"
SITE = SOURCE / "html"
RUST = "rust"
PROJECT = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages in the root of the repository that the site has under ``project``."""

PICTURES = (".png", ".svg")
"""Suffixes of files that the site gets a copy of, wherever they are."""

SHOWN_FILE = re.compile(r"^```console\n\$ cat \S+\.md\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block that shows a file of Markdown that a snippet wrote: on the site the text itself, as a table."""

LINK = re.compile(r"(?P<head>\]\()(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?P<tail>\))")
ELSEWHERE = ("http:", "https:", "mailto:")


class Links(HTMLParser):
    """The links of an HTML page, and the names in it that can be linked."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep links, sources of pictures and names."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name == "id":
                self.names.add(value)


def on_site(path: Path) -> Path | None:
    """Return the path of a repository file among the pages of the site; `None` if it is not there."""
    if path.parent == ROOT and path.name in PROJECT:
        return PAGES / "project" / path.name
    if path.is_relative_to(ROOT / "docs") and path.is_file():
        return PAGES / path.relative_to(ROOT / "docs")
    return None


def rewritten(text: str, page: Path, repository: str) -> str:
    """Return the text of a page for the site. Copies pictures that are not in `docs/`.

    Links to files that the site does not have lead to the forge. Files of Markdown that snippets show become
    parts of the page.
    """
    here = on_site(page)
    assert here is not None

    def link(match: re.Match[str]) -> str:
        if match["path"].startswith(ELSEWHERE):
            return match[0]
        path = (page.parent / match["path"]).resolve()
        if there := on_site(path):
            target = os.path.relpath(there, here.parent)
        elif path.suffix in PICTURES and path.is_file():
            there = PAGES / "pictures" / path.relative_to(ROOT)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, there)
            target = os.path.relpath(there, here.parent)
        elif path.is_relative_to(ROOT) and path.exists():
            kind = "tree" if path.is_dir() else "blob"
            target = f"{repository}/{kind}/main/{path.relative_to(ROOT)}"
        else:
            target = match["path"]  # of the site alone; the check of the built pages says if it is not there
        return f"{match['head']}{target}{match['anchor'] or ''}{match['tail']}"

    return LINK.sub(link, SHOWN_FILE.sub(lambda block: block["text"], text))


def copy_sources() -> str:
    """Fill target/site: the configuration and every page with its pictures. Returns the site's address."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    config = (ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8")
    project = tomllib.loads(config)["project"]
    SOURCE.mkdir(parents=True)
    (SOURCE / "zensical.toml").write_text(config, encoding="utf-8")
    package = ROOT / "python" / "keywright"
    shutil.copytree(
        package, SOURCE / "python" / package.name, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    (SOURCE / "python" / package.name / STUB.name).write_text(documented_stub(), encoding="utf-8")
    for page in [*(ROOT / "docs").rglob("*"), *(ROOT / name for name in PROJECT)]:
        there = on_site(page)
        if there is None or page.suffix == ".toml":
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            there.write_text(
                rewritten(page.read_text(encoding="utf-8"), page, project["repo_url"]), encoding="utf-8"
            )
        else:
            shutil.copyfile(page, there)
    return str(project["site_url"])


def broken(pages: Iterable[Path], base: str, *, rust: bool) -> list[str]:
    """Return links of built pages to missing files, or to missing names in them: ``page: link``.

    Args:
        pages: files of HTML under `SITE`.
        base: path of the site in its address, with slashes around it.
        rust: whether the Rust documentation is there; if not, links into it are not followed.
    """
    read: dict[Path, Links] = {}

    def parsed(path: Path) -> Links:
        if path not in read:
            read[path] = Links()
            read[path].feed(path.read_text(encoding="utf-8"))
        return read[path]

    links = []
    for page in sorted(pages):
        for link in parsed(page).links:
            if link.startswith((*ELSEWHERE, "data:", "javascript:")):
                continue
            path, _, name = unquote(link).partition("#")
            path = path.partition("?")[0]
            if path.startswith("/"):  # only the page for wrong addresses links so
                path = os.path.relpath(SITE / path.removeprefix(base), page.parent)
            target = (page.parent / path).resolve() if path else page
            if not rust and target.is_relative_to(SITE / RUST):
                continue
            if target.is_dir():
                target /= "index.html"
            missing = not target.is_file()
            if not missing and name and target.suffix == ".html" and not target.is_relative_to(SITE / RUST):
                missing = name not in parsed(target).names
            if missing:
                links.append(f"{page.relative_to(SITE)}: {link}")
    return links


def main() -> int:
    """Build and check. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="build_site.py", description="Build the site of the documentation.")
    parser.add_argument(
        "--rustdoc", type=Path, help="folder of the Rust documentation, to be part of the site"
    )
    options = parser.parse_args()
    base = urlsplit(copy_sources()).path
    zensical = Path(sys.executable).parent / "zensical"
    built = subprocess.run([zensical, "build", "--clean", "--strict"], cwd=SOURCE, check=False)
    if built.returncode != 0:
        return built.returncode
    pages = list(SITE.rglob("*.html"))
    if options.rustdoc:
        shutil.copytree(options.rustdoc, SITE / RUST)
    wrong = broken(pages, base, rust=options.rustdoc is not None)
    for line in wrong:
        print(f"broken link: {line}", file=sys.stderr)
    print(f"{SITE / 'index.html'}: {len(pages)} pages, {len(wrong)} broken links")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
