"""Properties and methods: consistent in all public classes (docs/reference/conventions.md)."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import keywright as kw
import pytest

ROOMS = (
    "keywright",
    "keywright.bfv",
    "keywright.client",
    "keywright.compiler",
    "keywright.keys",
    "keywright.model",
    "keywright.plan",
    "keywright.runtime",
    "keywright.serve",
    "keywright.thin",
)
SERVERS = {"Server", "Service", "Workers"}
"""Classes whose methods are actions of a server, and the requests that it answers."""

PROPERTIES = (property, functools.cached_property, types.GetSetDescriptorType)

MAKES = {
    "client": "a client, with a new secret",
    "deal": "random shares",
    "expand": "a ciphertext of its seed",
    "merged": "a workload",
    "every": "a workload",
    "public_half": "bytes",
    "public_key": "a key, which is random",
    "secret_bytes": "bytes",
    "session": "a client, or its random bytes",
    "as_object": "an object of JSON",
    "to_bytes": "bytes",
    "to_json": "text",
    "describe": "text",
}
"""Methods without arguments that make something."""

ACTS = {
    "best": "searches",
    "check": "raises",
    "close": "ends",
    "descend": "searches",
    "forget_transforms": "frees memory",
    "fastest": "searches",
    "frontier": "searches",
    "mean": "evaluates",
    "refresh": "asks a server",
    "require_precision": "raises",
    "seen": "asks a server",
    "step": "notes the time",
    "share": "copies to memory that processes share",
    "sum": "evaluates",
}
"""Methods that do something."""


def public_classes() -> Iterator[type]:
    """Yield every class that a package exports, once."""
    seen: set[type] = set()
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            kind = getattr(module, name)
            if not isinstance(kind, type) or issubclass(kind, BaseException) or kind in seen:
                continue
            seen.add(kind)
            if name not in SERVERS:
                yield kind


CLASSES = list(public_classes())


def members(kind: type) -> dict[str, object]:
    """Public members that are ours, by name."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("keywright")]
    attributes = {name: value for base in reversed(ours) for name, value in vars(base).items()}
    return {name: value for name, value in attributes.items() if not name.startswith("_")}


def takes_nothing(method: object) -> bool:
    """Whether an instance's method has no parameter."""
    if isinstance(method, staticmethod | classmethod | type) or not callable(method):
        return False
    return len(inspect.signature(method).parameters) <= 1


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_method_without_arguments_makes_or_does_something(kind: type) -> None:
    methods = {name for name, value in members(kind).items() if takes_nothing(value)}
    assert methods <= MAKES.keys() | ACTS.keys(), "what an object has is a property"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_property_does_nothing(kind: type) -> None:
    properties = {name for name, value in members(kind).items() if isinstance(value, PROPERTIES)}
    assert not properties & {"check", "close", "deal", "describe", "expand", "seen", "to_bytes", "to_json"}


@pytest.mark.parametrize(
    "name",
    [
        *("bfv.Ciphertext", "bfv.Decryptor", "bfv.Encryptor", "bfv.Evaluator", "bfv.SeededCiphertext"),
        *("Bootstrapper", "BootstrapperPlan", "Ciphertext", "Decryptor", "EncryptionPool", "Encryptor"),
        *("EvaluationKeys", "Evaluator", "KeyGenerator", "KeySpec", "LinearTransform", "PublicKey"),
        *("SecretKey", "SeededCiphertext", "keys.ErrorModel", "keys.MasterKeys", "keys.SwitchingKey"),
        *("thin.Client", "thin.Encryptor"),
    ],
)
def test_what_belongs_to_parameters_has_them(name: str) -> None:
    assert isinstance(members(attrgetter(name)(kw))["parameters"], PROPERTIES)


def test_the_top_of_the_package_has_few_names_and_no_room_has_many() -> None:
    assert len(kw.__all__) <= 25
    assert len(kw.plan.__all__) <= 25
    assert len(kw.compiler.__all__) <= 12


def test_everything_listed_is_there_without_another_import() -> None:
    script = "import keywright as kw; [getattr(kw, name) for name in (*kw.__all__, *dir(kw))]"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_exception_is_a_name_of_the_errors() -> None:
    assert len(kw.errors.__all__) == len(set(kw.errors.__all__))
    package = Path(kw.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & {
                *kw.errors.__all__
            }:
                assert path.parent == package / "errors", (path, node.name)
                assert node.name in kw.errors.__all__


def test_a_function_that_returns_none_by_its_docstring_does_so_by_its_annotation() -> None:
    package = Path(kw.__file__).parent
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
                continue
            # Sections of the docstring are about parameters, errors and what it yields.
            summary = (ast.get_docstring(node) or "").split(":\n")[0]
            if re.search(r"\. (Returns )?None (if|where|unless|without)\b", " ".join(summary.split())):
                assert re.search("None|object|Any", ast.unparse(node.returns)), (path, node.name)
