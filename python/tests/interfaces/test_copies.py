"""What holds a secret, keys or a compiled part is never pickled, and says how another process gets it.

Process pools and joblib pickle what they are given, and deepcopy copies by the same hooks."""

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property, reduce
from typing import Any, get_args

import keywright as kw
import numpy as np
import pytest
from keywright import _core, federated, plan, search
from keywright._copies import Stated, Unchanging, Unpicklable
from sklearn.linear_model import LogisticRegression
from tests.interfaces.test_thread_safety import documented, unchangeable
from tests.sources import files, named_nodes

CLASSES = documented()
COMPILED = {
    each for each in vars(_core).values() if isinstance(each, type) and not issubclass(each, BaseException)
}
METHODS = re.compile(r"\b(?:\w+\.)*(\w+)\(\)")
FUNCTIONS = re.compile(r"\bkeywright\.([\w.]*\w)")
PLAIN = {
    "keywright.federated.EncryptedFedAvg",
    "keywright.federated.ThresholdFedAvg",
    "keywright.plan.AutomorphismGroup",
    "keywright.plan.CostModel",
    "keywright.plan.DerivationPlanner",
    "keywright.plan.Planner",
    "keywright.plan.ProblemPlanner",
    "keywright.plan.cost.Gauge",
    "keywright.runtime.ClearBackend",
    "keywright.runtime.LayerClock",
    "keywright.serve.tenants.Accounts",
    "keywright.serve.tenants.Issuer",
    "keywright.serve.tenants.Quotas",
    "keywright.values.Group",
}
"""Classes that are not declared field by field, of objects without secrets and compiled parts."""


SECRETS = re.compile(
    r"(secret\)?|\bshare|\bkey)\.to_bytes$|(SecretKey|SumKey|ThresholdShare)\.from_bytes$|secret_bytes$"
)
BYTES_OF_SECRETS = {
    "federated.shared_key.tags._secret",
    "federated.threshold.client.ThresholdMod._open",
    "federated.threshold.client.ThresholdMod._decrypt",
}
"""Where the package makes bytes of a secret, which Python does not wipe: docs/explanation/federated.md says
so."""


def refuses(cls: type) -> bool:
    return cls in COMPILED or issubclass(cls, Unpicklable)


def own(cls: type) -> bool:
    """Whether a class says itself how its objects are pickled."""
    return issubclass(cls, Stated) or getattr(cls, "__reduce__", None) is not object.__reduce__


def parts(kind: Any) -> Iterator[type]:
    """The classes that a field's type names."""
    if isinstance(kind, type):
        yield kind
    for each in get_args(kind):
        yield from parts(each)


def test_compiled_classes_are_not_pickled() -> None:
    assert not {cls.__name__ for cls in COMPILED if not own(cls)}


def test_every_class_has_a_decision() -> None:
    """A class that holds an object of one that is not pickled is not pickled itself, or says how."""
    plain = {name: cls for name, cls in CLASSES.items() if not own(cls)}
    holding = {
        (name, each.name)
        for name, cls in plain.items()
        if is_dataclass(cls)
        for each in fields(cls)
        if any(map(refuses, parts(each.type)))
    }
    assert not holding
    caching = {
        name
        for name, cls in plain.items()
        if is_dataclass(cls)
        and any(isinstance(getattr(cls, each, None), cached_property) for each in dir(cls))
    }
    assert not caching, "what is cached may be compiled, or a hash of this process; derive from Stated"
    undeclared = {
        name for name, cls in CLASSES.items() if not (is_dataclass(cls) or refuses(cls) or unchangeable(cls))
    }
    assert undeclared == PLAIN


@pytest.mark.parametrize(
    "name", sorted(name for name, cls in CLASSES.items() if issubclass(cls, Unpicklable))
)
def test_a_refusal_names_what_there_is(name: str) -> None:
    cls = CLASSES[name]
    each: object = object.__new__(cls)
    with pytest.raises(TypeError, match=rf"^{cls.__name__} objects are not pickled") as caught:
        pickle.dumps(each)
    text = str(caught.value)
    for function in FUNCTIONS.findall(text):
        assert callable(reduce(getattr, function.split("."), kw))
    methods = set(METHODS.findall(text)) - {"to_bytes"}
    assert all(callable(getattr(cls, method)) for method in methods)
    if issubclass(cls, Unchanging):
        assert copy.copy(each) is copy.deepcopy(each) is each
        return
    for way in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="or copied"):
            way(each)


def test_compiled_parts_say_whether_they_have_bytes() -> None:
    parameters = kw.Parameters.from_bits(11, [55, 45], [50], 45, insecure=True)
    thin = kw.thin.Client(kw.thin.Parameters(parameters, scale=1 << 43, fraction_bits=20))
    for each, text in (
        (parameters, "send to_bytes()"),
        (thin, "send secret_bytes() to another, where from_secret_bytes() checks it"),
        (kw.Flooding(10, 10_000), "make another one"),
    ):
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"^{type(each).__name__} objects are not pickled") as caught:
                way(each)
            assert text in str(caught.value)


def test_python_has_no_bytes_of_a_secret_key() -> None:
    """Python does not wipe bytes: the engine passes secrets from one object to another."""
    places = {
        scope
        for path, tree in files()
        for scope, node in named_nodes(tree, ".".join(path.with_suffix("").parts))
        if isinstance(node, ast.Attribute) and SECRETS.search(ast.unparse(node))
    }
    assert places == BYTES_OF_SECRETS


def test_what_is_cached_is_not_pickled() -> None:
    """It may be compiled: pickling failed from its first use on."""
    quantisation = search.Quantisation(4)
    before = pickle.dumps(quantisation)
    assert quantisation.parameters.n == 8192
    assert pickle.dumps(quantisation) == before
    assert copy.deepcopy(quantisation) is not quantisation
    samples = np.random.default_rng(1).normal(size=(40, 2))
    model = kw.compile(LogisticRegression().fit(samples, samples[:, 0] > 0), samples)
    assert str(pickle.loads(pickle.dumps(model.report))) == str(model.report)  # noqa: S301 (of this process)
    assert str(copy.deepcopy(model.report)) == str(model.report)


def test_what_is_public_is_pickled() -> None:
    encoding = federated.Encoding(1.0, 4, 100)
    costs = plan.CostModel()
    same, again = pickle.loads(pickle.dumps((encoding, costs)))  # noqa: S301 (of this process)
    assert same == copy.deepcopy(encoding) == encoding
    assert same.capacity == encoding.capacity
    assert again.weights == copy.deepcopy(costs).weights == costs.weights


def test_a_copy_of_an_encrypted_value_is_the_value() -> None:
    parameters = kw.Parameters.from_bits(11, [55, 45], [50], 45, insecure=True)
    secret = kw.SecretKey.generate(parameters)
    value = kw.Evaluator(parameters)(kw.Decryptor(secret).encrypt(np.ones(4), slots=4).expand())
    assert copy.deepcopy({"mean": value})["mean"] is value
    with pytest.raises(TypeError, match=r"^Encrypted objects are not pickled.*ciphertext\.to_bytes\(\)"):
        pickle.dumps(value)
