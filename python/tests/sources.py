"""The package's sources as trees, with the names of the functions and classes that code is in."""

import ast
from collections.abc import Iterator
from pathlib import Path

import keywright

PACKAGE = Path(keywright.__file__).parent


def named_nodes(tree: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each node with the dotted name of what it is in; a function or class with its own.

    Args:
        name: of the tree.
    """
    for child in ast.iter_child_nodes(tree):
        scope = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = f"{name}.{child.name}" if scope else name  # type: ignore[attr-defined]
        yield inner, child
        yield from named_nodes(child, inner)


def files() -> Iterator[tuple[Path, ast.Module]]:
    """Yield each file of the package, relative to its folder, with its tree."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE), ast.parse(path.read_text(encoding="utf-8"))
