"""Arguments that are one of a few strings: any other string is refused, with the strings that there are."""

from __future__ import annotations

import ast
import importlib
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import keywright as kw
import numpy as np
import pytest
from keywright import compiler, federated, model, plan, runtime, search, security
from keywright.errors import ParameterError
from keywright.security import Problem, ternary
from tests.bootstraps import DEGREE_62

PACKAGE = Path(kw.__file__).parent

ROOMS = (
    "keywright",
    "keywright.bfv",
    "keywright.client",
    "keywright.compiler",
    "keywright.federated",
    "keywright.keys",
    "keywright.model",
    "keywright.plan",
    "keywright.runtime",
    "keywright.search",
    "keywright.security",
    "keywright.serve",
    "keywright.thin",
)

ANNOTATIONS = {"Operand": Any, "ArrayLike": Any}
"""Names that modules import for type checkers alone."""


def strings(hint: Any) -> tuple[str, ...]:
    """Return the strings of the Literals in an annotation."""
    if typing.get_origin(hint) is Literal:
        return tuple(map(str, typing.get_args(hint)))
    return tuple(each for part in typing.get_args(hint) for each in strings(part))


def functions(name: str, thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield what can be called of an exported thing: the function, or constructor and methods of a class."""
    if not isinstance(thing, type):
        yield name, thing
        return
    for each, member in vars(thing).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and (not each.startswith("_") or each == "__init__"):
            yield f"{name}.{each}", function


def annotated(rooms: Iterable[str], others: Collection[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the public functions of rooms, except those of `others`, with the types of their parameters."""
    for module in map(importlib.import_module, rooms):
        for name in module.__all__:
            thing = getattr(module, name)
            if name in others or (isinstance(thing, type) and issubclass(thing, BaseException)):
                continue
            for place, function in functions(name, thing):
                if inspect.isfunction(function):
                    hints = typing.get_type_hints(function, localns=ANNOTATIONS)
                    yield place, {each: hint for each, hint in hints.items() if each != "return"}


def choices() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the strings of every public parameter that takes a few, by function and parameter."""
    out: dict[tuple[str, str], tuple[str, ...]] = {}
    for place, hints in annotated(ROOMS):
        out |= {(place, each): strings(hint) for each, hint in hints.items()}
    return {place: names for place, names in out.items() if names}


WRONG: Any = "thinn-slotss"
PRESET = "N15_QP858_L5_S32_real"
POINTS = np.eye(4)
PROBLEM = Problem(1024, 26, ternary())


def backend(storage: Any) -> object:
    """Make the backend of no program."""
    parameters = kw.Parameters.preset("N13_QP214_S38")
    execution: Any = None
    return runtime.EncryptedBackend(kw.Evaluator(parameters), plan=execution, storage={(0, 0, 0): storage})


CALLS: dict[tuple[str, str], Callable[[Any], object]] = {
    ("compile", "client"): lambda text: kw.compile(object(), client=text),
    ("Fit.__init__", "thresholds"): lambda text: compiler.Fit(thresholds=text),
    ("Target.__init__", "packing"): lambda text: compiler.Target(slots=8, levels=1, packing=text),
    ("CiphertextFormat.__init__", "packing"): lambda text: model.CiphertextFormat(text, b"", b"", 1),
    ("Identity.save", "holds"): lambda text: model.Identity(bytes(32)).save(Path(), text, 1),
    ("Identity.load", "holds"): lambda text: model.Identity.load(Path(), text, 1),
    ("KeyPolicy.__init__", "alpha"): lambda text: plan.KeyPolicy(text, "all"),
    ("KeyPolicy.__init__", "levels"): lambda text: plan.KeyPolicy(1, text),
    ("EncryptedBackend.__init__", "storage"): backend,
    ("Index.of", "metric"): lambda text: search.Index.of(POINTS, metric=text),
    ("Quantisation.__init__", "metric"): lambda text: search.Quantisation(4, text),
    ("Vote.__init__", "weights"): lambda text: search.Vote(1, text, [0]),
    ("Encoding.__init__", "out_of_range"): lambda text: federated.Encoding(1.0, 2, 1, out_of_range=text),
}
"""Calls with a wrong string for each of these parameters."""

TABLES: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "security.estimate": (lambda text: security.estimate(PROBLEM, text), tuple(security.MODELS)),
    "security.largest_modulus": (
        lambda text: security.largest_modulus(PROBLEM, model=text),
        tuple(security.MODELS),
    ),
}
"""Strings that are the names of a table."""


def test_every_parameter_of_a_few_strings_is_called() -> None:
    assert choices().keys() == CALLS.keys()


@pytest.mark.parametrize("place", CALLS, ids=".".join)
def test_another_string_is_refused_with_all_that_there_are(place: tuple[str, str]) -> None:
    known, call = choices()[place], CALLS[place]
    with pytest.raises(ParameterError) as caught:
        call(WRONG)
    assert f"{place[1]}={WRONG!r}" in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in known)
    for name in known:
        with pytest.raises(ParameterError, match=f"did you mean {name!r}"):
            call(name.capitalize())


@pytest.mark.parametrize("name", TABLES)
def test_another_name_is_refused_with_all_of_the_table(name: str) -> None:
    call, known = TABLES[name]
    with pytest.raises(ParameterError) as caught:
        call(WRONG)
    assert all(repr(each) in str(caught.value) for each in known)


@pytest.mark.parametrize("value", [None, 3, b"thin", ["thin"]])
def test_a_choice_of_another_type_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="'slots', 'thin'"):
        kw.compile(object(), client=value)


ENGINE: dict[str, tuple[Callable[[Any], object], str]] = {
    "basis": (
        lambda text: kw.Evaluator(kw.Parameters.preset("N13_QP214_S38")).polynomial(
            kw.Encryptor(
                kw.KeyGenerator(kw.SecretKey.generate(kw.Parameters.preset("N13_QP214_S38"))).public_key()
            ).encrypt([0.5]),
            [0.0, 1.0],
            text,
        ),
        "chebyshev",
    ),
    "storage": (lambda text: kw.BootstrapperPlan.preset(PRESET).diagonal_bytes(text), "streamed"),
    "values": (
        lambda text: kw.thin.Parameters(
            kw.BootstrapperPlan.preset(PRESET).parameters, scale=1 << 30, fraction_bits=20, values=text
        ),
        "real",
    ),
    "when_empty": (
        lambda text: kw.EncryptionPool(
            kw.SecretKey.generate(kw.Parameters.preset("N13_QP214_S38")), 1, when_empty=text
        ),
        "encrypt",
    ),
    "order": (lambda text: bootstrapping(order=text), "slots_to_coeffs_first"),
    "key_levels": (lambda text: bootstrapping(key_levels=text), "needed"),
}
"""Arguments of the engine that are one of a few strings, and one of these."""

OTHER_STRINGS = {"set"}
"""Names that the engine's benchmark alone takes."""


def bootstrapping(**options: Any) -> object:
    """Plan a bootstrapping of a small ring."""
    widths = [50, 40, 40, 45, 45, 45] + 7 * [50] + [59, 60, 50] + 2 * [50]
    return kw.BootstrapperPlan(
        kw.Parameters.from_bits(11, widths, [50, 50, 50], 45, insecure=True),
        **DEGREE_62,
        **options,
    )


def test_every_string_of_the_engine_is_called() -> None:
    tree = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            placed = [*given.posonlyargs, *given.args]
            defaults = zip(placed[len(placed) - len(given.defaults) :], given.defaults, strict=True)
            for each, default in (*defaults, *zip(given.kwonlyargs, given.kw_defaults, strict=True)):
                if isinstance(default, ast.Constant) and isinstance(default.value, str) and default.value:
                    names.add(each.arg)
    assert names - OTHER_STRINGS == ENGINE.keys()


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_refuses_another_string_and_names_one_that_there_is(name: str) -> None:
    call, known = ENGINE[name]
    with pytest.raises(ParameterError, match=known):
        call(WRONG)
