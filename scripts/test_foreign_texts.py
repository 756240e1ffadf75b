"""No module of the package parses a nested text format itself, where a document may take any memory.

`keywright._reading.documents` reads JSON within limits that each caller states; other formats that nest have
no reader, or a strict one (`keywright._reading.arrays` for numpy's headers).
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "keywright"
READER = PACKAGE / "_reading" / "documents.py"

PARSERS = {
    "json": {"load", "loads", "JSONDecoder", "decoder", "scanner"},
    "pickle": {"load", "loads", "Unpickler"},
    "marshal": {"load", "loads"},
    "shelve": {"open"},
    "plistlib": {"load", "loads"},
    "tomllib": {"load", "loads"},
    "ast": {"literal_eval", "parse"},
    "csv": {"reader", "DictReader"},
    "configparser": {"ConfigParser"},
    "numpy": {"loadtxt", "genfromtxt", "fromstring"},
    "np": {"loadtxt", "genfromtxt", "fromstring"},
}
"""Functions and classes that parse, by module."""

FORMATS = ("xml", "yaml", "orjson", "ujson", "simplejson", "msgpack", "cbor2", "joblib", "cloudpickle")
"""Modules that do nothing else."""


def parsers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Uses of a parser: its line and its name."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in PARSERS.get(module, ()):
                yield node.lineno, f"{module}.{name}"
            case ast.Attribute(attr="read_json" | "read_pickle" | "read_xml"):
                yield node.lineno, node.attr
            case ast.ImportFrom(module=str(module), names=names):
                for each in names:
                    if each.name in PARSERS.get(module, ()):
                        yield node.lineno, f"{module}.{each.name}"
                if module.partition(".")[0] in FORMATS:
                    yield node.lineno, module
            case ast.Import(names=names):
                for each in names:
                    renamed = each.name in PARSERS and each.asname not in (None, "np")
                    if renamed or each.name.partition(".")[0] in FORMATS:
                        yield node.lineno, each.name


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.loads('')",
        "from json import loads",
        "import json as j",
        "import yaml",
        "from xml.etree import ElementTree",
        "import numpy as np\nnp.loadtxt('')",
        "pandas.read_json('')",
    ],
)
def test_a_parser_is_recognised(source: str) -> None:
    assert list(parsers(ast.parse(source)))


def test_only_one_module_parses_nested_texts() -> None:
    seen = {
        path.relative_to(PACKAGE).as_posix(): uses
        for path in sorted(PACKAGE.rglob("*.py"))
        if (uses := list(parsers(ast.parse(path.read_text(encoding="utf-8")))))
    }
    reader = seen.pop(READER.relative_to(PACKAGE).as_posix())
    assert [name for _, name in reader] == ["json.loads"]
    assert seen == {}, "read it by keywright._reading.documents.read_json, with limits"
