"""Names of the package that pages write in code are there."""

import importlib
import re
from pathlib import Path

import keywright
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"(?<![\w./\"'\[@-])(?:kw|keywright|(compiler|runtime))((?:\.[A-Za-z_]\w*)+)(?!\w*/)")
"""A dotted name of the package, as programs import it. Paths of files are no names."""

ELSEWHERE = {
    "example",  # a host in an address: keywright.example
    "toml",  # a file
}


def lacking(module: str | None, path: str) -> str | None:
    """The first part of a dotted path that the package lacks."""
    thing: object = keywright
    for part in [*([module] if module else []), *path[1:].split(".")]:
        if isinstance(thing, type(keywright)) and not part[0].isupper():
            try:
                thing = importlib.import_module(f"{thing.__name__}.{part}")
            except ModuleNotFoundError:
                pass
            else:
                continue
        try:
            thing = getattr(thing, part)
        except keywright.errors.PackageMissingError:
            return None  # what an extra that is not installed has
        except AttributeError:
            # Attributes that instances have.
            return None if part in getattr(thing, "__annotations__", {}) else f"{thing!r} has no {part}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_code_are_there(page: Path) -> None:
    codes = CODE.findall(page.read_text(encoding="utf-8"))
    names = [match.groups() for code in codes for match in NAME.finditer(code)]
    wrong = [lacking(module, path) for module, path in names if path[1:].split(".")[0] not in ELSEWHERE]
    assert not [problem for problem in wrong if problem]


def test_a_name_that_is_not_there_is_found() -> None:
    assert lacking("compiler", ".compile_program") is None
    assert "has no compile" in str(lacking("compiler", ".compile"))
    assert lacking(None, ".Parameters.preset") is None
    assert "has no presett" in str(lacking(None, ".Parameters.presett"))
