"""No public function and no constructor of the package takes more than eight parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "python" / "keywright"

MOST = 8

TABLES = {"Weights", "Work", "Operation"}
"""Tables of one quantity by the kind of work, whose rows have names: seconds, counts. A fit takes them as one
vector, and calls name the few kinds that are not 0."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(function: Function, *, method: bool) -> list[str]:
    """Names of the parameters, but for ``self`` and ``cls``. The keys of a TypedDict are not counted, so
    functions of the package have none."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    return [*names[int(method and not static) :], *(each.arg for each in given.kwonlyargs)]


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


def calls(tree: ast.AST, prefix: str = "", *, method: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield everything public that can be called, with its parameters."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            if not node.name.startswith("_") or node.name == "__init__":
                yield prefix + node.name, parameters(node, method=method)
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield prefix + node.name, fields(node)
                yield from calls(node, f"{prefix}{node.name}.", method=True)
        elif isinstance(node, ast.If | ast.Try):
            yield from calls(node, prefix, method=method)


ALL = {
    (path.relative_to(PACKAGE).as_posix(), name): names
    for path in sorted(PACKAGE.rglob("*.py"))
    for name, names in calls(ast.parse(path.read_text(encoding="utf-8")))
}


def test_more_than_eight_parameters_are_a_value() -> None:
    """A group of them gets a name and its own documentation: a dataclass."""
    assert len(ALL) > 1000
    many = {place: names for place, names in ALL.items() if len(names) > MOST and place[1] not in TABLES}
    assert not many


def test_the_listed_tables_exist() -> None:
    assert {name for _, name in ALL if len(ALL[_, name]) > MOST} == TABLES


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(a, /, b, *, c, **d): ...", 3),
        ("class C:\n    def f(self, a, b): ...", 2),
        ("class C:\n    @staticmethod\n    def f(a, b): ...", 2),
        ("@dataclass(frozen=True)\nclass C:\n    a: int\n    b: int = field(init=False)\n    c: int = 0", 2),
        ("class C(NamedTuple):\n    a: int\n    b: int", 2),
    ],
)
def test_parameters_are_counted(text: str, count: int) -> None:
    assert max(len(names) for _, names in calls(ast.parse(text))) == count
