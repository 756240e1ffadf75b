"""No failure counts as a success: code that catches every exception raises one, or has a reason to go on."""

import ast
from collections import Counter
from pathlib import Path

import keywright

SOURCES = Path(keywright.__file__).parent

REASONS = {
    "compiler/front_ends/scikit_learn/comparison.py: evaluated": "the next way; the last failure is raised",
    "compiler/front_ends/scikit_learn/comparison.py: _measured": "without steps, more samples are compared",
    "serve/cluster/replica.py: _work": "the failure is the answer",
    "serve/evaluation/dispatch.py: _run": "the failure is an event; the thread serves others",
    "serve/evaluation/dispatch.py: _do": "the failure is an event, and the job's answer",
    "serve/http/request_checks.py: _answer": "the failure is an event; the client was answered",
    "serve/storage/external/copies.py: _fetch": "the failure is what waiting readers get",
    "serve/workers/worker.py: obey": "the failure is the answer",
}
"""Why a function that goes on after any exception does not hide it, by file and name."""


def catches_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in ("Exception", "BaseException") for kind in kinds)


def going_on(source: str) -> list[str]:
    """Return the functions in which a handler of every exception does not end by raising one."""
    functions = []

    def visit(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            caught = isinstance(child, ast.ExceptHandler) and catches_all(child)
            if caught and not isinstance(child.body[-1], ast.Raise):  # type: ignore[attr-defined]
                functions.append(inner)
            visit(child, inner)

    visit(ast.parse(source), "")
    return functions


def test_every_handler_that_goes_on_has_a_reason() -> None:
    functions = Counter(
        f"{path.relative_to(SOURCES).as_posix()}: {function}"
        for path in sorted(SOURCES.rglob("*.py"))
        for function in going_on(path.read_text("utf-8"))
    )
    assert set(functions) == set(REASONS)


def test_such_handlers_are_found() -> None:
    passes = "def f():\n try:\n  g()\n except Exception:\n  return 0"
    assert going_on(passes) == ["f"]
    assert going_on(passes.replace(" Exception", "")) == ["f"]
    assert going_on(passes.replace(" Exception", " (OSError, BaseException)")) == ["f"]
    assert going_on(passes.replace("return 0", "raise E from None")) == []
    assert going_on(passes.replace("Exception", "OSError")) == []
