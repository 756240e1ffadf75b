"""No public function and no constructor of the package or its engine takes more than eight parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "keywright"

MOST = 8

TABLES = {"Weights", "Work", "ExactRun", "Operation"}
"""Tables of one quantity by the kind of work, whose rows have names: seconds, counts. A fit takes them as one
vector, and calls name the few kinds that are not 0."""

LONG = {
    # The first call of every user, by hand. Its ``fit`` has the attributes of `Fit`, and no others.
    ("model/compilation.py", "compile"),
    # As `KeyGenerator.evaluation_keys`, whose names it has, with the keys' `extra_bits`.
    ("_core.pyi", "MasterKeys.generate"),
    # The numbers of a transform that memory is counted of, for the planner alone, by name.
    ("_core.pyi", "transform_scratch"),
}
"""Calls that take more, by file and name, with the reason."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Keys = Mapping[str, list[str]]


def typed_dicts(tree: ast.AST) -> dict[str, list[str]]:
    """Return the keys of each TypedDict of a file."""
    return {
        node.name: [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "TypedDict" in {ast.unparse(base) for base in node.bases}
    }


def parameters(function: Function, keys: Keys, *, method: bool) -> list[str]:
    """Names of the parameters, but for ``self`` and ``cls``, with the keys of an unpacked TypedDict."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    annotation = "" if given.kwarg is None else ast.unparse(given.kwarg.annotation or given.kwarg)
    unpacked = re.fullmatch(r"Unpack\[(\w+)\]", annotation)
    named = keys[unpacked[1]] if unpacked else []
    return [*names[int(method and not static) :], *(each.arg for each in given.kwonlyargs), *named]


def fields(kind: ast.ClassDef) -> list[str]:
    """Names of the parameters of a constructor that a dataclass or a NamedTuple gets of its fields."""
    decorators = [ast.unparse(each) for each in kind.decorator_list]
    generated = any(each.partition("(")[0] == "dataclass" for each in decorators)
    if not generated and "NamedTuple" not in {ast.unparse(base) for base in kind.bases}:
        return []
    return [
        ast.unparse(each.target)
        for each in kind.body
        if isinstance(each, ast.AnnAssign)
        and "ClassVar" not in ast.unparse(each.annotation)
        and "init=False" not in ast.unparse(each)
    ]


def calls(
    tree: ast.AST, keys: Keys, prefix: str = "", *, method: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """Yield everything public that can be called, with its parameters."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            if not node.name.startswith("_") or node.name == "__init__":
                yield prefix + node.name, parameters(node, keys, method=method)
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield prefix + node.name, fields(node)
                yield from calls(node, keys, f"{prefix}{node.name}.", method=True)
        elif isinstance(node, ast.If | ast.Try):
            yield from calls(node, keys, prefix, method=method)


@cache
def every_call() -> dict[tuple[str, str], list[str]]:
    """The parameters of all calls of the package, by file and name."""
    trees = {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((*PACKAGE.rglob("*.py"), PACKAGE / "_core.pyi"))
    }
    return {
        (path, name): names for path, tree in trees.items() for name, names in calls(tree, typed_dicts(tree))
    }


def test_more_than_eight_parameters_are_a_value() -> None:
    """A group of them gets a name and its own documentation: a dataclass."""
    assert len(every_call()) > 1000
    many = {place for place, names in every_call().items() if len(names) > MOST and place[1] not in TABLES}
    assert many == LONG


def test_the_listed_tables_exist() -> None:
    listed = every_call()
    assert {name for path, name in set(listed) - LONG if len(listed[path, name]) > MOST} == TABLES


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(a, /, b, *, c, **d): ...", 3),
        ("class D(TypedDict):\n    x: int\n    y: int\ndef f(a, **d: Unpack[D]): ...", 3),
        ("class C:\n    def f(self, a, b): ...", 2),
        ("class C:\n    @staticmethod\n    def f(a, b): ...", 2),
        ("@dataclass(frozen=True)\nclass C:\n    a: int\n    b: int = field(init=False)\n    c: int = 0", 2),
        ("class C(NamedTuple):\n    a: int\n    b: int", 2),
    ],
)
def test_parameters_are_counted(text: str, count: int) -> None:
    tree = ast.parse(text)
    assert max(len(names) for _, names in calls(tree, typed_dicts(tree))) == count
