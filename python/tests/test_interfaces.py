"""Properties and methods: consistent in all public classes (docs/reference/conventions.md)."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Iterator

import keywright as kw
import pytest

ROOMS = (
    "keywright",
    "keywright.client",
    "keywright.compiler",
    "keywright.model",
    "keywright.plan",
    "keywright.runtime",
    "keywright.serve",
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
    "fastest": "searches",
    "frontier": "searches",
    "mean": "evaluates",
    "refresh": "asks a server",
    "seen": "asks a server",
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
            found = getattr(module, name)
            if not isinstance(found, type) or issubclass(found, BaseException) or found in seen:
                continue
            seen.add(found)
            if name not in SERVERS:
                yield found


CLASSES = list(public_classes())


def members(kind: type) -> dict[str, object]:
    """Public members that are ours, by name."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("keywright")]
    found = {name: value for base in reversed(ours) for name, value in vars(base).items()}
    return {name: value for name, value in found.items() if not name.startswith("_")}


def takes_nothing(method: object) -> bool:
    """Whether an instance's method has no parameter."""
    if isinstance(method, staticmethod | classmethod | type) or not callable(method):
        return False
    return len(inspect.signature(method).parameters) <= 1


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_method_without_arguments_makes_or_does_something(kind: type) -> None:
    found = {name for name, value in members(kind).items() if takes_nothing(value)}
    assert found <= MAKES.keys() | ACTS.keys(), "what an object has is a property"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_property_does_nothing(kind: type) -> None:
    found = {name for name, value in members(kind).items() if isinstance(value, PROPERTIES)}
    assert not found & {"check", "close", "deal", "describe", "expand", "seen", "to_bytes", "to_json"}


@pytest.mark.parametrize(
    "name",
    [
        *("BfvCiphertext", "BfvDecryptor", "BfvEncryptor", "BfvEvaluator", "BfvSeededCiphertext"),
        *("Bootstrapper", "BootstrapperPlan", "Ciphertext", "Client", "ClientEncryptor", "Decryptor"),
        *("EncryptionPool", "Encryptor", "ErrorModel", "EvaluationKeys", "Evaluator", "KeyGenerator"),
        *("KeySpec", "LinearTransform", "MasterKeys", "PublicKey", "SecretKey", "SeededCiphertext"),
        "SwitchingKey",
    ],
)
def test_what_belongs_to_parameters_has_them(name: str) -> None:
    assert isinstance(members(getattr(kw, name))["parameters"], PROPERTIES)
