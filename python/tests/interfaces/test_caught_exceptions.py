"""No failure counts as a success: code that catches every exception raises one, or has a reason to go on."""

import ast

import pytest
from tests.sources import files, named_nodes

REASONS = {
    "compiler/front_ends/scikit_learn/comparison.py: evaluated": "the next way; the last failure is raised",
    "compiler/front_ends/scikit_learn/comparison.py: _measured": "without steps, more samples are compared",
    "serve/cluster/replica.py: _work": "the failure is the answer",
    "serve/evaluation/dispatch.py: _run": "the failure is an event; the thread serves others",
    "serve/evaluation/dispatch.py: _do": "the failure is an event, and the job's answer",
    "serve/http/request_checks.py: _answer": "the failure is an event; the client was answered",
    "serve/storage/external/copies.py: _fetch": "the failure is what waiting readers get",
    "serve/workers/worker.py: execute": "the failure is the answer",
}
"""Why a function that goes on after any exception does not hide it, by file and name."""


def catches_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in ("Exception", "BaseException") for kind in kinds)


def going_on(tree: ast.AST) -> list[str]:
    """Return the functions in which a handler of every exception does not end by raising one."""
    return [
        name.rpartition(".")[2]
        for name, node in named_nodes(tree, "")
        if isinstance(node, ast.ExceptHandler)
        and catches_all(node)
        and not isinstance(node.body[-1], ast.Raise)
    ]


def test_every_handler_that_goes_on_has_a_reason() -> None:
    functions = {f"{path.as_posix()}: {function}" for path, tree in files() for function in going_on(tree)}
    assert functions == set(REASONS)


PASSES = "def f():\n try:\n  g()\n except Exception:\n  return 0"


@pytest.mark.parametrize(
    ("source", "functions"),
    [
        (PASSES, ["f"]),
        (PASSES.replace(" Exception", ""), ["f"]),
        (PASSES.replace(" Exception", " (OSError, BaseException)"), ["f"]),
        (PASSES.replace("return 0", "raise E from None"), []),
        (PASSES.replace("Exception", "OSError"), []),
    ],
)
def test_such_handlers_are_listed(source: str, functions: list[str]) -> None:
    assert going_on(ast.parse(source)) == functions
